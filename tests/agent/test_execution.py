"""A call that runs: what its tool returns or raises, and what `after_tool_call` makes of it."""

import threading
from typing import TYPE_CHECKING

import pytest
from tool_work import raising, returning

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.events import AgentEvent, ToolExecutionEnd, ToolExecutionUpdate
from ci_agent.hooks import (
    Decision,
    ExecutedToolCall,
    FactVerdict,
    Hooks,
    ProposedToolCall,
    ResultOverride,
    ToolCallOutcome,
)
from ci_agent.json_types import JsonObject
from ci_agent.messages import TextContent
from ci_agent.tool import OnUpdate, ToolResult

if TYPE_CHECKING:
    from tests.agent.conftest import Lab

JOIN_S = 60.0
DENIED = Decision("deny", "default", "no rule grants it", fact=FactVerdict("tool", "write"), span=(1, 2))


# Execution


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ToolError("x.txt does not exist; did you mean y.txt?"), "x.txt does not exist; did you mean y.txt?"),
        (ToolError(""), "The tool failed without saying why."),
        (ValueError("bad"), "ValueError: bad"),
        (KeyError("path"), "KeyError: 'path'"),
        (RecursionError(), "RecursionError"),
        (MemoryError(), "MemoryError"),
        (ExceptionGroup("both", [ValueError("a"), OSError("b")]), "ExceptionGroup: both (2 sub-exceptions)"),
        (ValueError("x" * 100_000), f"ValueError: {'x' * 1988}..."),
    ],
)
def test_every_exception_of_a_tool_is_an_error_result(lab: "Lab", error: Exception, text: str) -> None:
    ran = lab.execute([lab.call("read"), lab.call("ls")], [lab.tool("read", raising(error)), lab.tool("ls")])
    assert ran.outcomes[0] == ToolCallOutcome("error", "execute", (TextContent(text),))
    assert ran.roads[1] == ("ok", None)


@pytest.mark.parametrize(
    ("details", "kept"), [({"exit_status": 1}, {"exit_status": 1}), (None, None), ({"lock": threading.Lock()}, None)]
)
def test_the_details_of_a_tool_error_are_kept_where_a_record_can_hold_them(
    lab: "Lab", details: JsonObject | None, kept: JsonObject | None
) -> None:
    ran = lab.execute([lab.call("bash")], [lab.tool("bash", raising(ToolError("exit status 1", details)))])
    assert ran.outcomes == [ToolCallOutcome("error", "execute", (TextContent("exit status 1"),), kept)]


def test_an_exception_that_cannot_be_printed_is_an_error_result_too(lab: "Lab") -> None:
    ran = lab.execute([lab.call("read")], [lab.tool("read", raising(UnprintableError()))])
    assert ran.roads == [("error", "execute")]
    assert "UnprintableError" in ran.result_texts[0]


def cyclic() -> JsonObject:
    details: JsonObject = {}
    details["self"] = details
    return details


@pytest.mark.parametrize(
    "result",
    [
        None,
        5,
        {"content": []},
        ToolResult(None),  # type: ignore[arg-type]  # broken on purpose
        ToolResult(("text",)),  # type: ignore[arg-type]  # broken on purpose
        ToolResult((), {"lock": threading.Lock()}),
        ToolResult((), {"set": {1}}),
        ToolResult((), {(1, 2): 3}),  # type: ignore[dict-item]  # broken on purpose
        ToolResult((), cyclic()),
        ToolResult((), {"n": 10**5000}),
    ],
)
def test_a_result_that_no_record_could_hold_is_an_error_result(lab: "Lab", result: object) -> None:
    assert lab.execute([lab.call("read")], [lab.tool("read", returning(result))]).roads == [("error", "execute")]


def test_what_a_tool_does_with_its_result_afterwards_changes_nothing(lab: "Lab") -> None:
    details: JsonObject = {"lines": [1]}
    content = [TextContent("one")]

    def observe(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd):
            details["lines"].append(2)
            content.clear()

    result = ToolResult(content, details)  # type: ignore[arg-type]  # a list, as a careless tool would give
    ran = lab.execute([lab.call("read")], [lab.tool("read", returning(result))], observe=observe)
    assert [(message.content, message.details) for message in ran.results] == [((TextContent("one"),), {"lines": [1]})]


