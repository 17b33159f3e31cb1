"""The four gates before a call runs: lookup, repair, validation, `before_tool_call`."""

from typing import TYPE_CHECKING

import pytest
from tool_work import never_runs, raising

from ci_agent.agent.prepare import ImmediateToolCallOutcome, prepare_tool_call
from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.events import ToolExecutionDecision
from ci_agent.hooks import Decision, FactVerdict, Hooks, ProposedToolCall, ToolCallOutcome
from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import TextContent
from ci_agent.tool import OnUpdate

if TYPE_CHECKING:
    from tests.agent.conftest import Lab

DENIED = Decision("deny", "default", "no rule grants it", fact=FactVerdict("tool", "write"), span=(1, 2))


# Gate 1: lookup


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raed", "Tool raed not found. Did you mean read? Available tools: bash, read."),
        ("Read", "Tool Read not found. Did you mean read? Available tools: bash, read."),
        ("browser", "Tool browser not found. Available tools: bash, read."),
    ],
)
def test_a_tool_that_does_not_exist_is_an_error_that_names_those_that_do(lab: "Lab", name: str, message: str) -> None:
    ran = lab.execute([lab.call(name)], [lab.tool("read"), lab.tool("bash")])
    assert ran.outcomes == [ToolCallOutcome("error", "lookup", (TextContent(message),))]
    assert ran.lines[:2] == [f"tool_execution_start 0 {name}", "tool_execution_end 0 error lookup"]


def test_the_list_of_tools_is_bounded(lab: "Lab") -> None:
    ran = lab.execute([lab.call("zzz")], [lab.tool(f"tool_{number:03}") for number in range(100)])
    assert ran.result_texts[0].endswith("tool_028, tool_029 and 70 more.")


def test_without_tools_the_message_says_so(lab: "Lab") -> None:
    assert lab.execute([lab.call("read")]).result_texts == ["Tool read not found. There are no tools."]


def test_a_tool_that_is_not_offered_is_not_named_among_those_available(lab: "Lab") -> None:
    config = lab.config(lab.play([]), [lab.tool("read"), lab.tool("write")])
    content = (TextContent("Tool wrote not found. Available tools: read."),)
    prepared = prepare_tool_call(lab.call("wrote"), ["read"], config)
    assert prepared == ImmediateToolCallOutcome(ToolCallOutcome("error", "lookup", content))


# Gate 2: repair


@pytest.mark.parametrize("sent", ['"a.txt"', "null", "[1]", '{"file": "a.txt"}', "  "])
def test_the_tools_own_repair_gets_parsed_json_of_any_type_before_validation(lab: "Lab", sent: str) -> None:
    got: list[Json] = []

    def repair(arguments: Json) -> Json:
        got.append(arguments)
        return {"path": "a.txt"}

    closed = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}
    read = lab.tool("read", lambda arguments, *_: str(arguments), parameters=closed, prepare_arguments=repair)
    assert lab.execute([lab.call("read", raw=sent)], [read]).result_texts == ["{'path': 'a.txt'}"]
    assert got == [{'"a.txt"': "a.txt", "null": None, "[1]": [1], "  ": {}}.get(sent, {"file": "a.txt"})]


def test_an_exception_in_the_repair_is_an_error_result(lab: "Lab") -> None:
    read = lab.tool("read", never_runs, prepare_arguments=lambda arguments: arguments["file"])
    ran = lab.execute([lab.call("read")], [read], hooks=Hooks(before_tool_call=never_asked))
    text = "The arguments of read could not be understood: KeyError: 'file'. Nothing was executed."
    assert ran.outcomes == [ToolCallOutcome("error", "arguments", (TextContent(text),))]


def test_what_a_repair_holds_on_to_is_not_what_the_tool_gets(lab: "Lab") -> None:
    shared: JsonObject = {"list": [1]}

    def change(arguments: JsonObject, _cancel: CancelToken, _on_update: OnUpdate) -> str:
        arguments["list"].append(2)
        return str(arguments)

    read = lab.tool("read", change, prepare_arguments=lambda _arguments: shared)
    assert lab.execute([lab.call("read")], [read]).result_texts == ["{'list': [1, 2]}"]
    assert shared == {"list": [1]}


# Gate 3: validation


def test_invalid_arguments_are_an_error_result_and_the_fourth_gate_is_not_asked(lab: "Lab") -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}
    read = lab.tool("read", never_runs, parameters=schema)
    ran = lab.execute([lab.call("read", pth=1)], [read], hooks=Hooks(before_tool_call=never_asked))
    text = (
        "The arguments of read do not satisfy its schema. Nothing was executed.\n"
        "- pth: unknown field; did you mean path?\n"
        "Correct these fields and send the call again."
    )
    assert ran.outcomes == [ToolCallOutcome("error", "arguments", (TextContent(text),))]
    assert ran.lines[:2] == ["tool_execution_start 0 read", "tool_execution_end 0 error arguments"]


