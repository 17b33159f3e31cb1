from datetime import UTC, datetime

import pytest

from ci_agent.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    add_usage,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def assistant(*parts: TextContent | ThinkingContent | ToolCall) -> AssistantMessage:
    return AssistantMessage(parts, "stop", "scripted", "test", "scripted", NOW)


def test_each_message_knows_its_role() -> None:
    messages: list[Message] = [UserMessage((), NOW), assistant(), ToolResultMessage("a", "read", (), False, NOW)]
    assert [message.role for message in messages] == ["user", "assistant", "tool_result"]


def test_a_role_is_not_given() -> None:
    with pytest.raises(TypeError):
        UserMessage((), NOW, role="assistant")  # type: ignore[call-arg]  # that is the point


def test_the_calls_of_a_message_are_those_in_its_content_in_order() -> None:
    first, second = ToolCall("a", "read", "{}"), ToolCall("a", "read", "{}")
    message = assistant(TextContent("x"), first, ThinkingContent("hm"), second)
    assert message.tool_calls == (first, second)
    assert assistant(TextContent("x")).tool_calls == ()


def test_the_text_of_a_message_is_its_text_parts_joined() -> None:
    parts = (TextContent("a"), ThinkingContent("secret"), ToolCall("", "read", ""), TextContent("b"))
    assert (assistant(*parts).text, assistant(parts[2]).text) == ("ab", "")


def test_the_total_of_tokens_counts_each_kind_once() -> None:
    assert Usage(1, 20, 300, 4000).total_tokens == 4321


def test_usages_are_added_up() -> None:
    assert add_usage([Usage(1, 2, 3, 4, 0.5), Usage(10, 20, 30, 40, 0.25)]) == Usage(11, 22, 33, 44, 0.75)


@pytest.mark.parametrize(
    ("costs", "total"),
    [([], None), ([None], None), ([0.0], 0.0), ([1.0, None], None), ([None, 1.0], None), ([1, 2], 3)],
)
def test_an_unknown_cost_stays_unknown_and_never_becomes_nothing(
    costs: list[float | None], total: float | None
) -> None:
    assert add_usage([Usage(cost_usd=cost) for cost in costs]).cost_usd == total
