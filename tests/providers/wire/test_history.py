"""What of a conversation is sent to whom, and in which form."""

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent.json_types import JsonObject
from ci_agent.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    Message,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from ci_agent.provider import Model
from ci_agent.providers.model_facts import ModelFacts
from ci_agent.providers.wire.api import Target
from ci_agent.providers.wire.history import NO_RESULT, IdRule, arguments_object, sendable_history

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TARGET = Target(Model("here", "m"), "wire")
RULE = IdRule(re.compile(r"[A-Za-z0-9_-]"), 12)
NINE = IdRule(re.compile(r"[A-Za-z0-9]"), max_length=9, replace="", min_length=9)


def user(text: str) -> UserMessage:
    return UserMessage((TextContent(text),), NOW)


def own(*content: AssistantContent, stop_reason: StopReason = "tool_use") -> AssistantMessage:
    return AssistantMessage(content, stop_reason, "here", "m", "wire", NOW)


def foreign(*content: AssistantContent) -> AssistantMessage:
    return AssistantMessage(content, "tool_use", "there", "m", "wire", NOW)


def call(id_: str, arguments: str = "{}", replay: JsonObject | None = None) -> ToolCall:
    return ToolCall(id_, "t", arguments, replay)


def result(id_: str, text: str = "ok", *, is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(id_, "t", (TextContent(text),), is_error, NOW)


def sent(*messages: Message, rule: IdRule | None = RULE, target: Target = TARGET) -> tuple[Message, ...]:
    return sendable_history(messages, target, rule)


def ids(messages: tuple[Message, ...]) -> list[list[str]]:
    calls = [[part.id for part in message.tool_calls] for message in messages if isinstance(message, AssistantMessage)]
    results = [message.tool_call_id for message in messages if isinstance(message, ToolResultMessage)]
    assert [id_ for some in calls for id_ in some] == results
    return calls


def test_a_conversation_of_ones_own_is_sent_as_it_is() -> None:
    conversation = (
        user("hi"),
        own(ThinkingContent("hm", {"sig": "x"}), TextContent("so"), call("a.1", '{"p": 1}', {"sig": "y"})),
        result("a.1"),
        own(TextContent("done"), stop_reason="stop"),
    )
    assert sent(*conversation) == conversation


def test_failed_turns_are_left_out_with_their_results() -> None:
    for reason in ("error", "aborted"):
        failed = own(TextContent("half"), call("a"), stop_reason=reason)
        assert sent(user("hi"), failed, result("a"), user("again")) == (user("hi"), user("again"))


def test_a_turn_that_was_cut_is_kept_with_its_results() -> None:
    cut = own(call("a", '{"p": "ha'), stop_reason="length")
    assert sent(cut, result("a", is_error=True)) == (
        own(call("a", '{"invalid_json": "{\\"p\\": \\"ha"}'), stop_reason="length"),
        result("a", is_error=True),
    )


def test_every_call_gets_one_result_in_the_order_of_the_calls() -> None:
    messages = sent(own(call("a"), call("b"), call("c")), result("c"), user("wait"), result("a"), result("a", "twice"))
    assert messages == (
        own(call("a"), call("b"), call("c")),
        result("a"),
        result("b", NO_RESULT, is_error=True),
        result("c"),
        user("wait"),
    )


def test_a_call_at_the_end_gets_a_result_too() -> None:
    assert sent(own(call("a"))) == (own(call("a")), result("a", NO_RESULT, is_error=True))


def test_a_result_without_a_call_is_left_out() -> None:
    assert sent(result("z"), user("hi"), own(TextContent("so")), result("a")) == (user("hi"), own(TextContent("so")))


def test_equal_ids_are_paired_by_order_and_told_apart() -> None:
    messages = sent(own(call("a"), call("a"), call("")), result("a", "1"), result("a", "2"), result("", "3"))
    assert [part.text for message in messages[1:] for part in message.content if isinstance(part, TextContent)] == [
        "1",
        "2",
        "3",
    ]
    (made,) = ids(messages)
    assert made[0] == "a"
    assert len(set(made)) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,12}", id_) for id_ in made)


def test_an_id_repeated_in_another_message_is_kept_for_its_maker() -> None:
    assert ids(sent(own(call("call_0")), result("call_0"), own(call("call_0")), result("call_0"))) == [
        ["call_0"],
        ["call_0"],
    ]


def test_foreign_ids_follow_the_rule_and_differ_from_all_others() -> None:
    (first, second, third) = ids(
        sent(foreign(call("a:1"), call("a.1")), foreign(call("a:1"), call("x" * 40), call("a_2")), own(call("a_2")))
    )
    assert (first[0], third) == ("a_1", ["a_2"])
    everything = [*first, *second, *third]
    assert len(set(everything)) == len(everything) == 6
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,12}", id_) for id_ in everything)


