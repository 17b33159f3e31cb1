"""Two runs and one record, neighbours that tamper with it, and whatever else lies where it was to stand."""

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from forked_command import ForkedCommand

from ci_agent.transcript.journal_lines import read_lines
from ci_agent.transcript.verify import verify

if TYPE_CHECKING:
    from tests.hard.conftest import Lab, MakeLab

HELD = """
turns:
  - tool_calls: [{id: one, name: bash, arguments: {command: sh hold.sh}}]
  - text: Done.
"""

HOLD = 'touch done/one; while [ ! -e "done/go" ]; do sleep 0.05; done\n'

Meddle: TypeAlias = Callable[["Lab"], object]


def hold(lab: "Lab") -> None:
    lab.write_script(HELD)
    (lab.workspace / "hold.sh").write_text(HOLD)


def go(lab: "Lab") -> None:
    (lab.workspace / "done" / "go").touch()


def wait_until(holds: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(3000):
        if holds():
            return
        pause.wait(0.02)
    raise AssertionError("it never came to that")


@pytest.mark.hard
@pytest.mark.parametrize("shared", ["transcript", "lock"])
def test_of_ten_runs_that_start_at_once_one_runs_and_nine_exit_8(lab: "Lab", shared: str) -> None:
    hold(lab)
    processes = [
        lab.start(lab.argv(*_flags(lab, shared, number)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for number in range(10)
    ]
    wait_until(lambda: sum(process.poll() is not None for process in processes) >= 9)
    go(lab)
    ended = [(process.communicate(timeout=110), process.returncode) for process in processes]
    assert sorted(code for _, code in ended) == [0] + [8] * 9
    for (stdout, stderr), code in ended:
        if code == 8:
            assert stdout == b""
            assert stderr.startswith(b"ci-agent: another run ")
        else:
            assert json.loads(stdout)["result"]["final_text"] == "Done."


def _flags(lab: "Lab", shared: str, number: int) -> list[str]:
    if shared == "transcript":
        return []
    return ["--lock", str(lab.folder / "lock"), "--transcript", str(lab.out / f"{number}.json")]


@pytest.mark.hard
def test_a_run_that_was_killed_blocks_neither_its_lock_nor_its_transcript(
    lab: "Lab", forked_command: ForkedCommand
) -> None:
    hold(lab)
    lock = ("--lock", str(lab.folder / "lock"))
    with lab.start(lab.argv(*lock)) as process:
        wait_until((lab.workspace / "done" / "one").exists)
        assert lab.run(*lock, forked=forked_command.run).code == 8
        process.kill()
    assert process.returncode == -signal.SIGKILL
    done = lab.run(*lock, script="short.yaml", forked=forked_command.run)
    assert done.code == 0, done.stderr
    assert lab.orphans() == []


def _link(path: Path) -> None:
    path.with_name("target").write_text("")
    path.symlink_to("target")


def _dangling_link(path: Path) -> None:
    path.symlink_to("canary")


def _hard_link(path: Path) -> None:
    path.with_name("target").write_text("")
    path.hardlink_to(path.with_name("target"))


def _other_content(path: Path) -> None:
    path.write_text("precious\n")


IN_THE_WAY = [_link, _dangling_link, os.mkfifo, Path.mkdir, _hard_link, _other_content]


@pytest.mark.hard
@pytest.mark.parametrize("name", ["t.json", "t.json.journal", "lock"])
@pytest.mark.parametrize("put", IN_THE_WAY, ids=lambda put: put.__name__.strip("_"))
def test_what_no_run_has_made_is_refused_and_left_alone(
    lab: "Lab", forked_command: ForkedCommand, put: Callable[[Path], None], name: str
) -> None:
    put(lab.out / name)
    before = _state(lab.out)
    done = lab.run("--lock", str(lab.out / "lock"), forked=forked_command.run)
    harmless = (name, put) in [("t.json", _hard_link), ("t.json", _other_content), ("lock", _hard_link)]
    if harmless or (name, put) == ("lock", _other_content):
        assert done.code == 0, done.stderr  # a file is replaced by renaming, a lock's content left alone
        assert (lab.out / "target").exists() == (put is _hard_link)
        return
    assert (done.code, done.stdout, len(done.stderr.splitlines())) == (3, b"", 1), done.stderr
    after = _state(lab.out)
    assert {**after, "lock": before.get("lock")} == {**before, "lock": before.get("lock")}
    assert lab.effects() == set()


def _state(folder: Path) -> dict[str, tuple[int, bytes]]:
    entries = {path.name: path for path in folder.iterdir()}
    return {
        name: (path.lstat().st_mode, path.read_bytes() if path.is_file() and not path.is_symlink() else b"")
        for name, path in entries.items()
    }


def _edit(lab: "Lab") -> None:
    text = lab.journal.read_bytes()
    with lab.journal.open("r+b") as file:
        file.write(text.replace(b'"role":"user"', b'"role":"uzer"'))


def _truncate(lab: "Lab") -> None:
    os.truncate(lab.journal, 0)


def _cut(lab: "Lab") -> None:
    os.truncate(lab.journal, lab.journal.stat().st_size - 40)


def _append(lab: "Lab") -> None:
    with lab.journal.open("ab") as file:
        file.write(b'{"seq":99,"kind":"run_end"}\n')


def _garbage(lab: "Lab") -> None:
    with lab.journal.open("ab") as file:
        file.write(b"\xff\x00" * 5000)


def _remove(lab: "Lab") -> None:
    lab.journal.unlink()


def _replace(lab: "Lab") -> None:
    shutil.copy(lab.journal, lab.out / "copy")
    (lab.out / "copy").rename(lab.journal)


def _move(lab: "Lab") -> None:
    lab.journal.rename(lab.out / "t.json.journal-moved")


def _replace_folder(lab: "Lab") -> None:
    lab.out.rename(lab.folder / "moved")
    lab.out.mkdir()


@pytest.mark.hard
@pytest.mark.parametrize(
    "meddle",
    [_edit, _truncate, _cut, _append, _garbage, _remove, _replace, _move, _replace_folder],
    ids=lambda meddle: meddle.__name__.strip("_"),
)
def test_a_journal_that_a_neighbour_changes_ends_the_run_tampered(
    lab: "Lab", forked_command: ForkedCommand, meddle: Meddle
) -> None:
    done = _meddled(lab, forked_command, meddle)
    assert done.code == 9, done.stderr
    document = json.loads(lab.transcript.read_text())
    assert (document["result"]["reason"], document["result"]["exit_code"]) == ("tampered", 9)
    assert verify(lab.transcript) == []
    assert [call["id"] for call in document["tool_calls"]] == ["one"]
    assert lab.litter() == []


def _vanish(lab: "Lab") -> None:
    shutil.rmtree(lab.out)


def _move_folder(lab: "Lab") -> None:
    lab.out.rename(lab.folder / "moved")


def _file_for_folder(lab: "Lab") -> None:
    shutil.rmtree(lab.out)
    lab.out.write_text("a file")


@pytest.mark.hard
@pytest.mark.parametrize("meddle", [_vanish, _move_folder, _file_for_folder], ids=lambda meddle: meddle.__name__)
def test_a_record_whose_folder_is_gone_is_put_back_or_aside(
    lab: "Lab", forked_command: ForkedCommand, meddle: Meddle
) -> None:
    done = _meddled(lab, forked_command, meddle)
    assert done.code == 9, done.stderr
    assert "Traceback" not in done.stderr
    place = lab.transcript
    if meddle is _file_for_folder:
        [place] = Path(lab.environment["TMPDIR"]).glob("ci-agent-record-*/t.json")
        assert done.document["result"]["error"].endswith(f"; it is '{place}'")
    assert json.loads(place.read_text()) == done.document
    assert verify(place) == []
    assert [call["id"] for call in done.document["tool_calls"]] == ["one"]


def _meddled(lab: "Lab", forked_command: ForkedCommand, meddle: Meddle) -> Any:
    """A run, ended, to whose record something was done while a command of it was going on."""
    hold(lab)
    ended: list[Any] = []
    thread = threading.Thread(target=lambda: ended.append(lab.run(forked=forked_command.run)))
    thread.start()
    wait_until((lab.workspace / "done" / "one").exists)
    meddle(lab)
    go(lab)
    thread.join()
    return ended[0]


@pytest.mark.hard
def test_a_journal_cut_anywhere_reads_up_to_there(make_lab: "MakeLab") -> None:
    lab = make_lab()
    assert lab.run("--keep-journal").code == 0
    data = lab.journal.read_bytes()
    whole = read_lines(data.splitlines(keepends=True)).records
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    near = {end + step for end in ends for step in (-2, -1, 0, 1, 2)}
    for size in sorted({*range(0, len(data), 211), *near} & set(range(len(data) + 1))):
        contents = read_lines(data[:size].splitlines(keepends=True))
        kept = sum(end <= size for end in ends)
        assert contents.records == whole[:kept]
        assert contents.dropped_bytes == size - ([0, *ends][kept])
        assert contents.problems == ()


@pytest.mark.hard
@pytest.mark.parametrize("part", range(8))
def test_a_journal_torn_anywhere_is_recovered_by_the_next_run(
    make_lab: "MakeLab", forked_command: ForkedCommand, part: int
) -> None:
    lab = make_lab()
    assert lab.run("--keep-journal", forked=forked_command.run).code == 0
    lines = lab.journal.read_bytes().splitlines(keepends=True)
    lab.transcript.unlink()
    torn = 1 + part * (len(lines) - 2) // 7
    lab.journal.write_bytes(b"".join(lines[:torn]) + lines[torn][: len(lines[torn]) // 2])
    done = lab.run(script="short.yaml", forked=forked_command.run)
    assert done.code == 0, done.stderr
    recovered = lab.out / "t.json.recovered.json"
    assert [str(problem) for problem in verify(recovered)] == [
        "its run did not come to its end: records after the last may be missing"
    ]
    assert verify(lab.transcript) == []
