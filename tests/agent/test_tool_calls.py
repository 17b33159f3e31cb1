import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from ci_agent.agent.prepare import ImmediateToolCallOutcome, prepare_tool_call
from ci_agent.agent.tool_calls import ExecutedToolCallBatch, ToolCallBatch, execute_tool_calls
from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.events import AgentEvent, ToolExecutionDecision, ToolExecutionEnd, ToolExecutionUpdate
from ci_agent.hooks import (
    Decision,
    ExecutedToolCall,
    FactVerdict,
    Hooks,
    ProposedToolCall,
    ResultOverride,
    ToolCallOutcome,
)
from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import ImageContent, TextContent, ToolResultMessage
from ci_agent.tool import OnUpdate, Tool, ToolResult

if TYPE_CHECKING:
    from tests.agent.conftest import Lab

JOIN_S = 10.0
DENIED = Decision("deny", "default", "no rule grants it", fact=FactVerdict("tool", "write"), span=(1, 2))


class Gauge:
    """A tool's work that knows how many are at it at the same time."""

    def __init__(self, together: int = 1) -> None:
        self.meeting = threading.Barrier(together)
        self.lock = threading.Lock()
        self.now = self.peak = 0

    def __call__(self, _arguments: JsonObject, _cancel: CancelToken, _on_update: OnUpdate) -> str:
        with self.lock:
            self.now += 1
            self.peak = max(self.peak, self.now)
        self.meeting.wait(JOIN_S)
        with self.lock:
            self.now -= 1
        return "done"


def never_runs(_arguments: JsonObject, _cancel: CancelToken, _on_update: OnUpdate) -> str:
    pytest.fail("the tool ran")


def raising(error: BaseException) -> Callable[..., str]:
    def do(*_: object) -> str:
        raise error

    return do


def noting(happened: list[str], what: str) -> Callable[..., str]:
    def do(*_: object) -> str:
        happened.append(what)
        return "done"

    return do


def returning(result: object) -> Callable[..., ToolResult]:
    return lambda *_: result  # type: ignore[return-value]  # broken on purpose


# Scheduling


def test_a_batch_runs_in_parallel_and_its_results_keep_the_order_of_the_message(lab: "Lab") -> None:
    def sleep(arguments: JsonObject, _cancel: CancelToken, _on_update: OnUpdate) -> str:
        subprocess.run(["sleep", "0.2"], check=True)
        return str(arguments["number"])

    durations_s = []
    for _ in range(3):  # the best of three, for machines that do other things as well
        started = time.monotonic()
        ran = lab.execute([lab.call("sleep", number=number) for number in range(5)], [lab.tool("sleep", sleep)])
        durations_s.append(time.monotonic() - started)
        assert ran.result_texts == ["0", "1", "2", "3", "4"]
    assert min(durations_s) < 0.8


def test_calls_end_in_the_order_in_which_they_finish_and_results_follow_in_the_order_of_the_message(lab: "Lab") -> None:
    second_has_ended = threading.Event()

    def observe(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd) and event.index == 1:
            second_has_ended.set()

    slow = lab.tool("slow", lambda *_: str(second_has_ended.wait(JOIN_S)))
    ran = lab.execute([lab.call("slow", "a"), lab.call("fast", "b")], [slow, lab.tool("fast")], observe=observe)
    assert ran.lines == [
        "tool_execution_start 0 slow",
        "tool_execution_decision 0 none",
        "tool_execution_start 1 fast",
        "tool_execution_decision 1 none",
        "tool_execution_end 1 ok -",
        "tool_execution_end 0 ok -",
        "message_start tool_result a slow",
        "message_end tool_result a slow",
        "message_start tool_result b fast",
        "message_end tool_result b fast",
    ]
    assert ran.result_texts == ["True", "done"]


def test_a_mixed_batch_with_one_sequential_tool_runs_in_order(lab: "Lab") -> None:
    gauge = Gauge()
    tools = [lab.tool("read", gauge), lab.tool("write", gauge, execution_mode="sequential")]
    ran = lab.execute([lab.call("read", "a"), lab.call("write", "b"), lab.call("read", "c")], tools)
    assert ran.lines == [
        line
        for index, (name, call_id) in enumerate([("read", "a"), ("write", "b"), ("read", "c")])
        for line in (
            f"tool_execution_start {index} {name}",
            f"tool_execution_decision {index} none",
            f"tool_execution_end {index} ok -",
            f"message_start tool_result {call_id} {name}",
            f"message_end tool_result {call_id} {name}",
        )
    ]
    assert gauge.peak == 1


