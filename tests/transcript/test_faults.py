"""Each system call of a record's life fails once: the run is told, and no acknowledged record is lost."""

import errno
import fcntl
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ci_agent.errors import CIAgentError, ConfigurationError, RecordError
from ci_agent.events import AgentEvent
from ci_agent.transcript.journal import Journal, read_journal
from ci_agent.transcript.place import find_place, finish_record, open_journal
from ci_agent.transcript.recorder import Recorder
from ci_agent.transcript.recovery import recover
from ci_agent.transcript.run_facts import RunEnding
from ci_agent.transcript.verify import verify

CALLS = (
    *((os, name) for name in ("open", "write", "fsync", "replace", "ftruncate", "unlink", "dup", "fstat", "rmdir")),
    (fcntl, "flock"),
)


class FailOnce:
    """Counts the system calls of CALLS and lets one of them fail."""

    def __init__(self, at: int, error: int) -> None:
        self.at = at
        self.error = error
        self.seen = 0

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            self.seen += 1
            if self.seen == self.at:
                raise OSError(self.error, os.strerror(self.error))
            return call(*arguments, **named)

        return wrapped


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(errno.ENOSPC, id="ENOSPC"),
        pytest.param(errno.EIO, id="EIO", marks=pytest.mark.slow),
        pytest.param(errno.EMFILE, id="EMFILE", marks=pytest.mark.slow),
    ],
)
def test_a_fault_anywhere_is_told_and_loses_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    start_recording: Callable[[Journal], Recorder],
    events: list[AgentEvent],
    error: int,
) -> None:
    for at in count(1):
        transcript = tmp_path / str(at) / "t.json"
        transcript.parent.mkdir()
        fault = FailOnce(at, error)
        acknowledged = 0
        with monkeypatch.context() as patch:
            for module, name in CALLS:
                patch.setattr(module, name, fault.wrap(getattr(module, name)))
            problem: CIAgentError | None = None
            journal: Journal | None = None
            try:
                journal, _ = open_journal(find_place(transcript))
                recorder = start_recording(journal)
                for event in events[:7]:  # up to the decision that lets the first call run
                    recorder(event)
                    acknowledged = journal.records
                recorder.run_end(RunEnding("completed", 0))
                finish_record(journal, find_place(transcript))
            except CIAgentError as raised:
                problem = raised
            if journal is not None:
                journal.close()
        if fault.seen < at:
            assert at > 20
            assert problem is None
            return
        check_what_is_left(transcript, acknowledged, problem)
    raise AssertionError("the run never ends")


def check_what_is_left(transcript: Path, acknowledged: int, problem: CIAgentError | None) -> None:
    """Told, or whole; before the first record it is a matter of configuration."""
    if problem is not None:
        assert isinstance(problem, RecordError if acknowledged else (ConfigurationError, RecordError))
        assert str(transcript.parent) in str(problem)
    if problem is None or transcript.exists():
        assert verify(transcript) == []
    elif acknowledged:
        assert len(read_journal(transcript.with_name("t.json.journal")).records) >= acknowledged
        assert recover(transcript) == transcript
    assert [name for name in os.listdir(transcript.parent) if name.endswith(".tmp")] == []
