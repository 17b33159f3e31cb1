"""Limits: the tightest counts, an answer is never an excess, and what is beyond is not executed."""

from datetime import UTC, datetime

import pytest

from ci_agent.events import MessageEnd, ToolExecutionStart
from ci_agent.hooks import FinishedTurn, ProposedToolCall
from ci_agent.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage, Usage
from ci_agent.policy.rules import Limits
from ci_agent.run_hooks.limits import LimitWatch, RunLimits, loosened, tightest
from ci_agent.tool import Tool, ToolResult

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALL = ToolCall("c", "ls", "{}")
PROPOSED = ProposedToolCall(CALL, Tool("ls", "", {}, lambda *_: ToolResult(())), {})


def message(usage: Usage) -> AssistantMessage:
    return AssistantMessage((TextContent("x"),), "stop", "p", "m", "a", NOW, usage)


def turn(number: int, *, calls: bool) -> FinishedTurn:
    results = (ToolResultMessage("c", "ls", (), is_error=False, timestamp=NOW),) if calls else ()
    return FinishedTurn(number, message(Usage()), results, ())


def test_the_smaller_of_policy_and_flag_counts_and_the_default_where_neither_speaks() -> None:
    limits = tightest(Limits(max_turns=200, timeout_s=60, max_cost_usd=2.0), Limits(max_turns=30, timeout_s=90))
    assert limits == RunLimits(max_turns=30, max_tool_calls=1000, max_tokens=None, max_cost_usd=2.0, timeout_s=60)


def test_flags_that_ask_for_more_than_the_policy_allows_are_named() -> None:
    assert loosened(Limits(max_turns=5, timeout_s=60), Limits(max_turns=6, timeout_s=60, max_tokens=9)) == ["max_turns"]


@pytest.mark.parametrize(
    ("limits", "usage", "exceeded"),
    [
        (RunLimits(max_turns=2), Usage(), "the limit of 2 turns is used up"),
        (RunLimits(max_tokens=10), Usage(input_tokens=6, output_tokens=4), "the limit of 10 tokens is used up"),
        (RunLimits(max_cost_usd=0.5), Usage(cost_usd=0.5), "the limit of 0.5 USD is used up"),
        (RunLimits(max_turns=3, max_tokens=11), Usage(input_tokens=10), None),
    ],
)
def test_a_turn_that_would_go_on_ends_the_run_at_a_limit(limits: RunLimits, usage: Usage, exceeded: str | None) -> None:
    watch = LimitWatch(limits)
    watch.observe(MessageEnd(message(usage)))
    assert watch.should_stop_after_turn(turn(2, calls=True)) is (exceeded is not None)
    assert watch.exceeded == exceeded


def test_an_answer_in_the_last_turn_is_no_excess_but_asking_again_would_be() -> None:
    watch = LimitWatch(RunLimits(max_turns=2))
    assert (watch.should_stop_after_turn(turn(2, calls=False)), watch.exceeded) == (False, None)
    assert (watch.may_follow_up(turn(2, calls=False)), watch.exceeded) == (False, "the limit of 2 turns is used up")


def test_calls_beyond_the_limit_are_denied_and_end_the_run_after_their_turn() -> None:
    watch = LimitWatch(RunLimits(max_tool_calls=2))
    decisions = []
    for index in range(3):
        watch.observe(ToolExecutionStart(1, index, CALL))
        decisions.append(watch.before_tool_call(PROPOSED))
    assert [decision and (decision.effect, decision.code, decision.reason) for decision in decisions] == [
        None,
        None,
        ("deny", "limit", "Not executed: the run's limit of 2 tool calls is used up."),
    ]
    assert watch.should_stop_after_turn(turn(1, calls=True))
    assert watch.exceeded == "the limit of 2 tool calls is used up"


def test_a_cost_that_is_not_known_is_not_taken_for_zero() -> None:
    watch = LimitWatch(RunLimits())
    watch.observe(MessageEnd(message(Usage(input_tokens=1, cost_usd=0.1))))
    watch.observe(MessageEnd(message(Usage(input_tokens=1))))
    assert watch.usage == Usage(input_tokens=2, cost_usd=None)
