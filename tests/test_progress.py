"""Progress lines: one for each call, readable, and harmless whatever the model calls."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from ci_agent.events import AgentEvent, MessageEnd, ToolExecutionEnd
from ci_agent.hooks import Decision, ToolCallOutcome
from ci_agent.messages import AssistantMessage, TextContent, ThinkingContent, ToolCall
from ci_agent.progress import ProgressLines

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DENIAL = Decision(effect="deny", code="rule", reason="Blocked", rule_id="no-push")
DEFAULT = Decision(effect="deny", code="default", reason="Blocked")


def lines(*events: AgentEvent, verbose: bool = False) -> list[str]:
    written: list[str] = []
    clock = iter(range(100))
    progress = ProgressLines(written.append, lambda: next(clock), verbose=verbose)
    for event in events:
        progress(event)
    return written


def end(name: str, arguments: str, outcome: ToolCallOutcome) -> ToolExecutionEnd:
    return ToolExecutionEnd(4, 0, ToolCall("c", name, arguments), outcome)


def test_each_call_is_one_line_with_its_time_its_turn_and_its_end() -> None:
    text = (TextContent("tests failed\nexit status 2"),)
    assert lines(
        end("bash", '{"command": "git diff --stat"}', ToolCallOutcome("ok", None, text)),
        end("bash", '{"command": "git push"}', ToolCallOutcome("denied", "before_tool_call", text, decision=DENIAL)),
        end("read", '{"path": "x"}', ToolCallOutcome("denied", "before_tool_call", text, decision=DEFAULT)),
        end("bash", '{"command": "make\\ntest"}', ToolCallOutcome("error", "execute", text, {"exit_status": 2})),
        end("read", '{"path": "y"}', ToolCallOutcome("error", "execute", (TextContent("y is a folder\nuse ls"),))),
        end("nothing", '{"a": 1}', ToolCallOutcome("cancelled", "cancelled", text)),
    ) == [
        "   1.0s  turn 4  bash  git diff --stat  ok",
        "   2.0s  turn 4  bash  git push  denied by no-push",
        "   3.0s  turn 4  read  x  denied (default)",
        "   4.0s  turn 4  bash  make\\ntest  error: exit status 2: tests failed",
        "   5.0s  turn 4  read  y  error: y is a folder",
        '   6.0s  turn 4  nothing  {"a": 1}  cancelled',
    ]


def test_hostile_names_and_arguments_stay_one_harmless_line() -> None:
    (line,) = lines(end("x\n::error::", "\x1b[31m##[add-mask]" + "y" * 200, ToolCallOutcome("error", "lookup", ())))
    assert line == ("   1.0s  turn 4  x\\n::error::  \\x1b[31m##\\[add-mask]" + "y" * 58 + "…  error: ")


def test_a_failing_model_is_a_line_of_its_own() -> None:
    message = AssistantMessage((), "error", "p", "m", "a", NOW, error_message="overloaded\nagain")
    assert lines(MessageEnd(message)) == ["   1.0s  model  overloaded\\nagain"]


def test_verbose_shows_results_and_answers_behind_a_prefix() -> None:
    answer = AssistantMessage((ThinkingContent("Hm."), TextContent("Done.\n::notice::x")), "stop", "p", "m", "a", NOW)
    assert lines(
        end("ls", "{}", ToolCallOutcome("ok", None, (TextContent("a\nb"),))),
        end("ls", "{}", ToolCallOutcome("ok", None, (TextContent("\n".join("12345678")),))),
        end("bash", "{}", ToolCallOutcome("error", "execute", (TextContent("\n".join("12345678")),))),
        MessageEnd(answer),
        verbose=True,
    ) == [
        "   1.0s  turn 4  ls  {}  ok",
        "        | a",
        "        | b",
        "   2.0s  turn 4  ls  {}  ok",
        *(f"        | {number}" for number in "123456"),
        "        | … and 2 more lines",
        "   3.0s  turn 4  bash  {}  error: 1",
        "        | 2 lines …",
        *(f"        | {number}" for number in "345678"),
        "        | Hm.",
        "        | Done.",
        "        | ::notice::x",
    ]


def test_verbose_counts_the_lines_that_were_cut_out_of_a_result() -> None:
    text = "\n".join([*"1234", "[90 lines omitted]", *"5678"])
    outcome = ToolCallOutcome("ok", None, (TextContent(text),), details={"omitted_lines": 90})
    assert lines(end("bash", "{}", outcome), verbose=True)[-1] == "        | … and 92 more lines"


def test_attack_no_line_is_a_command_to_the_runner(
    hostile_texts: Callable[[int, int], Iterator[str]], runner_commands: Callable[[str], list[str]]
) -> None:
    texts = hostile_texts(10_000, 7)
    for one, two, three in zip(texts, texts, texts, strict=False):
        content = (TextContent(f"{one}\n{two}\n{three}"),)
        message = AssistantMessage((TextContent(two), ThinkingContent(three)), "stop", "p", "m", "a", NOW)
        failed = AssistantMessage((), "error", "p", "m", "a", NOW, error_message=one)
        written = lines(
            end(one, two, ToolCallOutcome("error", "execute", content)),
            end(
                "bash", json.dumps({"command": three}), ToolCallOutcome("error", "execute", content, {"exit_status": 1})
            ),
            end(two, json.dumps({one: three}), ToolCallOutcome("ok", None, content)),
            MessageEnd(message),
            MessageEnd(failed),
            verbose=True,
        )
        assert runner_commands("\n".join(written)) == []