def test_updates_come_before_the_end_in_their_order_and_as_they_were(lab: "Lab") -> None:
    details: JsonObject = {"percent": 0}

    def work(_arguments: JsonObject, _cancel: CancelToken, on_update: OnUpdate) -> str:
        for percent in (10, 50, 90):
            details["percent"] = percent
            on_update(ToolResult((TextContent(f"{percent}"),), details))
        return "done"

    ran = lab.execute([lab.call("build", "a")], [lab.tool("build", work)])
    assert ran.lines[1:6] == [
        "tool_execution_decision 0 none",
        "tool_execution_update 0 10",
        "tool_execution_update 0 50",
        "tool_execution_update 0 90",
        "tool_execution_end 0 ok -",
    ]
    updates = [event.partial.details for event in ran.events if isinstance(event, ToolExecutionUpdate)]
    assert updates == [{"percent": 10}, {"percent": 50}, {"percent": 90}]


def test_an_update_after_the_end_is_dropped(lab: "Lab") -> None:
    first_has_ended, late_update_is_out = threading.Event(), threading.Event()
    kept: list[OnUpdate] = []

    def hasty(_arguments: JsonObject, _cancel: CancelToken, on_update: OnUpdate) -> str:
        kept.append(on_update)
        return "done"

    def patient(_arguments: JsonObject, _cancel: CancelToken, on_update: OnUpdate) -> str:
        first_has_ended.wait(JOIN_S)
        kept[0](ToolResult((TextContent("late"),)))
        on_update(ToolResult((TextContent("in time"),)))
        return str(late_update_is_out.is_set())

    def observe(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd):
            first_has_ended.set()

    tools = [lab.tool("hasty", hasty), lab.tool("patient", patient)]
    ran = lab.execute([lab.call("hasty"), lab.call("patient")], tools, observe=observe)
    assert [line for line in ran.lines if "update" in line] == ["tool_execution_update 1 in time"]


def test_an_update_that_is_no_result_fails_in_the_tool_that_sent_it(lab: "Lab") -> None:
    def work(_arguments: JsonObject, _cancel: CancelToken, on_update: OnUpdate) -> str:
        on_update("half")  # type: ignore[arg-type]  # broken on purpose
        return "done"

    assert lab.execute([lab.call("build")], [lab.tool("build", work)]).roads == [("error", "execute")]


# after_tool_call


def overriding(**fields: object) -> Hooks:
    return Hooks(after_tool_call=lambda _call: ResultOverride(**fields))  # type: ignore[arg-type]  # the tests know them


def test_after_tool_call_sees_how_the_call_ended(lab: "Lab") -> None:
    seen: list[ExecutedToolCall] = []
    good = lab.tool("good", returning(ToolResult((TextContent("fine"),), {"n": 1}, terminate=True)))
    bad = lab.tool("bad", raising(ToolError("broken")))
    calls = [lab.call("good", "a"), lab.call("bad", "b")]
    lab.execute(calls, [good, bad], hooks=Hooks(after_tool_call=seen.append), execution_mode="sequential")
    assert seen == [
        ExecutedToolCall(ProposedToolCall(calls[0], good, {}), (TextContent("fine"),), {"n": 1}, False, True),
        ExecutedToolCall(ProposedToolCall(calls[1], bad, {}), (TextContent("broken"),), None, True, False),
    ]


