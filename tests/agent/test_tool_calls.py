"""A batch of calls: in which order they run, one result for each, and what a hook makes of the loop."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest
from tool_work import noting

from ci_agent.agent.tool_calls import ExecutedToolCallBatch, ToolCallBatch, execute_tool_calls
from ci_agent.cancellation import CancelToken
from ci_agent.events import AgentEvent, ToolExecutionEnd
from ci_agent.hooks import Decision, Hooks, ProposedToolCall
from ci_agent.json_types import JsonObject
from ci_agent.messages import ImageContent, TextContent, ToolResultMessage
from ci_agent.tool import OnUpdate, Tool, ToolResult

if TYPE_CHECKING:
    from tests.agent.conftest import Lab

JOIN_S = 60.0


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


# Scheduling


def test_a_batch_runs_in_parallel_and_its_results_keep_the_order_of_the_message(lab: "Lab") -> None:
    all_at_work = threading.Barrier(5)

    def meet(arguments: JsonObject, _cancel: CancelToken, _on_update: OnUpdate) -> str:
        all_at_work.wait(JOIN_S)
        return str(arguments["number"])

    ran = lab.execute([lab.call("meet", number=number) for number in range(5)], [lab.tool("meet", meet)])
    assert ran.result_texts == ["0", "1", "2", "3", "4"]


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
