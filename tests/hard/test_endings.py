"""However a run ends, what was asked for and what became of it are both on record; and it ends when it has to."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent.transcript.verify import verify

if TYPE_CHECKING:
    from tests.conftest import Faults
    from tests.hard.conftest import Lab

TWO_CALLS = """
      - {id: one, name: bash, arguments: {command: sh hang.sh}}
      - {id: three, name: write, arguments: {path: done/three, content: x}}
"""

ENDINGS = {
    "completed": ("", ["--fail-on-denied", "never"], 0),
    "denied": ("", ["--fail-on-denied", "any"], 5),
    "turns": ("", ["--max-turns", "2"], 6),
    "calls": ("", ["--max-tool-calls", "3"], 6),
    "provider": ("  - error: {message: gone, retryable: false}\n", [], 4),
    "script-used-up": ("  - tool_calls: [{id: again, name: ls, arguments: {path: .}}]\n", [], 4),
    "cut-off": (
        "  - {text: half, stop_reason: length, tool_calls: [{id: x, name: ls, arguments: {path: .}}]}\n",
        [],
        4,
    ),
    "schema": ("", ["--output-schema", "schema.json"], 4),
    "time": (f"  - tool_calls:{TWO_CALLS}", ["--timeout", "2"], 124),
}


@pytest.mark.hard
@pytest.mark.parametrize("ending", ENDINGS)
def test_there_are_as_many_results_as_calls_however_the_run_ends(lab: "Lab", ending: str) -> None:
    more, flags, code = ENDINGS[ending]
    script = (lab.folder / "script.yaml").read_text()
    lab.write_script(script.replace("  - text: Done.\n", more) if more else script)
    (lab.workspace / "hang.sh").write_text("sleep 60\n")
    (lab.workspace / "schema.json").write_text('{"type": "object"}')
    done = lab.run(*flags)
    assert done.code == code, done.stderr
    check_each_call_has_its_result(lab)


@pytest.mark.hard
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_there_are_as_many_results_as_calls_when_a_signal_ends_the_run(lab: "Lab", number: signal.Signals) -> None:
    lab.write_script(f"turns:\n  - tool_calls:{TWO_CALLS}")
    (lab.workspace / "hang.sh").write_text("touch begun; sleep 60\n")
    with lab.start(lab.argv()) as process:
        _wait_for(lab.workspace / "begun", process)
        process.send_signal(number)
        assert process.wait(timeout=110) == 128 + number
    assert [call["status"] for call in check_each_call_has_its_result(lab)] == ["cancelled", "cancelled"]


def check_each_call_has_its_result(lab: "Lab") -> Any:
    """Whole, and every call of a message has one entry and one message as its answer; returns the calls."""
    assert verify(lab.transcript) == []
    document = json.loads(lab.transcript.read_text())
    asked = [part["id"] for message in document["messages"] for part in message["content"] if "name" in part]
    answers = [message["tool_call_id"] for message in document["messages"] if message["role"] == "tool_result"]
    calls = document["tool_calls"]
    assert asked == answers == [call["id"] for call in calls]
    assert sum(document["result"]["tool_calls"].values()) == len(calls)
    assert all(call["content"] and call["duration_s"] is not None for call in calls)
    assert lab.orphans() == []
    return calls


def test_a_call_in_whose_midst_the_run_is_killed_is_on_record_as_begun(lab: "Lab") -> None:
    lab.write_script(SCRIPT_OF_ONE)
    (lab.workspace / "hang.sh").write_text("touch done/one; sleep 60\n")
    with lab.start(lab.argv()) as process:
        _wait_for(lab.workspace / "done" / "one", process)
        process.kill()
        assert process.wait(timeout=110) == -signal.SIGKILL
    assert lab.effects() == {"one"}
    assert lab.orphans() == []
    call = lab.recovered()["tool_calls"][0]
    assert (call["id"], call["decision"]["effect"], call["status"]) == ("one", "allow", "unknown")


SCRIPT_OF_ONE = "turns:\n  - tool_calls: [{id: one, name: bash, arguments: {command: sh hang.sh}}]\n  - text: Done.\n"

DEADLINE = ("--timeout", "3")

STUBBORN = """\
trap '' TERM INT HUP
(trap '' TERM INT HUP; setsid sleep 60) &
while :; do sleep 1; done
"""


@pytest.mark.hard
def test_a_deadline_holds_while_a_command_ignores_that_it_is_to_end(lab: "Lab") -> None:
    lab.write_script(SCRIPT_OF_ONE)
    (lab.workspace / "hang.sh").write_text(STUBBORN)
    _check_deadline(lab, *DEADLINE)
    assert [call["status"] for call in check_each_call_has_its_result(lab)] == ["cancelled"]


@pytest.mark.hard
def test_a_deadline_holds_while_the_scripted_model_thinks(lab: "Lab") -> None:
    lab.write_script("turns: [{text: Done., delay_s: 60}]")
    _check_deadline(lab, *DEADLINE)


@pytest.mark.hard
@pytest.mark.parametrize("kind", ["words-for-ever", "no-first-byte", "silence"])
def test_a_deadline_holds_while_a_server_streams_or_says_nothing(lab: "Lab", faults: "Faults", kind: str) -> None:
    whole = faults.chat("word")
    start = faults.head(200, content_type="text/event-stream")
    word = whole.split(b"\n\n")[0] + b"\n\n"
    steps: dict[str, list[Any]] = {
        "words-for-ever": [start, *[word, 0.2] * 100],
        "no-first-byte": ["hang"],
        "silence": [start, word, "hang"],
    }
    server = faults.serve(steps[kind])
    model = ("--model", "openai-chat:m", "--base-url", f"{server.url}/v1")
    _check_deadline(lab, *DEADLINE, *model, env={"OPENAI_API_KEY": "sk-test-0123456789abcdef"})


def _check_deadline(lab: "Lab", *flags: str, env: dict[str, str] | None = None) -> None:
    """A deadline of three seconds, over within six; what starting Python takes on a busy machine is not counted."""
    done = lab.run(*flags, env=env)
    assert done.code == 124, done.stderr
    document = json.loads(lab.transcript.read_text())
    assert document["result"]["reason"] == "timeout"
    assert 3 <= document["run"]["duration_s"] <= 6
    assert verify(lab.transcript) == []
    assert lab.orphans() == []


MEASURED = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
MEASURED += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
"""Started by a small process: memory that a child had of its parent's before its exec counts, too."""


@pytest.mark.hard
def test_two_gigabytes_of_output_take_no_memory_and_keep_head_and_tail(lab: "Lab") -> None:
    lab.write_script(SCRIPT_OF_ONE)
    (lab.workspace / "hang.sh").write_text("echo first; yes | head -c 2000000000; echo last\n")
    done = lab.wait_for([sys.executable, "-c", MEASURED, *lab.argv("--tool-timeout", "200")], timeout_s=250)
    assert done.code == 0, done.stderr
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 200_000_000
    call = json.loads(lab.transcript.read_text())["tool_calls"][0]
    text = call["content"][0]["text"]
    assert (call["status"], call["output_bytes"], call["truncated"]) == ("ok", 2_000_000_011, True)
    assert text.startswith("first\ny\n")
    assert "\ny\nlast\n" in text
    assert len(text) < 60_000


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    pause = threading.Event()
    while not path.exists():
        assert process.poll() is None, "the run ended early"
        pause.wait(0.01)