def test_a_run_that_is_configured_sequential_runs_every_batch_in_order(lab: "Lab") -> None:
    ran = lab.execute([lab.call("read")] * 3, [lab.tool("read")], execution_mode="sequential")
    begun_and_ended = [line for line in ran.lines if "_start " in line or "_end " in line]
    assert [line.split()[1] for line in begun_and_ended if line.startswith("tool_execution")] == list("001122")


def test_parallel_calls_are_all_prepared_in_order_before_one_executes(lab: "Lab") -> None:
    happened: list[str] = []

    def count(call: ProposedToolCall) -> Decision | None:
        happened.append(f"decide {call.arguments['n']}")
        return None

    read = lab.tool("read", noting(happened, "execute"))
    ran = lab.execute([lab.call("read", n=n) for n in range(3)], [read], hooks=Hooks(before_tool_call=count))
    assert happened == ["decide 0", "decide 1", "decide 2", "execute", "execute", "execute"]
    assert ran.lines.index("tool_execution_decision 2 none") < min(
        ran.lines.index(f"tool_execution_end {index} ok -") for index in range(3)
    )


def test_a_rule_that_counts_counts_the_calls_in_the_order_of_the_message(lab: "Lab") -> None:
    seen = Counter[str]()

    def at_most_two(call: ProposedToolCall) -> Decision | None:
        seen[call.tool.name] += 1
        return Decision("deny", "limit", "enough") if seen[call.tool.name] > 2 else None

    ran = lab.execute([lab.call("read")] * 4, [lab.tool("read")], hooks=Hooks(before_tool_call=at_most_two))
    assert [outcome.status for outcome in ran.outcomes] == ["ok", "ok", "denied", "denied"]


def test_in_a_sequential_batch_a_call_is_decided_after_the_one_before_it_has_finished(lab: "Lab") -> None:
    happened: list[str] = []
    hooks = Hooks(before_tool_call=lambda _call: happened.append("decide"))
    write = lab.tool("write", noting(happened, "execute"), execution_mode="sequential")
    lab.execute([lab.call("write")] * 2, [write], hooks=hooks)
    assert happened == ["decide", "execute"] * 2


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_hallucinated_names_do_not_disturb_scheduling(lab: "Lab", mode: str) -> None:
    together = 2 if mode == "parallel" else 1
    gauge = Gauge(together)
    calls = [lab.call("ghost"), lab.call("read", "a"), lab.call(""), lab.call("read", "b"), lab.call("WRITE")]
    tools = [lab.tool("read", gauge, execution_mode=mode), lab.tool("write", execution_mode="sequential")]
    ran = lab.execute(calls, tools)
    missing, found = ("error", "lookup"), ("ok", None)
    assert ran.roads == [missing, found, missing, found, missing]
    assert [result.tool_name for result in ran.results] == ["ghost", "read", "", "read", "WRITE"]
    assert gauge.peak == together


def test_no_more_calls_run_at_a_time_than_allowed_and_as_many_as_allowed_do(lab: "Lab") -> None:
    gauge = Gauge(together=3)
    ran = lab.execute([lab.call("read")] * 12, [lab.tool("read", gauge)], max_parallel=3)
    assert (gauge.peak, ran.roads) == (3, [("ok", None)] * 12)


def test_at_least_one_call_must_be_able_to_run(lab: "Lab") -> None:
    with pytest.raises(ValueError, match="max_parallel is 0"):
        lab.execute([], max_parallel=0)


# One result for each call, whatever it looks like


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_a_thousand_calls_in_one_message_have_a_thousand_results_in_order(lab: "Lab", mode: str) -> None:
    echo = lab.tool("echo", lambda arguments, *_: str(arguments["n"]), execution_mode=mode)
    ran = lab.execute([lab.call("echo", n=n) for n in range(1000)], [echo])
    assert ran.result_texts == [str(n) for n in range(1000)]


def test_duplicate_and_empty_ids_have_a_result_each_in_order(lab: "Lab") -> None:
    echo = lab.tool("echo", lambda arguments, *_: str(arguments["n"]))
    ran = lab.execute([lab.call("echo", call_id, n=n) for n, call_id in enumerate(["", "x", "x", ""])], [echo])
    assert [(result.tool_call_id, text) for result, text in zip(ran.results, ran.result_texts, strict=True)] == [
        ("", "0"),
        ("x", "1"),
        ("x", "2"),
        ("", "3"),
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("edit\n", r"edit\n"),
        ("\x1b[31medit\x00", r"\x1b[31medit\x00"),
        ("\u202etide", r"\u202etide"),
        ("\ud800", r"\ud800"),
        ("", '""'),
        ("x" * 5000, "x" * 100 + "..."),
    ],
)
def test_a_name_with_control_characters_is_shown_escaped_and_sent_back_as_it_came(
    lab: "Lab", name: str, shown: str
) -> None:
    ran = lab.execute([lab.call(name)], [lab.tool("ls")])
    assert ran.result_texts == [f"Tool {shown} not found. Available tools: ls."]
    assert [result.tool_name for result in ran.results] == [name]


