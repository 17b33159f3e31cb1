"""A command has got hold of a secret and prints it in every way that it can: nothing of the run shows it to anybody."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import CIAgent
    from tests.conftest import Faults

SECRET = "canary/Zq7+Xk9=vB2.mN4(wE6*rT8$yU0"

POLICY = """
policy: 1
rules:
  - {id: build, allow: bash, command: "python3 leak.py"}
  - {id: look, allow: [read, grep], path: "**"}
"""


def spellings() -> list[str]:
    data = SECRET.encode()
    return [
        SECRET,
        SECRET[::-1],
        SECRET[7:],
        SECRET[:-9],
        SECRET[5:14],
        data.hex(),
        data.hex().upper(),
        quote(SECRET, safe=""),
        json.dumps(SECRET)[1:-1],
        *(base64.b64encode(b"x" * before + data).decode() for before in range(3)),
        base64.urlsafe_b64encode(data).decode(),
        f"\x1b[31m{SECRET}\x1b[0m",
        f"key={SECRET}&x",
        "\n".join(SECRET),
        "\n".join(SECRET[at : at + 5] for at in range(0, len(SECRET), 5)),
    ]


LEAK = """
import sys, time
texts = {texts!r}
for text in texts:
    print(text)
    print("x" * 70000 + text, file=sys.stderr)
for text in texts[:3]:
    for cut in range(1, len(text)):  # each piece is a chunk of its own for whoever reads the pipe
        sys.stdout.write(text[:cut]); sys.stdout.flush()
        sys.stdout.write(text[cut:] + " "); sys.stdout.flush()
sys.exit(3)
"""


def leaks_in(data: bytes) -> list[str]:
    """The spellings that stand there, white space aside."""
    squeezed = b"".join(data.split())
    found = [text for text in spellings() if "".join(text.split()).encode() in squeezed]
    plain = SECRET.encode()
    return found + [plain[at : at + 8].decode() for at in range(len(plain) - 7) if plain[at : at + 8] in squeezed]


@pytest.mark.parametrize("output", ["json", "jsonl", "text"])
def test_no_file_stream_or_line_of_a_run_shows_a_secret(ci_agent: "CIAgent", workspace: Path, output: str) -> None:
    (workspace / "policy.yml").write_text(POLICY)
    (workspace / "leak.py").write_text(LEAK.format(texts=spellings()))
    (workspace / "leaked.txt").write_text("\n".join(spellings()))
    (workspace / "spill").mkdir()
    calls = [
        {"id": "build", "name": "bash", "arguments": {"command": "python3 leak.py"}},
        {"id": "read", "name": "read", "arguments": {"path": "leaked.txt"}},
        {"name": "grep", "arguments": {"pattern": "canary", "path": "leaked.txt"}},
        {"name": "bash", "arguments": {"command": f"echo {SECRET[:20]}"}},
        {"name": SECRET[7:], "arguments": {}},
        {"name": "read", "arguments": {"path": f"{SECRET}.txt"}},
        {"name": "read", "arguments_json": f'{{"path": "{SECRET}'},
    ]
    answer = "I know it: {{ result.build }} {{ result.read }} " + SECRET
    (workspace / "script.yaml").write_text(
        json.dumps({"turns": [{"tool_calls": calls, "thinking": SECRET, "text": SECRET}, {"text": answer}]})
    )
    done = ci_agent(
        *("run", "--policy", "policy.yml", "--model", "scripted:script.yaml", "--output", output, "--verbose"),
        *("--transcript", "t.json", "--keep-journal", "--spill-dir", "spill", "--answer-file", "answer.txt", "Go."),
        env={"MY_TOKEN": SECRET},
    )
    assert done.returncode == 0, done.stderr
    files = [workspace / name for name in ("t.json", "t.json.journal", "answer.txt")] + [
        *(workspace / "spill").iterdir()
    ]
    assert len(files) >= 4
    shown = {path.name: path.read_bytes() for path in files} | {
        "stdout": done.stdout.encode(),
        "stderr": done.stderr.encode(),
    }
    assert {name: leaks_in(data) for name, data in shown.items() if leaks_in(data)} == {}
    assert all(b"[redacted]" in data for data in shown.values())


def test_a_server_that_sends_the_key_back_does_not_get_it_into_the_record(
    ci_agent: "CIAgent", workspace: Path, faults: "Faults"
) -> None:
    """In an error's text, in its code, in a header, in base64, and in an answer that is no JSON."""
    coded = base64.b64encode(b"Bearer " + SECRET.encode()).decode()
    for answer in (
        faults.error(401, f"Wrong key: {SECRET}, {SECRET[9:]}, {coded}", code=SECRET[8:]),
        faults.error(400, "".join(f"{char} " for char in SECRET)),
        faults.answer(f"{SECRET} {coded}"),
        faults.error(302, "moved", location=f"http://127.0.0.1:9/{quote(SECRET)}"),
    ):
        server = faults.serve(answer)
        where = ("--model", "openai-chat:m", "--base-url", f"{server.url}/v1", "--attempts", "1")
        done = ci_agent("run", "--policy", "read-only", *where, "--verbose", "Hi.", env={"OPENAI_API_KEY": SECRET})
        assert done.stdout
        assert leaks_in((done.stdout + done.stderr).encode()) == []


@pytest.mark.parametrize(
    "flags",
    [
        ("--base-url", f"http://me:{SECRET}@example.invalid/v1"),
        ("--base-url", f"ftp://{quote(SECRET, safe='')}"),
        ("--transcript", f"/nowhere/{SECRET}/t.json"),
        ("--prompt-file", f"/nowhere/{SECRET}"),
        ("--policy", SECRET),
        ("--model", f"nobody:{SECRET}"),
        ("--max-turns", SECRET),
        (f"--{SECRET}",),
    ],
)
def test_a_command_line_with_a_secret_in_it_is_refused_without_showing_it(
    ci_agent: "CIAgent", flags: tuple[str, ...]
) -> None:
    usual = ("--policy", "read-only", "--model", "openai-chat:m")
    done = ci_agent(
        "run", *usual, *flags, *([] if "--prompt-file" in flags else ["Hi."]), env={"OPENAI_API_KEY": SECRET}
    )
    assert done.returncode in (2, 3, 4)
    assert leaks_in((done.stdout + done.stderr).encode()) == []


def test_a_bug_shows_its_traceback_without_secrets(workspace: Path, environment: dict[str, str]) -> None:
    """Wherever it happens: before the run, where nothing has been looked through yet, as well."""
    script = f"""if True:
        import sys
        from ci_agent import __main__
        def broken(*_, **__):
            raise RuntimeError("the environment was: {SECRET}")
        __main__.cli.main = broken
        __main__.main()
    """
    env = {**environment, "MY_TOKEN": SECRET}
    done = subprocess.run([sys.executable, "-c", script], cwd=workspace, env=env, capture_output=True, check=False)
    assert done.returncode == 70
    assert b"RuntimeError" in done.stderr
    assert leaks_in(done.stdout + done.stderr) == []
