"""Runs prepared calls on threads, a few at a time, and hands what they report to the thread that asked.

Daemon threads, not a pool's: a tool that never comes back must not keep the process from ending.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Literal, TypeAlias

from ci_agent.agent.results import create_cancelled_tool_result, create_error_tool_result
from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.hooks import ToolCallOutcome
from ci_agent.tool import OnUpdate, ToolResult

Work: TypeAlias = Callable[[CancelToken, OnUpdate], ToolCallOutcome]
"""Runs one call to its end. May raise Cancelled; whatever else it raises ends the run."""

Report: TypeAlias = tuple[int, ToolResult | ToolCallOutcome]
"""The position of the work, with a partial result of it or, once for each, its end."""

_Mail: TypeAlias = tuple[int, ToolResult | ToolCallOutcome | BaseException] | Literal["cancelled", "time is up"]


@dataclass(frozen=True, slots=True)
class _Crew:
    token: CancelToken
    max_parallel: int
    waiting: deque[tuple[int, Work]]
    inbox: SimpleQueue[_Mail]
    patience: threading.Timer
    """Started by cancellation; says when what still runs is to be given up."""
    running: dict[int, threading.Thread] = field(default_factory=dict)


@contextmanager
def run_on_threads(
    work: Sequence[Work], cancel: CancelToken, max_parallel: int, abandon_after_s: float
) -> Iterator[Iterator[Report]]:
    """Gives the reports of the work as they come in; they are over when each piece has ended.

    After cancellation nothing is started any more, and what still runs `abandon_after_s` later is reported as
    cancelled without it. When an exception leaves the block, running work is cancelled and waited for as long as that.
    """
    # A SimpleQueue, because its put() cannot deadlock where a signal handler cancels; and it is read without a
    # timeout, which Python 3.11 may turn into for ever: hence the timer.
    inbox: SimpleQueue[_Mail] = SimpleQueue()
    patience = threading.Timer(abandon_after_s, inbox.put, ["time is up"])
    patience.daemon = True
    crew = _Crew(cancel.child(), max_parallel, deque(enumerate(work)), inbox, patience)
    leave = crew.token.on_cancel(lambda: inbox.put("cancelled"))
    try:
        yield _reports(crew)
    except BaseException:  # raised again: whatever ends the batch, its running tools are told first
        crew.token.cancel("the run is ending")
        _join(crew.running.values(), abandon_after_s)
        raise
    finally:
        leave()
        crew.token.close()
        patience.cancel()


def _reports(crew: _Crew) -> Iterator[Report]:
    _start_waiting(crew)
    while crew.waiting or crew.running:
        match crew.inbox.get():
            case "cancelled":
                _start_patience(crew)
                yield from _give_up_waiting(crew)
            case "time is up":
                yield from _give_up_running(crew)
            case _, BaseException() as error:
                raise error
            case index, ToolResult() as partial if index in crew.running:
                yield index, partial
            case index, ToolCallOutcome() as outcome:
                del crew.running[index]
                yield index, outcome
        _start_waiting(crew)


def _start_patience(crew: _Crew) -> None:
    try:
        crew.patience.start()
    except RuntimeError:  # the system gives no more threads, and without one nobody says when to stop waiting
        crew.inbox.put("time is up")


def _start_waiting(crew: _Crew) -> None:
    while crew.waiting and len(crew.running) < crew.max_parallel and not crew.token.is_cancelled:
        index, work = crew.waiting.popleft()
        thread = threading.Thread(target=_run, args=(index, work, crew), name=f"tool-call-{index}", daemon=True)
        crew.running[index] = thread
        try:
            thread.start()
        except RuntimeError as error:  # the system gives no more threads
            crew.inbox.put((index, create_error_tool_result(f"Not executed: {error}.", "execute")))


def _run(index: int, work: Work, crew: _Crew) -> None:
    try:
        crew.inbox.put((index, work(crew.token, lambda partial: crew.inbox.put((index, partial)))))
    except Cancelled as cancelled:
        outcome = create_cancelled_tool_result(
            "The tool was stopped while it ran; what it had done by then stays.", cancelled.reason
        )
        crew.inbox.put((index, outcome))
    except BaseException as error:  # noqa: BLE001  not swallowed: the thread that asked raises it
        crew.inbox.put((index, error))


def _give_up_waiting(crew: _Crew) -> Iterator[Report]:
    while crew.waiting:
        index, _ = crew.waiting.popleft()
        yield index, create_cancelled_tool_result("Not executed.", crew.token.reason)


def _give_up_running(crew: _Crew) -> Iterator[Report]:
    while crew.running:
        index, _ = crew.running.popitem()
        yield (
            index,
            create_cancelled_tool_result(
                "The tool did not stop when it was told to, and was left behind; it may still be at work.",
                crew.token.reason,
            ),
        )


def _join(threads: Iterable[threading.Thread], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    for thread in threads:
        if thread.is_alive():
            thread.join(max(0.0, deadline - time.monotonic()))
