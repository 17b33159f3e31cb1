"""What cancellation and exceptions do to calls that wait and to calls that run."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from tool_work import never_runs

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.events import AgentEvent, ToolExecutionDecision, ToolExecutionUpdate
from ci_agent.hooks import Decision, Hooks, ProposedToolCall
from ci_agent.json_types import JsonObject
from ci_agent.messages import TextContent
from ci_agent.tool import OnUpdate, ToolResult

if TYPE_CHECKING:
    from tests.agent.conftest import Lab

JOIN_S = 60.0
LEFT_BEHIND = (
    "The tool did not stop when it was told to, and was left behind; it may still be at work. Cancelled: SIGTERM."
)
STOPPED = "The tool was stopped while it ran; what it had done by then stays. Cancelled: SIGTERM."
NOT_EXECUTED = "Not executed. Cancelled: SIGTERM."

CANCELLED = ("cancelled", "cancelled")


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What a stuck tool waits for, so that no thread outlives its test."""
    event = threading.Event()
    yield event
    event.set()
    for thread in tool_threads():
        thread.join(JOIN_S)


def obedient(_arguments: JsonObject, cancel: CancelToken, _on_update: OnUpdate) -> str:
    cancel.wait(JOIN_S)
    cancel.raise_if_cancelled()
    return "nobody cancelled"


def stuck(release: threading.Event) -> Callable[..., str]:
    return lambda *_: str(release.wait(JOIN_S))


def tool_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("tool-call-")]


def update_cancels(token: CancelToken) -> Callable[[AgentEvent], None]:
    """Cancels as soon as a tool has reported that it is at work."""

    def observe(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionUpdate):
            token.cancel("SIGTERM")

    return observe


