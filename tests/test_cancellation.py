import gc
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from ci_agent.cancellation import Cancelled, CancelToken

JOIN_S = 60.0


def test_a_new_token_is_not_cancelled() -> None:
    token = CancelToken()
    token.raise_if_cancelled()
    assert (token.is_cancelled, token.reason, token.wait(0)) == (False, None, False)


def test_the_first_reason_stays() -> None:
    token = CancelToken()
    token.cancel("first")
    token.cancel("second")
    assert (token.is_cancelled, token.reason) == (True, "first")


def test_raise_if_cancelled_carries_the_reason() -> None:
    token = CancelToken()
    token.cancel("SIGTERM")
    with pytest.raises(Cancelled) as caught:
        token.raise_if_cancelled()
    assert caught.value.reason == "SIGTERM"


def test_cancelled_passes_an_except_exception() -> None:
    assert not issubclass(Cancelled, Exception)


def test_cancelling_wakes_a_thread_that_waits_for_ever() -> None:
    token = CancelToken()
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(token.wait()), daemon=True)
    waiter.start()
    token.cancel("stop")
    waiter.join(JOIN_S)
    assert answers == [True]


def test_cancelling_wakes_every_waiter() -> None:
    token = CancelToken()
    waiters = [threading.Thread(target=token.wait, daemon=True) for _ in range(20)]
    for waiter in waiters:
        waiter.start()
    token.cancel("stop")
    for waiter in waiters:
        waiter.join(JOIN_S)
    assert [waiter.is_alive() for waiter in waiters] == [False] * 20


@pytest.mark.parametrize("timeout_s", [0, -1, 1e-9, 1e-6, 1e-3])
def test_a_wait_that_is_over_before_it_began_returns(timeout_s: float) -> None:
    assert [CancelToken().wait(timeout_s) for _ in range(100)] == [False] * 100


def test_waiting_on_a_cancelled_token_returns_at_once() -> None:
    token = CancelToken()
    token.cancel("stop")
    assert token.wait() is True


def test_callbacks_run_once_in_the_thread_that_cancels() -> None:
    token = CancelToken()
    threads: list[threading.Thread] = []
    token.on_cancel(lambda: threads.append(threading.current_thread()))
    canceller = threading.Thread(target=token.cancel, args=["stop"])
    canceller.start()
    canceller.join()
    token.cancel("again")
    assert threads == [canceller]


def test_a_callback_given_after_cancellation_runs_at_once() -> None:
    token = CancelToken()
    token.cancel("stop")
    seen: list[str | None] = []
    leave = token.on_cancel(lambda: seen.append(token.reason))
    leave()
    assert seen == ["stop"]


def test_an_unsubscribed_callback_does_not_run_and_may_leave_twice() -> None:
    token = CancelToken()
    seen: list[str] = []
    leave_first = token.on_cancel(lambda: seen.append("first"))
    token.on_cancel(lambda: seen.append("second"))
    leave_first()
    leave_first()
    token.cancel("stop")
    assert seen == ["second"]


def test_the_same_function_given_twice_is_two_subscriptions() -> None:
    token = CancelToken()
    seen: list[str] = []

    def callback() -> None:
        seen.append("called")

    leave = token.on_cancel(callback)
    token.on_cancel(callback)
    leave()
    token.cancel("stop")
    assert seen == ["called"]


def test_a_child_is_cancelled_with_its_parent_and_its_reason() -> None:
    parent = CancelToken()
    grandchild = parent.child().child()
    parent.cancel("stop")
    assert grandchild.reason == "stop"


def test_a_child_of_a_cancelled_parent_is_born_cancelled() -> None:
    parent = CancelToken()
    parent.cancel("stop")
    assert parent.child().reason == "stop"


def test_cancelling_a_child_leaves_its_parent_and_its_siblings() -> None:
    parent = CancelToken()
    child, sibling = parent.child(), parent.child()
    child.cancel("alone")
    assert (child.reason, sibling.reason, parent.reason) == ("alone", None, None)
    parent.cancel("all")
    assert (child.reason, sibling.reason) == ("alone", "all")


def test_a_closed_child_no_longer_follows() -> None:
    parent = CancelToken()
    child = parent.child()
    child.close()
    parent.cancel("stop")
    assert child.is_cancelled is False


def test_a_parent_does_not_hold_on_to_closed_children() -> None:
    parent = CancelToken()
    child = parent.child()
    ghost = weakref.ref(child)
    child.close()
    del child
    gc.collect()
    assert ghost() is None


def test_closing_a_token_without_a_parent_does_nothing() -> None:
    token = CancelToken()
    token.close()
    token.cancel("stop")
    assert token.is_cancelled


def calls_after_a_stampede() -> list[int]:
    """Four threads subscribe ten callbacks each while four others cancel: the numbers of the callbacks called."""
    token = CancelToken()
    calls: list[int] = []
    gate = threading.Barrier(8)

    def subscribe() -> None:
        gate.wait()
        for number in range(10):
            token.on_cancel(partial(calls.append, number))

    def cancel() -> None:
        gate.wait()
        token.cancel("stop")

    threads = [threading.Thread(target=work) for work in [subscribe, cancel] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(calls)


def test_many_threads_that_cancel_and_subscribe_at_once_lose_no_callback() -> None:
    assert [calls_after_a_stampede() for _ in range(50)] == [sorted([*range(10)] * 4)] * 50


OPERATIONS: dict[str, Callable[[CancelToken], object]] = {
    "wait": lambda token: token.wait(0),
    "wait a moment": lambda token: token.wait(1e-4),
    "on_cancel": lambda token: token.on_cancel(lambda: None),
    "on_cancel and leave": lambda token: token.on_cancel(lambda: None)(),
    "child": lambda token: token.child().close(),
    "wait on a child": lambda token: token.child().wait(0),
    "cancel": lambda token: token.cancel("by the thread"),
}


def interrupted_at(operation: Callable[[CancelToken], object], line: int) -> tuple[int, int, bool]:
    """Run in a thread of its own, cancelling inside it before its line number `line`, as a signal handler would:
    how many lines were passed, how often a callback given before was called, whether the operation came back."""
    token = CancelToken()
    calls: list[None] = []
    token.on_cancel(lambda: calls.append(None))
    passed = 0

    def trace(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal passed
        if event == "line":
            passed += 1
            if passed == line:
                token.cancel("by the handler")
        return trace

    def work() -> None:
        sys.settrace(trace)
        try:
            operation(token)
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(JOIN_S)
    return passed, len(calls), not thread.is_alive()


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_signal_handler_may_cancel_between_any_two_lines_of_any_method(name: str) -> None:
    total, _, _ = interrupted_at(OPERATIONS[name], line=-1)
    assert total > 0
    for line in range(1, total + 1):
        _, calls, came_back = interrupted_at(OPERATIONS[name], line)
        assert (line, calls, came_back) == (line, 1, True)


def test_a_callback_that_is_given_while_a_handler_cancels_is_called_once() -> None:
    total, _, _ = interrupted_at(partial(CancelToken.on_cancel, callback=[].clear), line=-1)
    calls: list[int] = []
    for line in range(1, total + 1):
        interrupted_at(partial(CancelToken.on_cancel, callback=partial(calls.append, line)), line)
    assert calls == list(range(1, total + 1))