def test_ids_of_an_exact_length_are_made_so() -> None:
    ((first, second, third),) = ids(sent(foreign(call("call_123"), call("123456789"), call("")), rule=NINE))
    assert second == "123456789"
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", id_) for id_ in (first, third))


def test_ids_stay_as_they_were_while_the_conversation_grows() -> None:
    turns: list[Message] = []
    before: list[list[str]] = []
    for _ in range(4):
        turns += [foreign(call("call:0"), call("")), result("call:0"), result("")]
        now = ids(sent(*turns, rule=NINE))
        assert now[: len(before)] == before
        before = now


def test_what_another_model_made_keeps_nothing_that_only_it_can_read() -> None:
    assert sent(
        foreign(
            ThinkingContent("hm", {"sig": "x"}),
            ThinkingContent("", {"sealed": "y"}),
            TextContent("so", {"phase": "z"}),
            call("a", replay={"sig": "x"}),
        ),
        rule=None,
    )[0] == foreign(TextContent("hm"), TextContent("so"), call("a"))


def test_blank_parts_and_messages_without_any_are_left_out() -> None:
    assert sent(
        UserMessage((TextContent(" "), TextContent("hi")), NOW),
        user(""),
        own(TextContent("\n"), ThinkingContent(""), stop_reason="stop"),
        own(TextContent("", {"sig": "x"}), TextContent("so"), stop_reason="stop"),
    ) == (user("hi"), own(TextContent("", {"sig": "x"}), TextContent("so"), stop_reason="stop"))


def test_half_a_surrogate_pair_is_replaced_wherever_it_may_be() -> None:
    signed = ThinkingContent("\ud83d", {"sig": "\ud83d"})
    messages = sent(
        user("a\ud83db\ud83d\ude00"),
        own(signed, ThinkingContent("\udc00"), ToolCall("a", "t\ud800", r'{"p": "\ud83d", "q": "\ud83d\ude00"}')),
        result("a", "\udfff"),
    )
    assert messages == (
        user("a�b😀"),
        own(signed, ThinkingContent("�"), ToolCall("a", "t�", '{"p": "�", "q": "😀"}')),
        ToolResultMessage("a", "t�", (TextContent("�"),), False, NOW),
    )


def test_images_are_not_shown_to_a_model_that_cannot_see() -> None:
    image = ImageContent("image/png", "QUJD")
    messages = (UserMessage((image,), NOW), own(call("a")), ToolResultMessage("a", "t", (image,), False, NOW))
    blind = Target(TARGET.model, TARGET.api, ModelFacts(sees_images=False))
    shown = [part for message in sent(*messages, target=blind) for part in message.content]
    assert [part for part in shown if isinstance(part, ImageContent)] == []
    assert sent(*messages) == messages


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ("[1]", {"invalid_json": "[1]"}),
        ('{"a": 1, "a": 2}', {"invalid_json": '{"a": 1, "a": 2}'}),
        ('{"a": NaN}', {"invalid_json": '{"a": NaN}'}),
        ("[" * 5_000, {"invalid_json": "[" * 5_000}),
    ],
)
def test_arguments_are_sent_as_an_object_that_hides_nothing(text: str, arguments: JsonObject) -> None:
    assert arguments_object(text) == arguments


ID = st.sampled_from(["", "a", "b", "a.b", "a_b", "x" * 70, "\ud800", "null"])
PART = st.one_of(
    st.builds(TextContent, st.text(max_size=3)),
    st.builds(ThinkingContent, st.text(max_size=3), st.none() | st.just({"sig": "x"})),
    st.builds(ToolCall, ID, st.text(max_size=3), st.sampled_from(["{}", "", '{"a', "null", '{"a": "\ud800"}'])),
)
MESSAGE: st.SearchStrategy[Message] = st.one_of(
    st.builds(user, st.text(max_size=3)),
    st.builds(lambda parts: own(*parts), st.lists(PART, max_size=4)),
    st.builds(lambda parts: own(*parts, stop_reason="error"), st.lists(PART, max_size=4)),
    st.builds(lambda parts: foreign(*parts), st.lists(PART, max_size=4)),
    st.builds(result, ID),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(MESSAGE, max_size=10), st.sampled_from([RULE, NINE, None]))
def test_any_conversation_is_sent_in_whole_pairs(messages: list[Message], rule: IdRule | None) -> None:
    history = sent(*messages, rule=rule)
    waiting: list[ToolCall] = []
    for message in history:
        if isinstance(message, ToolResultMessage):
            assert waiting.pop(0).id == message.tool_call_id
        else:
            assert waiting == []
            assert message.content
        if isinstance(message, AssistantMessage):
            waiting = list(message.tool_calls)
            assert len({part.id for part in waiting}) == len(waiting)
            assert all(part.id and isinstance(json.loads(part.arguments_json), dict) for part in waiting)
    assert waiting == []