def announcing(then: Callable[..., str]) -> Callable[..., str]:
    """A tool that reports that it is at work, and goes on as told."""

    def do(arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> str:
        on_update(ToolResult((TextContent("at work"),)))
        return then(arguments, cancel, on_update)

    return do


# Calls that did not run


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_after_cancellation_no_call_starts_and_each_has_its_result(lab: "Lab", mode: str) -> None:
    token = CancelToken()
    token.cancel("SIGTERM")
    ran = lab.execute([lab.call("read")] * 3, [lab.tool("read", never_runs, execution_mode=mode)], cancel=token)
    assert (ran.roads, ran.result_texts) == ([CANCELLED] * 3, [NOT_EXECUTED] * 3)


def test_a_call_after_cancellation_is_not_decided_any_more(lab: "Lab") -> None:
    token = CancelToken()
    decided: list[str] = []

    def decide(call: ProposedToolCall) -> Decision | None:
        decided.append(call.tool_call.id)
        if call.tool_call.id == "b":
            token.cancel("SIGTERM")
            return Decision("deny", "rule", "tripwire", on_denied="stop")
        return Decision("allow", "rule", "granted")

    calls = [lab.call("read", call_id) for call_id in "abc"]
    hooks = Hooks(before_tool_call=decide)
    ran = lab.execute(calls, [lab.tool("read", never_runs)], cancel=token, hooks=hooks)
    assert decided == ["a", "b"]
    assert ran.roads == [CANCELLED, ("denied", "before_tool_call"), CANCELLED]
    assert [outcome.decision and outcome.decision.effect for outcome in ran.outcomes] == ["allow", "deny", None]
    assert [event.index for event in ran.events if isinstance(event, ToolExecutionDecision)] == [0, 1]


def test_calls_that_wait_for_a_free_thread_do_not_start_after_cancellation(lab: "Lab") -> None:
    token = CancelToken()
    ran = lab.execute(
        [lab.call("read")] * 5,
        [lab.tool("read", announcing(obedient))],
        cancel=token,
        max_parallel=2,
        observe=update_cancels(token),
    )
    assert ran.result_texts == [STOPPED, STOPPED, NOT_EXECUTED, NOT_EXECUTED, NOT_EXECUTED]


# Calls that run


def test_cancellation_reaches_a_running_tool_and_its_call_is_cancelled(lab: "Lab") -> None:
    token = CancelToken()
    bash = lab.tool("bash", announcing(obedient))
    ran = lab.execute([lab.call("bash")], [bash], cancel=token, observe=update_cancels(token))
    assert (ran.roads, ran.result_texts) == ([CANCELLED], [STOPPED])


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
@pytest.mark.parametrize("abandon_after_s", [0.0, 0.05])
def test_a_tool_that_ignores_cancellation_is_left_behind(
    lab: "Lab", release: threading.Event, mode: str, abandon_after_s: float
) -> None:
    token = CancelToken()
    stuck_tool = lab.tool("stuck", announcing(stuck(release)), execution_mode=mode)
    started = time.monotonic()
    ran = lab.execute(
        [lab.call("stuck")], [stuck_tool], cancel=token, abandon_after_s=abandon_after_s, observe=update_cancels(token)
    )
    assert abandon_after_s <= time.monotonic() - started < JOIN_S / 2
    assert (ran.roads, ran.result_texts) == ([CANCELLED], [LEFT_BEHIND])


def test_one_tool_that_is_stuck_takes_no_result_from_the_others(lab: "Lab", release: threading.Event) -> None:
    token = CancelToken()
    listed = threading.Event()

    def ls(*_: object) -> str:
        listed.set()
        return "done"

    def after_ls(arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> str:
        listed.wait(JOIN_S)
        return announcing(obedient)(arguments, cancel, on_update)

    tools = [lab.tool("stuck", stuck(release)), lab.tool("ls", ls), lab.tool("bash", after_ls)]
    calls = [lab.call("stuck"), lab.call("ls"), lab.call("bash")]
    ran = lab.execute(calls, tools, cancel=token, abandon_after_s=2.0, observe=update_cancels(token))
    assert ran.roads == [CANCELLED, ("ok", None), CANCELLED]
    assert ran.lines.index("tool_execution_end 2 cancelled cancelled") < ran.lines.index(
        "tool_execution_end 0 cancelled cancelled"
    )


def test_what_a_tool_finishes_after_cancellation_is_its_result(lab: "Lab") -> None:
    token = CancelToken()

    def finishing(_arguments: JsonObject, cancel: CancelToken, _on_update: OnUpdate) -> str:
        return f"finished, {cancel.wait(JOIN_S)}"

    write = lab.tool("write", announcing(finishing))
    ran = lab.execute([lab.call("write")], [write], cancel=token, observe=update_cancels(token))
    assert (ran.roads, ran.result_texts) == ([("ok", None)], ["finished, True"])


def test_a_tool_that_never_stops_talking_is_left_behind_too(lab: "Lab", release: threading.Event) -> None:
    token = CancelToken()

    def talking(_arguments: JsonObject, _cancel: CancelToken, on_update: OnUpdate) -> str:
        while not release.wait(1e-4):
            on_update(ToolResult((TextContent("bla"),)))
        return "done"

    tools = [lab.tool("talking", talking)]
    ran = lab.execute([lab.call("talking")], tools, cancel=token, abandon_after_s=0.05, observe=update_cancels(token))
    assert ran.result_texts == [LEFT_BEHIND]


def test_cancelled_is_a_cancelled_call_even_when_nobody_cancelled(lab: "Lab") -> None:
    def give_up(*_: object) -> str:
        raise Cancelled("its own time-out")

    ran = lab.execute([lab.call("a"), lab.call("b")], [lab.tool("a", give_up), lab.tool("b")])
    assert ran.roads == [CANCELLED, ("ok", None)]
    assert ran.result_texts[0].endswith("Cancelled: its own time-out.")


def test_after_tool_call_is_not_asked_about_a_cancelled_call(lab: "Lab") -> None:
    token = CancelToken()
    asked: list[object] = []
    ran = lab.execute(
        [lab.call("bash")],
        [lab.tool("bash", announcing(obedient))],
        cancel=token,
        hooks=Hooks(after_tool_call=asked.append),
        observe=update_cancels(token),
    )
    assert (ran.roads, asked) == ([CANCELLED], [])


def test_the_batch_has_a_token_of_its_own_that_its_parent_does_not_keep(lab: "Lab") -> None:
    token = CancelToken()
    seen: list[weakref.ref[CancelToken]] = []

    def keep(_arguments: JsonObject, cancel: CancelToken, _on_update: OnUpdate) -> str:
        seen.append(weakref.ref(cancel))
        return str(cancel is token)

    assert lab.execute([lab.call("read")], [lab.tool("read", keep)], cancel=token).result_texts == ["False"]
    for thread in tool_threads():
        thread.join(JOIN_S)
    gc.collect()
    assert [ghost() for ghost in seen] == [None]


# Exceptions that leave the batch


def test_an_exception_in_emit_stops_the_tools_that_run_and_waits_for_them(lab: "Lab") -> None:
    token = CancelToken()
    reasons: list[str | None] = []

    def noticing(_arguments: JsonObject, cancel: CancelToken, _on_update: OnUpdate) -> str:
        cancel.wait(JOIN_S)
        reasons.append(cancel.reason)
        cancel.raise_if_cancelled()
        return ""

    def refuse(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionUpdate):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        lab.execute([lab.call("bash")] * 3, [lab.tool("bash", announcing(noticing))], observe=refuse, cancel=token)
    assert reasons == ["the run is ending"] * 3
    assert tool_threads() == []
    assert token.is_cancelled is False


def test_an_exception_does_not_wait_for_ever_for_a_stuck_tool(lab: "Lab", release: threading.Event) -> None:
    def refuse(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionUpdate):
            raise OSError("disk full")

    started = time.monotonic()
    with pytest.raises(OSError, match="disk full"):
        lab.execute(
            [lab.call("stuck")], [lab.tool("stuck", announcing(stuck(release)))], observe=refuse, abandon_after_s=0.05
        )
    assert time.monotonic() - started < JOIN_S / 2


@pytest.mark.parametrize("exception", [SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_what_a_tool_raises_to_end_the_process_ends_the_run(
    lab: "Lab", exception: type[BaseException], mode: str
) -> None:
    def leave(*_: object) -> str:
        raise exception

    tools = [lab.tool("leave", leave, execution_mode=mode), lab.tool("bash", obedient)]
    with pytest.raises(exception):
        lab.execute([lab.call("leave"), lab.call("bash")], tools)


def test_a_hook_that_interrupts_stops_the_tools_that_run(lab: "Lab") -> None:
    def interrupt(_call: object) -> None:
        raise KeyboardInterrupt

    tools = [lab.tool("ls"), lab.tool("bash", obedient)]
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        lab.execute([lab.call("bash"), lab.call("ls")], tools, hooks=Hooks(after_tool_call=interrupt))
    assert time.monotonic() - started < JOIN_S / 2


def test_a_thread_that_cannot_be_started_is_an_error_result(lab: "Lab", monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def start_one(thread: threading.Thread) -> None:
        if thread.name == "tool-call-1":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)  # a limit of the system cannot be reached safely
    ran = lab.execute([lab.call("ls")] * 3, [lab.tool("ls")])
    assert ran.roads == [("ok", None), ("error", "execute"), ("ok", None)]
    assert ran.result_texts[1] == "Not executed: can't start new thread."


# Real processes

STUCK_RUN = """
import signal, sys, threading
from datetime import UTC, datetime
from ci_agent.agent.loop import LoopConfig, run_loop
from ci_agent.cancellation import CancelToken
from ci_agent.events import AgentEnd, ToolExecutionUpdate
from ci_agent.messages import AssistantMessage, TextContent, ToolCall, UserMessage
from ci_agent.provider import Context, Model, StreamDone
from ci_agent.tool import Tool, ToolResult

now = lambda: datetime.now(UTC)
token = CancelToken()
signal.signal(signal.SIGTERM, lambda *_: token.cancel("SIGTERM"))

def stuck(call_id, arguments, cancel, on_update):
    on_update(ToolResult(()))
    threading.Event().wait()

def stream(model, context, options, cancel):
    yield StreamDone(AssistantMessage((ToolCall("a", "stuck", ""),), "tool_use", "scripted", "test", "scripted", now()))

def emit(event):
    if isinstance(event, ToolExecutionUpdate):
        print("at work", flush=True)
    if isinstance(event, AgentEnd):
        print(event.messages[-1].content[0].text, flush=True)

tool = Tool("stuck", "", {"type": "object"}, stuck, execution_mode=sys.argv[1])
model = Model("scripted", "test")
config = LoopConfig(model=model, stream_fn=stream, tools={"stuck": tool}, now=now, abandon_after_s=0.1)
run_loop([UserMessage((TextContent("go"),), now())], Context("", (), (tool,)), config, emit, token)
"""


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_a_signal_wakes_the_loop_and_a_stuck_tool_does_not_keep_the_process_from_ending(mode: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", STUCK_RUN, mode], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        os.kill(process.pid, signal.SIGTERM)
        rest, _ = process.communicate(timeout=JOIN_S)
    finally:
        process.kill()
        process.communicate()
    assert (rest, process.returncode) == (LEFT_BEHIND + "\n", 0)
