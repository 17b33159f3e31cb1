"""The Nth system call of a kind fails, for N = 1, 2, ...: the run ends, says so, and calls no broken record whole."""

import errno
import json
import os
import shutil
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from tests.conftest import Faults
    from tests.hard.conftest import Ended, Lab, MakeLab

ERRORS = ("ENOSPC", "EIO", "EMFILE", "EINTR", "EAGAIN")

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


@dataclass(frozen=True)
class Fault:
    call: str
    error: str
    """An errno's name; SHORT: half is written, and no error."""
    lasts: bool = False
    """Every call from that one on fails, as with a disk that stays full."""
    everywhere: bool = False
    """Calls about any file once the run has begun; else those about the record's folder, from the very start."""


@dataclass(frozen=True)
class Faulty:
    ended: "Ended"
    seen: int
    """Calls of the kind."""
    failed: int


MakeSmall: TypeAlias = Callable[[object], "Lab"]
Break: TypeAlias = Callable[..., Faulty]


@pytest.fixture
def make_small(make_lab: "MakeLab") -> Callable[[object], "Lab"]:
    """Labs whose task is small: it is done some hundred times."""

    def make(name: object) -> "Lab":
        lab = make_lab(name)
        lab.write_script((lab.folder / "small.yaml").read_text())
        return lab

    return make


@pytest.fixture
def run_with(failing_calls: Path) -> Break:
    """Runs the task with the Nth call failing; 0: none, they are counted."""

    def run(lab: "Lab", fault: Fault, nth: int, *flags: str, env: Mapping[str, str] | None = None) -> Faulty:
        seen = lab.folder / "seen"
        seen.write_bytes(bytes(32))
        environment = {**_environment(failing_calls, lab, fault, nth, seen), **(env or {})}
        ended = lab.run(*flags, env=environment, timeout_s=60)
        _, _, calls, failed = struct.unpack("iill", seen.read_bytes()[:24])
        return Faulty(ended, calls, failed)

    return run


def _environment(library: Path, lab: "Lab", fault: Fault, nth: int, seen: Path) -> Mapping[str, str]:
    return {
        "LD_PRELOAD": str(library),
        "FAULT_CALL": fault.call,
        "FAULT_NTH": str(nth),
        "FAULT_ERRNO": str(0 if fault.error == "SHORT" else getattr(errno, fault.error)),
        "FAULT_ON": "0" if fault.lasts else "1",
        "FAULT_BELOW": "" if fault.everywhere else str(lab.out),
        "FAULT_ARM": str(lab.folder / "script.yaml") if fault.everywhere else "",
        "FAULT_SEEN": str(seen),
    }


AT_EACH = [
    Fault("write", "ENOSPC"),
    Fault("fsync", "EIO"),
    Fault("rename", "EIO"),
    Fault("open", "EMFILE"),
    *(Fault(call, "EIO") for call in ("close", "ftruncate", "flock", "read", "unlink")),
]
"""One error for each call about the record, at every place where it is made."""

AT_SOME = [
    *(Fault(call, error) for call in ("write", "fsync") for error in ("EIO", "ENOSPC", "EINTR")),
    *(Fault(call, error) for call in ("rename", "open") for error in ERRORS),
    *(Fault(call, "ENOSPC", lasts=True) for call in ("write", "fsync", "rename", "open", "ftruncate")),
    Fault("write", "SHORT"),
    Fault("close", "EINTR"),
]
"""The other errors, of which each place makes the same."""

AFAR = ("fork", "pipe", "socketpair", "sendmsg")
"""Calls that have nothing to do with the record, which is closed whatever becomes of them."""

ANYWHERE = [
    *(Fault("open", error, everywhere=True) for error in ("EMFILE", "EIO")),
    *(Fault("write", error, everywhere=True) for error in ("ENOSPC", "EIO", "EAGAIN", "EINTR", "SHORT")),
    *(Fault("fork", error, everywhere=True) for error in ("EAGAIN", "ENOMEM")),
    *(Fault(call, "EMFILE", everywhere=True) for call in ("pipe", "mkdir", "socketpair")),
    Fault("sendmsg", "ENOMEM", everywhere=True),
    *(Fault(call, "EIO", everywhere=True) for call in ("close", "read", "rename", "fsync")),
    *(Fault(call, "EMFILE", lasts=True, everywhere=True) for call in ("open", "pipe", "socketpair")),
    Fault("write", "ENOSPC", lasts=True, everywhere=True),
]


def _name(fault: Fault) -> str:
    return f"{fault.call}-{fault.error}{'-lasting' if fault.lasts else ''}{'-anywhere' if fault.everywhere else ''}"


@pytest.mark.hard
@pytest.mark.parametrize("fault", AT_EACH, ids=_name)
def test_every_call_about_the_record_fails_once(make_small: MakeSmall, run_with: Break, fault: Fault) -> None:
    for nth in count(1):
        lab = make_small(nth)
        done = run_with(lab, fault, nth)
        _check(lab, fault, done.ended)
        if not done.failed:
            assert done.ended.code == 0
            assert done.seen == nth - 1 > 0
            return


