"""Old records go, and nothing else does."""

import fcntl
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ci_agent.schedule.transcript_folder import new_transcript, recover_killed_runs, remove_old_transcripts

NAMES = [f"2026-01-0{day}T04-17-00.000000Z-0000000{day}.json" for day in range(1, 6)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).write_text("{}")
    return tmp_path


def remove(folder: Path, keep: int) -> list[str]:
    return list(remove_old_transcripts(folder, keep))


def test_names_sort_by_time_and_never_meet(tmp_path: Path) -> None:
    moments = [datetime(2026, 1, 2, 4, 17, 9, microsecond, tzinfo=UTC) for microsecond in range(20)]
    names = [new_transcript(tmp_path, moment).name for moment in moments]
    assert names[0].startswith("2026-01-02T04-17-09.000000Z-")
    assert sorted(names) == names
    first = new_transcript(tmp_path, moments[0])
    assert first.name != names[0]
    first.write_text("{}")
    (tmp_path / NAMES[0]).write_text("{}")
    assert remove(tmp_path, 1) == []
    assert os.listdir(tmp_path) == [first.name]


def test_the_newest_stay(folder: Path) -> None:
    assert remove(folder, 5) == []
    assert sorted(os.listdir(folder)) == NAMES
    assert remove(folder, 2) == []
    assert sorted(os.listdir(folder)) == NAMES[-2:]


def test_the_journal_of_a_killed_run_goes_with_it_and_counts_as_its_run(folder: Path) -> None:
    (folder / NAMES[0]).rename(folder / f"{NAMES[0]}.journal")
    (folder / f"{NAMES[4]}.journal").write_text("")
    remove(folder, 4)
    assert sorted(os.listdir(folder)) == sorted([*NAMES[1:], f"{NAMES[4]}.journal"])


def test_the_journal_of_a_run_that_goes_on_stays_and_it_is_said(folder: Path) -> None:
    journal = folder / f"{NAMES[0]}.journal"
    journal.write_text('{"seq":1}\n')
    with journal.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        (problem,) = remove(folder, 4)
    assert str(journal) in problem
    assert "another run holds" in problem
    assert journal.read_text() == '{"seq":1}\n'


def test_attack_nothing_but_own_records_is_touched(folder: Path, tmp_path: Path) -> None:
    others = [
        "notes.json",
        "2026-01-01.json",
        f"x{NAMES[0]}",
        f"{NAMES[0]}.bak",
        "2020-01-01T00-00-00.000000Z-0000000g.json",
    ]
    for name in others:
        (folder / name).write_text("canary")
    directory, link = "2020-01-01T00-00-00.000000Z-00000000.json", "2020-01-02T00-00-00.000000Z-00000000.json"
    (folder / directory).mkdir()
    (folder / directory / "canary").write_text("canary")
    (folder / link).symlink_to(folder / "notes.json")
    remove(folder, 1)
    assert sorted(os.listdir(folder)) == sorted([*others, NAMES[-1], directory, link])
    assert (folder / directory / "canary").read_text() == "canary"


def test_a_journal_that_cannot_be_used_is_said_and_no_other_is_looked_at(folder: Path) -> None:
    name = "2026-01-06T04-17-00.000000Z-00000006.json.journal"
    (folder / "notes.json.journal").write_text("mine")
    (folder / f"{NAMES[0]}.journal").symlink_to(folder / "notes.json.journal")
    (folder / f"{NAMES[1]}.journal").write_text("kept beside its document")
    (folder / name).write_text("")
    assert list(recover_killed_runs(folder)) == []
    os.link(folder / name, folder / "another")
    (line,) = recover_killed_runs(folder)
    assert line.startswith(f"an earlier run was killed, and there is no record of it but '{folder / name}': ")
    assert "is no journal that this user's runs have made" in line