def test_a_result_message_carries_all_that_the_result_had(lab: "Lab") -> None:
    image = ImageContent("image/png", "AAAA")
    read = lab.tool("read", lambda *_: ToolResult((TextContent("see"), image), {"lines": 3}))
    ran = lab.execute([lab.call("read", "a")], [read])
    assert ran.results == [
        ToolResultMessage("a", "read", (TextContent("see"), image), False, lab.now, details={"lines": 3})
    ]


def test_the_executor_gets_calls_returns_results_and_touches_nothing_else(lab: "Lab") -> None:
    tools = MappingProxyType({name: lab.tool(name) for name in ("read", "write")})
    config = replace(lab.config(lab.play([])), tools=tools)
    batch = ToolCallBatch(1, (lab.call("read", "a"), lab.call("nobody", "b")), frozenset(tools))
    before = (repr(batch), repr(config))
    executed = execute_tool_calls(batch, config, lambda _event: None, CancelToken())
    assert (repr(batch), repr(config)) == before
    found = ToolResultMessage("a", "read", (TextContent("done"),), False, lab.now)
    missing = (TextContent("Tool nobody not found. Available tools: read, write."),)
    assert executed == ExecutedToolCallBatch((found, ToolResultMessage("b", "nobody", missing, True, lab.now)), False)


def test_a_batch_without_calls_has_no_results_and_no_say_in_ending_the_run(lab: "Lab") -> None:
    batch = ToolCallBatch(1, (), ())
    executed = execute_tool_calls(batch, lab.config(lab.play([])), lambda _event: None, CancelToken())
    assert executed == ExecutedToolCallBatch((), False)


def test_every_event_comes_in_the_thread_of_the_loop(lab: "Lab") -> None:
    threads: set[threading.Thread] = set()

    def work(_arguments: JsonObject, _cancel: CancelToken, on_update: OnUpdate) -> str:
        on_update(ToolResult((TextContent("half"),)))
        return threading.current_thread().name

    ran = lab.execute(
        [lab.call("read")] * 3,
        [lab.tool("read", work)],
        observe=lambda _event: threads.add(threading.current_thread()),
        hooks=Hooks(after_tool_call=lambda _call: threads.add(threading.current_thread())),
    )
    assert threads == {threading.current_thread()}
    assert ran.result_texts == ["tool-call-0", "tool-call-1", "tool-call-2"]


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


# The same loop for different applications


def policy_hook(rules: dict[str, str]) -> Callable[[ProposedToolCall], Decision | None]:
    """As a compiled policy: a pure function of the call."""

    def decide(call: ProposedToolCall) -> Decision | None:
        rule = rules.get(call.tool.name)
        return Decision("allow", "rule", f"granted by {rule}", rule) if rule else Decision("deny", "default", "no rule")

    return decide


def person_hook(answers: list[str]) -> Callable[[ProposedToolCall], Decision | None]:
    """As an interactive agent: somebody is asked, and a no is a denial."""

    def ask(call: ProposedToolCall) -> Decision | None:
        return None if answers.pop(0) == "yes" else Decision("deny", "rule", f"the person refused {call.tool.name}")

    return ask


def read_only_hook(call: ProposedToolCall) -> Decision | None:
    """As a demo that changes nothing."""
    return Decision("deny", "rule", "read only") if call.tool.execution_mode == "sequential" else None


@pytest.mark.parametrize(
    ("hook", "texts"),
    [
        (policy_hook({"write": "edit-source"}), ["no rule", "written", "no rule"]),
        (person_hook(["yes", "no", "yes"]), ["text", "the person refused write", "text"]),
        (read_only_hook, ["text", "read only", "text"]),
    ],
    ids=["a policy", "a person", "read only"],
)
def test_the_same_loop_with_another_hook_is_another_agent(
    lab: "Lab", hook: Callable[[ProposedToolCall], Decision | None], texts: list[str]
) -> None:
    tools: list[Tool] = [lab.tool("read", "text"), lab.tool("write", "written", execution_mode="sequential")]
    turns = [lab.say(lab.call("read"), lab.call("write"), lab.call("read")), lab.say("done")]
    assert lab.run(turns, tools, hooks=Hooks(before_tool_call=hook)).result_texts == texts