@pytest.mark.hard
@pytest.mark.parametrize("fault", [*(fault for fault in AT_SOME if fault not in AT_EACH), *ANYWHERE], ids=_name)
def test_some_of_these_calls_fail(make_small: MakeSmall, run_with: Break, fault: Fault) -> None:
    lab = make_small("none")
    seen = run_with(lab, fault, 0).seen
    lab.check_success()
    for nth in _spread(seen, at_most=5):
        lab = make_small(nth)
        _check(lab, fault, run_with(lab, fault, nth).ended)


TWO_HANGING_CALLS = """
turns:
  - tool_calls:
      - {id: one, name: bash, arguments: {command: sh hang.sh}}
      - {id: two, name: bash, arguments: {command: sh hang.sh}}
"""


@pytest.mark.hard
@pytest.mark.parametrize("lasts", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("task", ["small", "time-out", "server"])
def test_a_run_that_gets_no_more_threads_closes_its_record(
    make_small: MakeSmall, run_with: Break, faults: "Faults", task: str, lasts: bool
) -> None:
    """The watch for signals, the time limit, calls, their limits, requests, patience: each has a thread of its own."""
    server = faults.serve(faults.answer("Done."))
    flags = {
        "small": (),
        "time-out": ("--timeout", "1.5"),
        "server": ("--model", "openai-chat:m", "--base-url", f"{server.url}/v1"),
    }
    env = {"FAULT_ARM": "", "OPENAI_API_KEY": "sk-test-0123456789abcdef"}
    for nth in count(1):
        lab = make_small(nth)
        if task == "time-out":
            lab.write_script(TWO_HANGING_CALLS)
            (lab.workspace / "hang.sh").write_text("sleep 60\n")
        done = run_with(lab, Fault("pthread_create", "EAGAIN", lasts, everywhere=True), nth, *flags[task], env=env)
        _check_closed(lab, done.ended)
        if not done.failed:
            assert done.ended.code == (124 if task == "time-out" else 0)
            assert nth > 3
            return


def _check_closed(lab: "Lab", done: "Ended") -> None:
    """Nothing is left of it, and either nothing had begun or the record stands and says how it ended."""
    assert lab.orphans() == []
    assert "Traceback" not in done.stderr
    assert done.duration_s < 30
    if lab.transcript.exists():
        lab.check_whole(exit_code=done.code)
        assert os.listdir(lab.out) == ["t.json"]
        return
    assert done.code in (3, 70)
    assert done.stderr.splitlines()[-1].startswith("ci-agent: "), done.stderr
    assert not lab.journal.exists() or lab.journal.stat().st_size == 0
    assert lab.effects() == set()


@pytest.mark.parametrize(
    ("fault", "nth"),
    [
        (Fault("write", "ENOSPC", lasts=True), 5),
        (Fault("fsync", "EIO"), 4),
        (Fault("rename", "EIO"), 1),
        (Fault("open", "EMFILE"), 1),
        (Fault("fork", "EAGAIN", everywhere=True), 1),
    ],
    ids=lambda value: _name(value) if isinstance(value, Fault) else str(value),
)
def test_a_fault_that_is_told(make_small: MakeSmall, run_with: Break, fault: Fault, nth: int) -> None:
    lab = make_small("lab")
    done = run_with(lab, fault, nth)
    assert done.failed
    _check(lab, fault, done.ended)


def _spread(total: int, at_most: int) -> Iterator[int]:
    """Numbers from 1 to the total, both included, as evenly as integers are."""
    steps = min(total, at_most) - 1
    yield from sorted({1 + number * (total - 1) // max(steps, 1) for number in range(steps + 1)})


def _check(lab: "Lab", fault: Fault, done: "Ended") -> None:
    assert lab.orphans() == []
    if fault.call in AFAR:
        _check_closed(lab, done)
    if done.code == 0:
        _check_success(lab, fault)
    else:
        _check_failure(lab, fault, done)
    if fault.call != "unlink":  # what cannot be removed stays
        assert lab.litter() == []


def _check_success(lab: "Lab", fault: Fault) -> None:
    """Nothing is missing; a fault far from the record may have become a call's error, for the model to read."""
    lab.check_whole()
    calls = json.loads(lab.transcript.read_text())["tool_calls"]
    assert len(calls) == 5
    if not fault.everywhere:
        lab.check_everything_was_done()


def _check_failure(lab: "Lab", fault: Fault, done: "Ended") -> None:
    """One line for a person; the record, as far as it came, is in order and does not say that all went well."""
    assert "Traceback" not in done.stderr
    told = done.stderr.splitlines()[-1:] or ["nothing"]
    says_nothing = fault.call == "write" and fault.everywhere  # stderr takes nothing either
    assert told[0].startswith("ci-agent: ") or lab.transcript.exists() or says_nothing
    # 5: what was not denied failed. 120: Python's own, when even /dev/null takes nothing.
    assert done.code in (1, 3, 4, 5, 70) or (says_nothing and done.code == 120)
    if lab.transcript.exists():
        lab.check_whole(exit_code=None)
        # 70, 120: the system gave out when the record was already closed; then a good run is called a bad one.
        assert _result(lab)["exit_code"] == done.code or lab.journal.exists() or done.code in (70, 120)
    if lab.journal.exists() and os.path.getsize(lab.journal) and lab.read_journal().records:
        lab.recovered()
    else:
        assert lab.transcript.exists() or lab.effects() == set()


def _result(lab: "Lab") -> Any:
    return json.loads(lab.transcript.read_text())["result"]