def never_asked(_call: ProposedToolCall) -> Decision | None:
    pytest.fail("the fourth gate was asked")


# Gate 4: before_tool_call


def test_the_hook_sees_the_call_the_tool_and_validated_arguments(lab: "Lab") -> None:
    seen: list[ProposedToolCall] = []
    read, asked = lab.tool("read"), lab.call("read", "a", path="x")
    lab.execute([asked], [read], hooks=Hooks(before_tool_call=seen.append))
    assert seen == [ProposedToolCall(asked, read, {"path": "x"})]


def test_a_denial_stops_the_call_with_its_reason_and_is_carried_in_the_details(lab: "Lab") -> None:
    ran = lab.execute([lab.call("write")], [lab.tool("write", never_runs)], hooks=Hooks(lambda m: m, lambda _: DENIED))
    details = {
        "decision": {
            "effect": "deny",
            "code": "default",
            "reason": "no rule grants it",
            "rule_id": None,
            "source": None,
            "fact": {"kind": "tool", "value": "write", "granted_by": None, "forbidden_by": None},
            "facts": [],
            "argument": None,
            "span": [1, 2],
            "nearest": None,
            "because": None,
            "instead": None,
            "on_denied": "record",
        }
    }
    content = (TextContent("no rule grants it"),)
    assert ran.outcomes == [ToolCallOutcome("denied", "before_tool_call", content, details, DENIED)]
    assert [(result.is_error, result.details) for result in ran.results] == [(True, details)]
    assert ran.lines[:3] == [
        "tool_execution_start 0 write",
        "tool_execution_decision 0 deny",
        "tool_execution_end 0 denied before_tool_call",
    ]


@pytest.mark.parametrize("decision", [None, Decision("allow", "rule", "granted", rule_id="inspect")])
def test_without_a_denial_the_call_runs_and_its_outcome_keeps_the_decision(
    lab: "Lab", decision: Decision | None
) -> None:
    ran = lab.execute([lab.call("read")], [lab.tool("read")], hooks=Hooks(before_tool_call=lambda _call: decision))
    assert ran.outcomes == [ToolCallOutcome("ok", None, (TextContent("done"),), decision=decision)]
    assert [event.decision for event in ran.events if isinstance(event, ToolExecutionDecision)] == [decision]


def test_the_decision_is_reported_with_a_copy_of_the_arguments_that_it_is_about(lab: "Lab") -> None:
    def change(arguments: JsonObject, _cancel: CancelToken, _on_update: OnUpdate) -> str:
        arguments["list"].clear()
        return "done"

    read = lab.tool("read", change, prepare_arguments=lambda sent: {**sent, "list": [1]})
    hooks = Hooks(before_tool_call=lambda call: DENIED if "no" in call.arguments else None)
    ran = lab.execute([lab.call("read"), lab.call("read", no=True)], [read], hooks=hooks)
    decided = [event for event in ran.events if isinstance(event, ToolExecutionDecision)]
    assert [event.arguments for event in decided] == [{"list": [1]}, {"no": True, "list": [1]}]


def test_a_call_that_was_allowed_and_fails_keeps_its_decision(lab: "Lab") -> None:
    allowed = Decision("allow", "rule", "granted")
    hooks = Hooks(before_tool_call=lambda _call: allowed)
    ran = lab.execute([lab.call("read")], [lab.tool("read", raising(ToolError("no such file")))], hooks=hooks)
    content = (TextContent("no such file"),)
    assert ran.outcomes == [ToolCallOutcome("error", "execute", content, decision=allowed)]


def test_an_exception_in_the_fourth_gate_is_a_denial(lab: "Lab") -> None:
    hooks = Hooks(before_tool_call=raising(KeyError("secret")))  # type: ignore[arg-type]  # never returns
    ran = lab.execute([lab.call("write")], [lab.tool("write", never_runs)], hooks=hooks)
    reason = "Not executed: before_tool_call could not decide, it failed with KeyError."
    assert [outcome.decision for outcome in ran.outcomes] == [Decision("deny", "engine_error", reason)]
    assert ran.result_texts == [reason]
    assert ran.lines[1] == "tool_execution_decision 0 deny"


@pytest.mark.parametrize("answer", [True, False, 0, "allow", {}, object])
def test_an_answer_that_is_no_decision_is_a_denial(lab: "Lab", answer: object) -> None:
    hooks = Hooks(before_tool_call=lambda _call: answer)  # type: ignore[arg-type]  # broken on purpose
    ran = lab.execute([lab.call("write")], [lab.tool("write", never_runs)], hooks=hooks)
    assert ran.roads == [("denied", "before_tool_call")]
    assert [outcome.decision.code for outcome in ran.outcomes if outcome.decision] == ["engine_error"]


