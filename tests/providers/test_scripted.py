"""The scripted model: what it says, how it fails, and how a wrong script is refused."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.errors import CIAgentError
from ci_agent.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
)
from ci_agent.provider import (
    ContentDelta,
    ContentEnd,
    ContentStart,
    Context,
    Model,
    StreamDone,
    StreamEvent,
    StreamFailed,
    StreamFn,
    StreamOptions,
    StreamStart,
)
from ci_agent.providers.script import read_script
from ci_agent.providers.scripted import create_scripted_stream

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MODEL = Model("scripted", "demo.yaml")


def play(tmp_path: Path, text: str) -> StreamFn:
    script = tmp_path / "demo.yaml"
    script.write_text(text)
    return create_scripted_stream(*read_script(script), lambda: NOW)


def ask(stream: StreamFn, *messages: Message, cancel: CancelToken | None = None) -> list[StreamEvent]:
    return list(stream(MODEL, Context("", messages, ()), StreamOptions(), cancel or CancelToken()))


def answer(events: Sequence[StreamEvent]) -> AssistantMessage:
    last = events[-1]
    assert isinstance(last, StreamDone | StreamFailed)
    return last.message


def result(call_id: str, text: str) -> ToolResultMessage:
    return ToolResultMessage(call_id, "ls", (TextContent(text),), is_error=False, timestamp=NOW)


def test_a_turn_streams_each_part_and_ends_with_the_whole_message(tmp_path: Path) -> None:
    stream = play(
        tmp_path,
        """
turns:
  - thinking: First the tree.
    text: I look.
    tool_calls:
      - {id: tree, name: ls, arguments: {path: .}}
      - {name: write, arguments_json: '{"path": "a.txt", "cont'}
    usage: {input_tokens: 120, output_tokens: 30}
""",
    )
    message = AssistantMessage(
        content=(
            ThinkingContent("First the tree."),
            TextContent("I look."),
            ToolCall("tree", "ls", '{"path": "."}'),
            ToolCall("call_1_2", "write", '{"path": "a.txt", "cont'),
        ),
        stop_reason="tool_use",
        provider="scripted",
        model="demo.yaml",
        api="scripted",
        timestamp=NOW,
        usage=Usage(input_tokens=120, output_tokens=30),
    )
    assert ask(stream) == [
        StreamStart(),
        ContentStart("thinking", 0),
        ContentDelta("thinking", 0, "First the tree."),
        ContentEnd("thinking", 0),
        ContentStart("text", 1),
        ContentDelta("text", 1, "I look."),
        ContentEnd("text", 1),
        ContentStart("toolcall", 2),
        ContentDelta("toolcall", 2, '{"path": "."}'),
        ContentEnd("toolcall", 2),
        ContentStart("toolcall", 3),
        ContentDelta("toolcall", 3, '{"path": "a.txt", "cont'),
        ContentEnd("toolcall", 3),
        StreamDone(message),
    ]


def test_a_turn_without_calls_stops_unless_it_says_otherwise(tmp_path: Path) -> None:
    stream = play(tmp_path, "turns: [{text: done}, {text: cut, stop_reason: length}]")
    assert [answer(ask(stream)).stop_reason for _ in range(2)] == ["stop", "length"]


def test_templates_quote_earlier_results_in_text_thinking_and_arguments(tmp_path: Path) -> None:
    stream = play(
        tmp_path,
        """
turns:
  - tool_calls: [{id: tree, name: ls, arguments: {}}]
  - thinking: saw {{result.tree}}
    text: "It has {{ result.tree }} and {{ result.tree }}"
    tool_calls:
      - {id: w, name: write, arguments: {path: x, lines: ["{{ result.tree }}", 1]}}
      - {id: r, name: write, arguments_json: "{{ result.tree }}"}
