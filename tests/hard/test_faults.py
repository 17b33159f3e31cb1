"""The Nth system call of a kind fails, for N = 1, 2, ...: the run ends, says so, and calls no broken record whole."""

import errno
import json
import os
import shutil
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from forked_command import ForkedCommand

if TYPE_CHECKING:
    from tests.conftest import Faults
    from tests.hard.conftest import Ended, Lab, MakeLab

ERRORS = ("ENOSPC", "EIO", "EMFILE", "EINTR")

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
    elsewhere: bool = False
    """Calls about all but the record's folder once the run has begun (with those that last, about it, too); else those
    about it, from the very start."""


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
def run_with(failing_calls: Path, failing_command: ForkedCommand) -> Break:
    """Runs the task with the Nth call failing; 0: none, they are counted. `anew`: from the very start of Python."""

    def run(lab: "Lab", fault: Fault, nth: int, *flags: str, anew: bool = False, **more: str) -> Faulty:
        seen = lab.folder / "seen"
        seen.write_bytes(bytes(32))
        environment = {**_environment(failing_calls, lab, fault, nth, seen), **more}
        ended = lab.run(*flags, env=environment, forked=None if anew else failing_command.run)
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
        "FAULT_BELOW": "" if fault.lasts and fault.elsewhere else f"{'!' * fault.elsewhere}{lab.out}",
        "FAULT_ARM": str(lab.folder / "script.yaml") if fault.elsewhere else "",
        "FAULT_SEEN": str(seen),
    }


CALLS = ("write", "fsync", "rename", "open", "fork")
"""What a record is made of, and what makes commands."""

ABOUT_THE_RECORD = [
    *(Fault(call, error) for call in CALLS for error in (*ERRORS, "EAGAIN") if call != "fork"),
    *(Fault(call, "ENOSPC", lasts=True) for call in ("write", "fsync", "rename", "open", "ftruncate")),
    *(Fault(call, "EIO") for call in ("close", "ftruncate", "flock", "read", "unlink")),
    Fault("write", "SHORT"),
    Fault("close", "EINTR"),
]

ELSEWHERE = [
    *(Fault(call, error, elsewhere=True) for call in CALLS for error in ERRORS),
    *(Fault(call, "EAGAIN", elsewhere=True) for call in ("write", "fork")),
    *(Fault(call, "ENOSPC", lasts=True, elsewhere=True) for call in ("write", "fsync")),
    *(Fault(call, "EMFILE", lasts=True, elsewhere=True) for call in ("fork", "pipe", "socketpair")),
    *(Fault(call, "EMFILE", elsewhere=True) for call in ("pipe", "mkdir", "socketpair")),
    *(Fault(call, "ENOMEM", elsewhere=True) for call in ("fork", "sendmsg")),
    Fault("write", "SHORT", elsewhere=True),
]

AT_SOME = [
    *(Fault(call, "EIO", elsewhere=True) for call in ("close", "read")),
    Fault("open", "EMFILE", lasts=True, elsewhere=True),
]
"""Calls by the hundred, most of them about /proc, a pipe or a module."""

AFAR = ("fork", "pipe", "socketpair", "sendmsg")
"""Calls that have nothing to do with the record, which is closed whatever becomes of them."""

SHARES = 4
"""Of the calls that there are most of, each in a test of its own, so that several processes share them."""


def _name(fault: Fault) -> str:
    return f"{fault.call}-{fault.error}{'-lasting' if fault.lasts else ''}{'-elsewhere' if fault.elsewhere else ''}"


@pytest.mark.hard
@pytest.mark.parametrize("fault", ABOUT_THE_RECORD, ids=_name)
def test_every_call_about_the_record_fails_once(make_small: MakeSmall, run_with: Break, fault: Fault) -> None:
    for nth in count(1):
        lab = make_small(nth)
        done = run_with(lab, fault, nth)
        _check(lab, fault, done.ended)
        if not done.failed:
            lab.check_success()
            assert done.seen == nth - 1 > 0
            return


def _in_shares(faults: Iterable[Fault]) -> list[Any]:
    """Each fault with the first call that fails and the step to the next one."""
    steps = [(fault, SHARES if fault.call == "open" else 1) for fault in faults]
    return [
        pytest.param(fault, first, step, id=_name(fault) if step == 1 else f"{_name(fault)}-{first}")
        for fault, step in steps
        for first in range(1, step + 1)
    ]


