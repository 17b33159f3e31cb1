"""ci-agent itself writes the answer, reports and the record, and no sandbox holds it: no command leads it elsewhere."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Run = Callable[..., CompletedProcess[str]]

ANSWER = "canary: rm -rf ~"
POLICY = "policy: 1\nrules: [{id: evil, allow: bash, command: 'python3 evil.py'}]\n"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "profile").write_text("before\n")
    return folder


@pytest.fixture
def run(ci_agent: Run, workspace: Path, tmp_path: Path) -> Run:
    """A run whose one command is this Python program, and whose answer is the canary."""

    def call(program: str, *args: str, calls: int = 1) -> CompletedProcess[str]:
        (workspace / "evil.py").write_text(program)
        turn = {"tool_calls": [{"name": "bash", "arguments": {"command": "python3 evil.py"}}]}
        (tmp_path / "script.yaml").write_text(json.dumps({"turns": [*[turn] * calls, {"text": ANSWER}]}))
        (tmp_path / "policy.yml").write_text(POLICY)
        (tmp_path / "aside").mkdir(exist_ok=True)
        options = ("--policy", "../policy.yml", "--model", "scripted:../script.yaml", "--output", "json")
        # Where a record that finds no other place is put, and stays.
        return ci_agent("run", *options, *args, "Go.", env={"TMPDIR": str(tmp_path / "aside")})

    return call


def untouched(outside: Path) -> bool:
    return sorted(os.listdir(outside)) == ["profile"] and (outside / "profile").read_text() == "before\n"


WRITTEN: dict[str, tuple[list[str], Callable[[str], bool]]] = {
    "answer": (["--answer-file", "{}"], lambda text: text == f"{ANSWER}\n"),
    "report": (["--report", "markdown={}"], lambda text: ANSWER in text),
    "transcript": (["--transcript", "{}"], lambda text: json.loads(text)["schema"] == "ci-agent.transcript/1"),
}


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("what", WRITTEN)
def test_attack_put_a_link_where_the_result_goes(
    run: Run, workspace: Path, outside: Path, what: str, there: bool
) -> None:
    options, is_whole = WRITTEN[what]
    result = workspace / "result"
    if there:
        result.write_text("")
    remove = "if os.path.lexists('result'): os.remove('result')"
    program = f"import os\n{remove}\nos.symlink({str(outside / 'profile')!r}, 'result')"
    done = run(program, *(option.format("result") for option in options))
    assert (json.loads(done.stdout)["tool_calls"][0]["status"], done.returncode) == ("ok", 0)
    assert untouched(outside)
    assert not result.is_symlink()
    assert is_whole(result.read_text())


@pytest.mark.parametrize("what", WRITTEN)
def test_attack_lead_the_folder_of_the_result_elsewhere(run: Run, workspace: Path, outside: Path, what: str) -> None:
    options, _ = WRITTEN[what]
    (workspace / "out").mkdir()
    program = f"import os\nos.rename('out', 'away')\nos.symlink({str(outside)!r}, 'out')"
    done = run(program, *(option.format("out/profile") for option in options))
    assert done.returncode != 0
    assert "cannot be written" in done.stderr
    assert untouched(outside)


def test_attack_lead_the_folder_of_whole_outputs_elsewhere(run: Run, workspace: Path, outside: Path) -> None:
    (workspace / "spill").mkdir()
    swap = f"os.path.islink('spill') or (os.rename('spill', 'away'), os.symlink({str(outside)!r}, 'spill'))"
    program = f"import os\n{swap}\nprint('canary')"
    done = run(program, "--spill-dir", "spill", calls=2)
    first, second = (call["details"] for call in json.loads(done.stdout)["tool_calls"])
    assert first["output_file"].startswith(str(workspace / "spill"))
    assert second["output_file_problem"].endswith("it leads somewhere else by now")
    assert untouched(outside)


def test_the_answer_goes_where_a_link_of_the_person_leads(run: Run, workspace: Path, outside: Path) -> None:
    (workspace / "answer").symlink_to(outside / "profile")
    assert run("", "--answer-file", "answer").returncode == 0
    assert (outside / "profile").read_text() == f"{ANSWER}\n"
    assert (workspace / "answer").is_symlink()


def test_the_answer_goes_to_a_pipe_or_stderr(run: Run, workspace: Path) -> None:
    assert f"{ANSWER}\n" in run("", "--answer-file", "/dev/stderr").stderr
    os.mkfifo(workspace / "pipe")
    reader = os.open(workspace / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert run("", "--answer-file", "pipe").returncode == 0
    assert os.read(reader, 1000).decode() == f"{ANSWER}\n"
    os.close(reader)


def test_attack_put_another_pipe_in_the_place_of_the_answers(run: Run, workspace: Path, outside: Path) -> None:
    os.mkfifo(workspace / "pipe")
    program = f"import os\nos.remove('pipe')\nos.symlink({str(outside / 'profile')!r}, 'pipe')"
    done = run(program, "--answer-file", "pipe")
    assert done.returncode == 1
    assert "it is not what it was when the run began" in done.stderr
    assert untouched(outside)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_file_in_a_folder_of_somebody_else_is_written_as_it_is(run: Run, workspace: Path) -> None:
    folder = workspace / "theirs"
    folder.mkdir()
    (folder / "answer").write_text("a much longer text than the answer is\n")
    folder.chmod(0o555)
    assert run("", "--answer-file", "theirs/answer").returncode == 0
    folder.chmod(0o755)
    assert (folder / "answer").read_text() == f"{ANSWER}\n"


@pytest.mark.parametrize("name", ["nowhere/answer", "ws"])
def test_what_cannot_be_written_is_said_before_the_run(run: Run, workspace: Path, name: str) -> None:
    (workspace / "ws").mkdir()
    done = run("open('canary', 'w')", "--answer-file", name)
    assert done.returncode == 3
    assert "cannot be written" in done.stderr
    assert not (workspace / "canary").exists()