""",
    )
    ask(stream)
    assert answer(ask(stream, result("tree", "old"), result("tree", 'a "b" {{ result.tree }}'))).content == (
        ThinkingContent('saw a "b" {{ result.tree }}'),
        TextContent('It has a "b" {{ result.tree }} and a "b" {{ result.tree }}'),
        ToolCall("w", "write", '{"path": "x", "lines": ["a \\"b\\" {{ result.tree }}", 1]}'),
        ToolCall("r", "write", 'a "b" {{ result.tree }}'),
    )


def test_an_expectation_that_a_result_does_not_meet_is_a_final_failure(tmp_path: Path) -> None:
    text = "turns:\n  - tool_calls: [{id: t, name: ls, arguments: {}}]\n  - text: fine\n    expect: {t: README}\n"
    met, unmet = play(tmp_path, text), play(tmp_path, text)
    ask(met), ask(unmet)
    assert answer(ask(met, result("t", "README.md"))).text == "fine"
    failed = answer(ask(unmet, result("t", "nothing here")))
    assert (failed.stop_reason, failed.error_retryable) == ("error", False)
    assert failed.error_message == (
        f"{tmp_path / 'demo.yaml'}:4: the script's expectation failed in turn 2: the result of 't' should contain "
        "'README', and is 'nothing here'"
    )


def test_an_expectation_of_a_call_that_never_ended_is_told_so(tmp_path: Path) -> None:
    unmet = play(tmp_path, "turns: [{tool_calls: [{id: t, name: ls, arguments: {}}]}, {expect: {t: a}, text: fine}]")
    ask(unmet)
    told = answer(ask(unmet)).error_message
    assert told is not None
    assert told.endswith(
        ": the script's expectation failed in turn 2: the result of 't' should contain 'a', and never came"
    )


def test_a_scripted_error_is_a_failed_stream_with_its_own_word_on_retrying(tmp_path: Path) -> None:
    stream = play(tmp_path, "turns: [{error: {message: overloaded, retryable: true}}, {error: {message: gone}}]")
    failures = [answer(ask(stream)) for _ in range(2)]
    assert [(failure.stop_reason, failure.error_message, failure.error_retryable) for failure in failures] == [
        ("error", "overloaded", True),
        ("error", "gone", False),
    ]


def test_asking_past_the_last_turn_fails_and_says_how_to_end_a_script(tmp_path: Path) -> None:
    stream = play(tmp_path, "turns: [{text: only}]")
    ask(stream)
    assert answer(ask(stream)).error_message == (
        f"the script {tmp_path / 'demo.yaml'} has 1 turn, and the loop asked for one more: end it with a "
        "turn that has no tool_calls"
    )


def test_a_delay_ends_as_soon_as_the_run_is_cancelled(tmp_path: Path) -> None:
    stream = play(tmp_path, "turns: [{text: late, delay_s: 3600}]")
    cancel = CancelToken()
    cancel.cancel("enough")
    aborted = answer(ask(stream, cancel=cancel))
    assert (aborted.stop_reason, aborted.error_message) == ("aborted", "enough")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("turns: []", "demo.yaml:1:8: "),
        ("turns:\n  - texts: hi\n", 'demo.yaml:2:5: unknown key "texts": did you mean "text"?'),
        ("turns:\n  - text: [a]\n", "demo.yaml:2:11: "),
        ("turns:\n  - tool_calls: [{name: ls}]\n", "give arguments or arguments_json, one of them"),
        ("turns:\n  - text: '{{ result.tree }}'\n", "no earlier turn has a tool call with the id 'tree' (known: none)"),
        ("turns:\n  - expect: {tree: x}\n    text: a\n", "no earlier turn has a tool call with the id 'tree'"),
        ("turns:\n  - {error: {message: x}, text: late}\n", "a turn with an error says nothing else"),
        ("turns:\n  - stop_reason: error\n", "demo.yaml:2:18: "),
        ("turns: &a []", "demo.yaml:1:8: "),
    ],
)
def test_a_wrong_script_is_refused_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(CIAgentError) as refused:
        play(tmp_path, text)
    assert problem in str(refused.value)
    assert refused.value.exit_code == 3


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_a_script_that_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CIAgentError) as refused:
        read_script(tmp_path / name)
    assert (refused.value.exit_code, "script" in str(refused.value)) == (3, True)