def test_after_tool_call_is_not_asked_about_calls_that_did_not_run(lab: "Lab") -> None:
    hooks = Hooks(before_tool_call=lambda _call: DENIED, after_tool_call=raising(AssertionError()))  # type: ignore[arg-type]  # never asked
    ran = lab.execute(
        [lab.call("write"), lab.call("nobody"), lab.call("write", raw="{")], [lab.tool("write")], hooks=hooks
    )
    assert ran.roads == [("denied", "before_tool_call"), ("error", "lookup"), ("error", "arguments")]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ({}, ToolCallOutcome("ok", None, (TextContent("fine"),), {"n": 1})),
        ({"content": ()}, ToolCallOutcome("ok", None, (), {"n": 1})),
        ({"details": {}}, ToolCallOutcome("ok", None, (TextContent("fine"),), {})),
        ({"is_error": True}, ToolCallOutcome("error", "after_tool_call", (TextContent("fine"),), {"n": 1})),
        ({"terminate": True}, ToolCallOutcome("ok", None, (TextContent("fine"),), {"n": 1}, terminate=True)),
        (
            {"content": (TextContent("cut"),), "details": {"m": 2}, "is_error": False, "terminate": False},
            ToolCallOutcome("ok", None, (TextContent("cut"),), {"m": 2}),
        ),
    ],
)
def test_after_tool_call_replaces_field_by_field(
    lab: "Lab", override: dict[str, object], expected: ToolCallOutcome
) -> None:
    good = lab.tool("good", returning(ToolResult((TextContent("fine"),), {"n": 1})))
    assert lab.execute([lab.call("good")], [good], hooks=overriding(**override)).outcomes == [expected]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ({"is_error": False}, ToolCallOutcome("ok", None, (TextContent("broken"),))),
        ({"content": ()}, ToolCallOutcome("error", "execute", ())),
        ({"is_error": True}, ToolCallOutcome("error", "execute", (TextContent("broken"),))),
    ],
)
def test_after_tool_call_may_turn_an_error_into_a_success_and_else_leaves_its_road(
    lab: "Lab", override: dict[str, object], expected: ToolCallOutcome
) -> None:
    bad = lab.tool("bad", raising(ToolError("broken")))
    assert lab.execute([lab.call("bad")], [bad], hooks=overriding(**override)).outcomes == [expected]


@pytest.mark.parametrize("error", [ValueError("secret"), Cancelled("late")])
def test_an_exception_in_after_tool_call_is_an_error_result(lab: "Lab", error: BaseException) -> None:
    allowed = Decision("allow", "rule", "granted")
    hooks = Hooks(before_tool_call=lambda _call: allowed, after_tool_call=raising(error))  # type: ignore[arg-type]  # never returns
    ran = lab.execute([lab.call("read")], [lab.tool("read")], hooks=hooks)
    text = f"The tool ran, but after_tool_call failed with {type(error).__name__}; its result is withheld."
    assert ran.outcomes == [ToolCallOutcome("error", "after_tool_call", (TextContent(text),), decision=allowed)]


@pytest.mark.parametrize(
    "answer",
    [
        True,
        "text",
        ResultOverride(content=("text",)),  # type: ignore[arg-type]  # broken on purpose
        ResultOverride(details={"x": {1}}),
    ],
)
def test_an_answer_of_after_tool_call_that_is_no_override_is_an_error_result(lab: "Lab", answer: object) -> None:
    hooks = Hooks(after_tool_call=lambda _call: answer)  # type: ignore[arg-type]  # broken on purpose
    assert lab.execute([lab.call("read")], [lab.tool("read")], hooks=hooks).roads == [("error", "after_tool_call")]


def test_what_after_tool_call_does_to_the_details_it_saw_changes_nothing(lab: "Lab") -> None:
    hooks = Hooks(after_tool_call=lambda call: call.details and call.details.clear())
    ran = lab.execute([lab.call("read")], [lab.tool("read", returning(ToolResult((), {"n": 1})))], hooks=hooks)
    assert [outcome.details for outcome in ran.outcomes] == [{"n": 1}]


def test_after_tool_call_is_asked_in_the_order_in_which_calls_finish(lab: "Lab") -> None:
    asked: list[str] = []
    second_has_ended = threading.Event()

    def after(call: ExecutedToolCall) -> None:
        asked.append(call.proposed.tool.name)
        second_has_ended.set()

    slow = lab.tool("slow", lambda *_: str(second_has_ended.wait(JOIN_S)))
    lab.execute([lab.call("slow"), lab.call("fast")], [slow, lab.tool("fast")], hooks=Hooks(after_tool_call=after))
    assert asked == ["fast", "slow"]