@pytest.mark.hard
@pytest.mark.parametrize(("fault", "first", "step"), _in_shares(ELSEWHERE))
def test_every_call_of_a_run_fails_once(
    make_small: MakeSmall, run_with: Break, fault: Fault, first: int, step: int
) -> None:
    for nth in count(first, step):
        lab = make_small(nth)
        done = run_with(lab, fault, nth)
        _check(lab, fault, done.ended)
        if not done.failed:
            lab.check_success()
            assert nth > step
            return


@pytest.mark.hard
@pytest.mark.parametrize("fault", AT_SOME, ids=_name)
def test_some_of_these_calls_fail(make_small: MakeSmall, run_with: Break, fault: Fault) -> None:
    _check_some(make_small, run_with, fault, at_most=5 if fault.lasts else 20)


@pytest.mark.hard
@pytest.mark.parametrize("fault", [*(fault for fault in ELSEWHERE if fault.call == "open"), *AT_SOME], ids=_name)
def test_some_of_these_calls_fail_while_modules_are_loaded(
    make_small: MakeSmall, run_with: Break, fault: Fault
) -> None:
    _check_some(make_small, run_with, fault, at_most=5, anew=True)


def _check_some(make_small: MakeSmall, run_with: Break, fault: Fault, at_most: int, *, anew: bool = False) -> None:
    lab = make_small("none")
    seen = run_with(lab, fault, 0, anew=anew).seen
    lab.check_success()
    for nth in _spread(seen, at_most):
        lab = make_small(nth)
        _check(lab, fault, run_with(lab, fault, nth, anew=anew).ended)


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
        done = run_with(lab, Fault("pthread_create", "EAGAIN", lasts, elsewhere=True), nth, *flags[task], **env)
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
        (Fault("fork", "EAGAIN", elsewhere=True), 1),
    ],
    ids=lambda value: _name(value) if isinstance(value, Fault) else str(value),
)
def test_a_fault_that_is_told(make_small: MakeSmall, run_with: Break, fault: Fault, nth: int) -> None:
    """By a fork as by a start of Python, which some thousand runs would take too long for."""
    told = []
    for anew in (False, True):
        lab = make_small(anew)
        done = run_with(lab, fault, nth, anew=anew)
        assert done.failed
        _check(lab, fault, done.ended)
        says = [line for line in done.ended.stderr.replace(str(lab.folder), "").splitlines() if "ci-agent: " in line]
        told.append((done.seen, done.failed, done.ended.code, says, sorted(os.listdir(lab.out))))
    assert told[0] == told[1]


@pytest.mark.hard
@pytest.mark.parametrize("call", [*CALLS, "close", "ftruncate", "flock", "read", "unlink"])
def test_a_fork_makes_the_same_calls_as_a_run_that_is_started_anew(
    make_small: MakeSmall, run_with: Break, call: str
) -> None:
    fault = Fault(call, "EIO")
    forked, anew = (run_with(make_small(anew), fault, 0, anew=anew) for anew in (False, True))
    assert forked.ended.code == anew.ended.code == 0
    assert forked.seen == anew.seen > 0


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
    if not fault.elsewhere:
        lab.check_everything_was_done()


def _check_failure(lab: "Lab", fault: Fault, done: "Ended") -> None:
    """One line for a person; the record, as far as it came, is in order and does not say that all went well."""
    assert "Traceback" not in done.stderr
    told = done.stderr.splitlines()[-1:] or ["nothing"]
    says_nothing = fault.call == "write" and fault.elsewhere  # stderr takes nothing either
    assert told[0].startswith("ci-agent: ") or lab.transcript.exists() or says_nothing
    # 5: what was not denied failed. 120: Python's own, when even /dev/null takes nothing.
    assert done.code in (1, 3, 4, 5, 70) or (says_nothing and done.code == 120)
    if lab.transcript.exists():
        lab.check_whole(exit_code=None)
        # The system gave out when the record was already closed; then a good run is called a bad one.
        gave_out = done.code in (70, 120) or (done.code == 3 and fault.lasts)
        assert _result(lab)["exit_code"] == done.code or lab.journal.exists() or gave_out
    if lab.journal.exists() and os.path.getsize(lab.journal) and lab.read_journal().records:
        lab.recovered()
    else:
        assert lab.transcript.exists() or lab.effects() == set()


def _result(lab: "Lab") -> Any:
    return json.loads(lab.transcript.read_text())["result"]
