"""A command fills the disk that holds the record: the record is whole and closed, and the run ends in order."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent.transcript.recovery import recover
from ci_agent.transcript.verify import verify

if TYPE_CHECKING:
    from tests.hard.conftest import Lab, MakeLab

FILL = "cat /dev/zero > '{0}' 2> /dev/null; df --output=avail '{0}' | tail -1"
PRINT = "head -c 40000 /dev/zero | tr '\\0' x"

SIZE = "16m"


@pytest.fixture
def lab(make_lab: "MakeLab") -> "Lab":
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode != 0:
        pytest.skip("needs unshare, and a user who may mount for himself")
    lab = make_lab("lab")
    (lab.workspace / "fill.sh").write_text(FILL.format(lab.out / "huge"))
    (lab.workspace / "print.sh").write_text(PRINT)
    return lab


def bash(command: str) -> dict[str, Any]:
    return {"name": "bash", "arguments": {"command": command}}


def run_on_a_small_disk(lab: "Lab", messages: list[list[dict[str, Any]]], *flags: str) -> tuple[int, Any]:
    """Exit code and document of a run whose model makes these calls; its record's folder is a disk of its own."""
    code, kept, stderr = run_on_a_disk(lab, f"size={SIZE}", messages, *flags)
    assert (kept / "t.json").exists(), stderr
    return code, json.loads((kept / "t.json").read_text())


def run_on_a_disk(lab: "Lab", options: str, messages: list[list[dict[str, Any]]], *flags: str) -> tuple[int, Path, str]:
    """Exit code, the folder to which the record was copied, stderr."""
    turns = [{"tool_calls": calls} for calls in messages]
    (lab.folder / "script.yaml").write_text(json.dumps({"turns": [*turns, {"text": "Done."}]}))
    kept = lab.folder / "kept"
    kept.mkdir()
    then = f'"$@"; code=$?; cp {lab.out}/t.json* {kept}; exit $code'
    script = f"mount -t tmpfs -o {options} tmpfs {lab.out} || exit 99\n{then}"
    argv = lab.argv("--sandbox", "off", *flags)
    process = lab.start(["unshare", "-rm", "bash", "-c", script, "bash", *argv], stderr=subprocess.PIPE)
    _, stderr = process.communicate(timeout=110)
    if process.returncode == 99:
        pytest.skip("this user may not mount a tmpfs")
    return process.returncode, kept, stderr.decode()


def test_a_disk_that_is_full_has_room_for_the_record(lab: "Lab") -> None:
    calls = [[bash("sh fill.sh now")], *[[bash("sh print.sh now")]] * 10]
    code, document = run_on_a_small_disk(lab, calls)
    texts = [call["content"][0]["text"] for call in document["tool_calls"]]
    assert texts[0].split()[-1] == "0", "the disk was not full"
    assert (code, document["result"]["final_text"]) == (0, "Done.")
    assert [call["status"] for call in document["tool_calls"]] == ["ok"] * 11
    assert verify(lab.folder / "kept" / "t.json") == []
    assert sorted(path.name for path in (lab.folder / "kept").iterdir()) == ["t.json"]


@pytest.mark.hard
def test_a_run_that_goes_on_writing_ends_in_order_while_there_is_room_to_say_so(lab: "Lab") -> None:
    calls = [[bash("sh fill.sh now")], *[[bash("sh print.sh now")]] * 60]
    code, document = run_on_a_small_disk(lab, calls, "--max-turns", "1000")
    assert (code, document["result"]["reason"]) == (6, "limit")
    assert document["result"]["error"] == "the disk that holds the run's record is full"
    statuses = [call["status"] for call in document["tool_calls"]]
    assert 10 < len(statuses) < 60
    assert statuses == ["ok"] * len(statuses)
    assert verify(lab.folder / "kept" / "t.json") == []


@pytest.mark.hard
def test_calls_of_one_message_are_denied_when_the_room_is_used_up(lab: "Lab") -> None:
    calls = [[bash("sh fill.sh now")], [bash("sh print.sh now")] * 60]
    code, document = run_on_a_small_disk(lab, calls)
    assert code == 6
    denied = [call for call in document["tool_calls"] if call["status"] == "denied"]
    assert denied
    assert {call["decision"]["reason"] for call in denied} == {
        "Not executed: the disk that holds the run's record is full."
    }


def test_a_run_whose_document_finds_no_inode_is_recovered_as_what_it_was(lab: "Lab") -> None:
    (lab.workspace / "files.sh").write_text(f"n=0; while : > {lab.out}/f$n; do n=$((n + 1)); done 2> /dev/null; true")
    code, kept, stderr = run_on_a_disk(lab, "size=16m,nr_inodes=50", [[bash("sh files.sh now")]])
    why = f"the transcript '{lab.out}/t.json' cannot be written: No space left on device"
    assert (code, [path.name for path in kept.iterdir()]) == (3, ["t.json.journal"])
    assert why in stderr
    assert verify(kept / "t.json.journal") == []
    result = json.loads(recover(kept / "t.json").read_text())["result"]
    assert (result["reason"], result["exit_code"], result["error"]) == ("completed", 3, why)
    assert verify(kept / "t.json") == []