def test_an_effect_that_is_neither_allow_nor_deny_denies(lab: "Lab") -> None:
    hooks = Hooks(before_tool_call=lambda _call: Decision("ask", "rule", "hm"))  # type: ignore[arg-type]  # broken on purpose
    ran = lab.execute([lab.call("write")], [lab.tool("write", never_runs)], hooks=hooks)
    assert ran.roads == [("denied", "before_tool_call")]


def test_cancellation_that_comes_out_of_the_fourth_gate_means_that_the_call_does_not_run(lab: "Lab") -> None:
    hooks = Hooks(before_tool_call=raising(Cancelled("SIGTERM")))  # type: ignore[arg-type]  # never returns
    ran = lab.execute([lab.call("write")], [lab.tool("write", never_runs)], hooks=hooks)
    assert ran.roads == [("cancelled", "cancelled")]
    assert ran.result_texts == ["Not executed. Cancelled: SIGTERM."]


@pytest.mark.parametrize("exception", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_process_passes_the_fourth_gate(lab: "Lab", exception: type[BaseException]) -> None:
    hooks = Hooks(before_tool_call=raising(exception()))  # type: ignore[arg-type]  # never returns
    with pytest.raises(exception):
        lab.execute([lab.call("write")], [lab.tool("write", never_runs)], hooks=hooks)


def test_a_tool_that_exists_but_was_not_offered_is_denied_at_the_fourth_gate(lab: "Lab") -> None:
    write, read = lab.tool("write", never_runs), lab.tool("read")
    ran = lab.run([lab.say(lab.call("write")), lab.say("done")], [write, read], offered=[read])
    reason = "Tool write is not offered in this run. Available tools: read."
    assert [outcome.decision for outcome in ran.outcomes] == [Decision("deny", "not_offered", reason)]
    assert ran.result_texts == [reason]
    assert "tool_execution_decision 0 deny" in ran.lines


def test_a_tool_that_was_not_offered_passes_lookup_and_validation_like_any_other(lab: "Lab") -> None:
    write = lab.tool("write", never_runs, parameters={"type": "object", "required": ["path"]})
    ran = lab.run([lab.say(lab.call("write")), lab.say("done")], [write], offered=[])
    assert ran.roads == [("error", "arguments")]


@pytest.mark.parametrize("decision", [None, Decision("allow", "rule", "granted")])
def test_a_hook_cannot_allow_what_was_not_offered(lab: "Lab", decision: Decision | None) -> None:
    write = lab.tool("write", never_runs)
    hooks = Hooks(before_tool_call=lambda _call: decision)
    ran = lab.run([lab.say(lab.call("write")), lab.say("done")], [write], offered=[], hooks=hooks)
    assert ran.roads == [("denied", "before_tool_call")]


def test_a_hooks_own_denial_of_what_was_not_offered_stands(lab: "Lab") -> None:
    tripwire = Decision("deny", "rule", "secrets stay out", rule_id="no-secrets", on_denied="stop")
    hooks = Hooks(before_tool_call=lambda _call: tripwire)
    write = lab.tool("write", never_runs)
    ran = lab.run([lab.say(lab.call("write")), lab.say("done")], [write], offered=[], hooks=hooks)
    assert [outcome.decision for outcome in ran.outcomes] == [tripwire]


def test_the_arguments_that_the_hook_saw_are_the_arguments_that_the_tool_gets(lab: "Lab") -> None:
    seen: list[JsonObject] = []
    got: list[JsonObject] = []
    hooks = Hooks(before_tool_call=lambda call: seen.append(call.arguments))

    def work(arguments: JsonObject, _cancel: CancelToken, _on_update: OnUpdate) -> str:
        got.append(arguments)
        return "done"

    read = lab.tool("read", work, execution_mode="sequential")
    lab.execute([lab.call("read", path=["x"])] * 2, [read], hooks=hooks)
    assert got == [{"path": ["x"]}] * 2
    assert [mine is theirs for mine, theirs in zip(seen, got, strict=True)] == [True, True]
    assert got[0] is not got[1]
    assert got[0]["path"] is not got[1]["path"]


def test_nothing_is_filled_in_or_converted_on_the_way_to_the_tool(lab: "Lab") -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "deep": {"type": "boolean", "default": True}}}
    read = lab.tool("read", lambda arguments, *_: repr(arguments), parameters=schema)
    assert lab.execute([lab.call("read", n=1.0)], [read]).result_texts == ["{'n': 1.0}"]
