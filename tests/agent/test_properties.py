"""What holds for every run, whatever the model says, the tools do, the hooks answer, and whenever it is cancelled."""

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from hypothesis import given
from hypothesis import strategies as st

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageEnd,
    MessageStart,
    ToolExecutionDecision,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
)
from ci_agent.hooks import Decision, ExecutedToolCall, Hooks, ProposedToolCall, ResultOverride
from ci_agent.json_types import JsonObject
from ci_agent.messages import AssistantMessage, Message, StopReason, TextContent, ToolCall, ToolResultMessage
from ci_agent.tool import OnUpdate, Tool, ToolResult

if TYPE_CHECKING:
    from tests.agent.conftest import Lab

PATH_ONLY = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}


@dataclass
class World:
    """A token to be cancelled at some point, and what the tools did."""

    token: CancelToken
    executed: list[JsonObject]
    lock: threading.Lock

    def work(self, arguments: JsonObject, _cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
        with self.lock:
            self.executed.append(arguments)
        on_update(ToolResult((TextContent("half"),)))
        return ToolResult((TextContent("done"),), {"n": 1}, terminate=True)


def fail(error: BaseException) -> Callable[..., ToolResult]:
    def do(*_: object) -> ToolResult:
        raise error

    return do


def tools_of(lab: "Lab", world: World) -> list[Tool]:
    def cancel_the_run(arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
        world.token.cancel("by a tool")
        return world.work(arguments, cancel, on_update)

    return [
        lab.tool("read", world.work, parameters=PATH_ONLY),
        lab.tool("write", world.work, execution_mode="sequential"),
        lab.tool("repairing", world.work, prepare_arguments=lambda sent: sent["path"]),
        lab.tool("failing", fail(ToolError("no"))),
        lab.tool("crashing", fail(ZeroDivisionError())),
        lab.tool("giving up", fail(Cancelled("own reason"))),
        lab.tool("confused", lambda *_: None),  # type: ignore[arg-type]  # broken on purpose
        lab.tool("cancelling", cancel_the_run),
        lab.tool("hidden", world.work),
    ]


NAMES = ["read", "write", "repairing", "failing", "crashing", "giving up", "confused", "cancelling", "hidden", "ghost"]
TEXTS = ["", "{}", '{"path": "x"}', '{"path": 5}', '{"pa', "null", '{"a": NaN}', "[" * 200]

calls = st.builds(
    ToolCall,
    id=st.sampled_from(["", "a", "b"]),
    name=st.sampled_from([*NAMES, "\x00"]),
    arguments_json=st.sampled_from(TEXTS),
)
turns = st.lists(st.tuples(st.lists(calls, max_size=6), st.sampled_from(get_args(StopReason))), min_size=1, max_size=4)

befores = st.sampled_from(["nothing", "allow", "deny", "raise", "nonsense", "cancel", "give up"])
afters = st.sampled_from(["nothing", "override", "flip", "raise", "nonsense"])


def before_hook(answers: Sequence[str], world: World) -> Callable[[ProposedToolCall], Decision | None]:
    script = itertools.cycle(answers)

    def decide(_call: ProposedToolCall) -> Decision | None:
        answer = next(script)
        if answer == "raise":
            raise LookupError
        if answer == "give up":
            raise Cancelled("by the hook")
        if answer == "cancel":
            world.token.cancel("by the hook")
        if answer == "nonsense":
            return "allow"  # type: ignore[return-value]  # broken on purpose
        effects: dict[str, Decision] = {
            "allow": Decision("allow", "rule", "yes"),
            "deny": Decision("deny", "default", "no"),
        }
        return effects.get(answer)

    return decide


def after_hook(answers: Sequence[str]) -> Callable[[ExecutedToolCall], ResultOverride | None]:
    script = itertools.cycle(answers)

    def look(call: ExecutedToolCall) -> ResultOverride | None:
        answer = next(script)
        if answer == "raise":
            raise LookupError
        if answer == "nonsense":
            return True  # type: ignore[return-value]  # broken on purpose
        overrides = {
            "override": ResultOverride(content=(), details={}),
            "flip": ResultOverride(is_error=not call.is_error),
        }
        return overrides.get(answer)

    return look


def events_by_call(events: Sequence[AgentEvent]) -> dict[tuple[int, int], list[str]]:
    """The kinds of events of each call, in order, updates left out."""
    kinds: dict[tuple[int, int], list[str]] = {}
    for event in events:
        if isinstance(event, ToolExecutionStart | ToolExecutionDecision | ToolExecutionEnd):
            kinds.setdefault((event.turn, event.index), []).append(type(event).__name__)
    return kinds


def conversation_is_valid(messages: Sequence[Message]) -> bool:
    """Each call is answered, right after its message and in the order of the calls."""
    awaited: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            if not awaited or awaited.pop(0) != (message.tool_call_id, message.tool_name):
                return False
        elif awaited:
            return False
        elif isinstance(message, AssistantMessage):
            awaited = [(call.id, call.name) for call in message.tool_calls]
    return not awaited


def skeleton(events: Sequence[AgentEvent]) -> list[str]:
    kinds = (AgentStart, TurnStart, MessageStart, MessageEnd, TurnEnd, AgentEnd)
    return [type(event).__name__ for event in events if isinstance(event, kinds)]


@given(turns, st.lists(befores, min_size=1, max_size=4), st.lists(afters, min_size=1, max_size=3), st.integers(0, 60))
def test_each_call_has_exactly_one_result_in_order_and_the_events_are_well_formed(
    lab: "Lab",
    script: list[tuple[list[ToolCall], StopReason]],
    before: list[str],
    after: list[str],
    cancel_at: int,
) -> None:
    world = World(CancelToken(), [], threading.Lock())
    countdown = itertools.count(1)

    def observe(_event: AgentEvent) -> None:
        if next(countdown) == cancel_at:
            world.token.cancel("by somebody")

    tools = tools_of(lab, world)
    said = [lab.say(*batch, stop_reason=stop_reason) for batch, stop_reason in script]
    ran = lab.run(
        [*said, lab.say("done")],
        tools,
        offered=[tool for tool in tools if tool.name != "hidden"],
        cancel=world.token,
        observe=observe,
        hooks=Hooks(before_tool_call=before_hook(before, world), after_tool_call=after_hook(after)),
        max_parallel=3,
    )
    messages = ran.messages

    assert conversation_is_valid(messages)
    assert [event.message for event in ran.events if isinstance(event, MessageEnd)] == list(messages)
    expected = ["AgentStart"]
    for event in ran.events:
        if isinstance(event, TurnEnd):
            opening = 1 if event.turn == 1 else 0
            expected += [
                "TurnStart",
                *["MessageStart", "MessageEnd"] * (opening + 1 + len(event.tool_results)),
                "TurnEnd",
            ]
    assert skeleton(ran.events) == [*expected, "AgentEnd"]

    asked = [message for message in messages if isinstance(message, AssistantMessage)]
    assert list(events_by_call(ran.events)) == [
        (turn, index) for turn, message in enumerate(asked, start=1) for index in range(len(message.tool_calls))
    ]
    for kinds in events_by_call(ran.events).values():
        assert kinds in (
            ["ToolExecutionStart", "ToolExecutionEnd"],
            ["ToolExecutionStart", "ToolExecutionDecision", "ToolExecutionEnd"],
        )


@given(turns, st.lists(befores, min_size=1, max_size=4), st.integers(0, 60))
def test_a_tool_does_something_only_when_its_call_was_decided_and_not_denied(
    lab: "Lab", script: list[tuple[list[ToolCall], StopReason]], before: list[str], cancel_at: int
) -> None:
    world = World(CancelToken(), [], threading.Lock())
    countdown = itertools.count(1)
    allowed = 0

    def observe(event: AgentEvent) -> None:
        nonlocal allowed
        if next(countdown) == cancel_at:
            world.token.cancel("by somebody")
        if isinstance(event, ToolExecutionDecision):
            allowed += event.decision is None or event.decision.effect == "allow"
        assert len(world.executed) <= allowed

    said = [lab.say(*batch, stop_reason=stop_reason) for batch, stop_reason in script]
    hooks = Hooks(before_tool_call=before_hook(before, world))
    ran = lab.run([*said, lab.say("done")], tools_of(lab, world), cancel=world.token, observe=observe, hooks=hooks)
    refused = {"lookup", "arguments", "before_tool_call", "truncated_turn"}
    assert len(world.executed) <= len([outcome for outcome in ran.outcomes if outcome.stage not in refused])
