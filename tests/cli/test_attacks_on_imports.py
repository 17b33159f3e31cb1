"""A checkout holds files named like the modules that ci-agent imports: none of them is."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci_agent import __version__

COMMANDS = {
    "python -P -m ci_agent": [sys.executable, "-P", "-m", "ci_agent"],
    "ci-agent": [str(Path(sys.executable).with_name("ci-agent"))],
}

PACKAGES = ["ci_agent", "yaml", "click", "httpx", "pydantic", "jsonschema", "re2", "tree_sitter", "certifi"]


@pytest.fixture
def evil(workspace: Path) -> Path:
    """The file that appears when anything of the workspace was imported. It is full of things to import."""
    canary = workspace.parent / "canary"
    code = f"open({str(canary)!r}, 'w').close()\nraise SystemExit('imported from the workspace')\n"
    for name in {*sys.stdlib_module_names, "sitecustomize", "usercustomize", "_yaml"} - {"__main__"}:
        (workspace / f"{name}.py").write_text(code)
    for name in PACKAGES:
        (workspace / name).mkdir()
        (workspace / name / "__init__.py").write_text(code)
    (workspace / "evil.pth").write_text(f"import os; open({str(canary)!r}, 'w').close()\n")
    (workspace / "pyvenv.cfg").write_text("home = .\n")
    return canary


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_whole_run_imports_nothing_of_the_checkout(
    evil: Path, workspace: Path, environment: dict[str, str], command: list[str]
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip("the command is not installed beside this Python")
    calls = [
        {"name": "bash", "arguments": {"command": "true"}},
        {"name": "grep", "arguments": {"pattern": "import", "path": "json.py"}},
        {"name": "read", "arguments": {"path": "json.py"}},
    ]
    (workspace / "script.yaml").write_text(json.dumps({"turns": [{"tool_calls": calls}, {"text": "Done."}]}))
    rules = "[{id: a, allow: bash, command: 'true'}, {id: b, allow: [grep, read], path: '**'}]"
    (workspace / "policy.yml").write_text(f"policy: 1\nrules: {rules}\n")
    flags = ["run", "--policy", "policy.yml", "--model", "scripted:script.yaml", "Go."]
    done = subprocess.run([*command, *flags], cwd=workspace, env=environment, capture_output=True, check=False)
    assert (done.returncode, evil.exists()) == (0, False), done.stderr.decode()
    assert [call["status"] for call in json.loads(done.stdout)["tool_calls"]] == ["ok", "ok", "ok"]


def test_without_p_python_itself_would_import_it(evil: Path, workspace: Path, environment: dict[str, str]) -> None:
    """A control: the trap works, and the README says `-P` for a reason."""
    done = subprocess.run(
        [sys.executable, "-m", "ci_agent", "--version"],
        cwd=workspace,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert (done.returncode != 0, evil.exists()) == (True, True)


def test_a_start_opens_no_socket_and_looks_up_no_name(evil: Path, workspace: Path, environment: dict[str, str]) -> None:
    script = (
        "import sys\n"
        "network = ('socket.', 'urllib.')\n"
        "sys.addaudithook(lambda event, _: sys.exit(event) if event.startswith(network) else None)\n"
        "sys.argv = ['ci-agent', *sys.argv[1:]]\n"
        "from ci_agent.__main__ import main\n"
        "main()\n"
    )
    for flags in (["--version"], ["--help"], ["tools"], ["policy", "check", "read-only"]):
        subprocess.run(
            [sys.executable, "-P", "-c", script, *flags],
            cwd=workspace,
            env=environment,
            capture_output=True,
            check=True,
        )
    assert not evil.exists()


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_the_version_is_told_soon_and_without_a_network(workspace: Path, environment: dict[str, str]) -> None:
    alone = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("the kernel gives this user no network of its own")
    took_s = []
    for _ in range(5):
        before = os.times()
        done = subprocess.run(
            [*alone, *COMMANDS["python -P -m ci_agent"], "--version"],
            cwd=workspace,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        after = os.times()  # what the processor worked, however many others are at it
        took_s.append(sum(after[2:4]) - sum(before[2:4]))
        assert (done.stdout, done.stderr) == (f"ci-agent {__version__}\n", "")
    assert min(took_s) < 0.3
