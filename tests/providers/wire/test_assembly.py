"""The two rules of every API: which call a piece belongs to, and how a turn ended."""

from collections.abc import Iterator
from typing import TypedDict

import pytest

from ci_agent.json_types import Json
from ci_agent.messages import StopReason, TextContent, ThinkingContent, ToolCall, Usage
from ci_agent.provider import ContentDelta, ContentEnd, ContentEvent, ContentStart
from ci_agent.providers.wire.assembly import MAX_CALLS, MAX_CHARS, Assembly
from ci_agent.providers.wire.failures import ApiError


class Piece(TypedDict, total=False):
    key: int
    id: str | None
    name: str | None
    arguments: Json


def put(assembly: Assembly, *pieces: Piece) -> list[ContentEvent]:
    return [event for piece in pieces for event in assembly.tool_call(**piece)]


def calls(*pieces: Piece) -> list[tuple[str, str, str]]:
    assembly = Assembly()
    put(assembly, *pieces)
    return [(part.id, part.name, part.arguments_json) for part in assembly.content if isinstance(part, ToolCall)]


def arguments(*pieces: Json) -> str:
    begun: Piece = {"key": 0, "id": "x", "name": "a"}
    more: list[Piece] = [{"key": 0, "arguments": piece} for piece in pieces]
    return calls(begun, *more)[0][2]


# Which call a piece belongs to


def test_pieces_without_index_follow_the_id() -> None:
    assert calls(
        {"id": "x", "name": "a", "arguments": '{"p"'},
        {"id": "y", "name": "b", "arguments": '{"q"'},
        {"id": "x", "arguments": ":1}"},
        {"id": "y", "arguments": ":2}"},
    ) == [("x", "a", '{"p":1}'), ("y", "b", '{"q":2}')]


def test_pieces_with_nothing_but_arguments_belong_to_the_latest_call() -> None:
    assert calls({"name": "a", "arguments": "{"}, {"arguments": "}"}) == [("", "a", "{}")]


def test_one_index_for_all_calls_is_told_apart_by_new_ids_with_names() -> None:
    assert calls(
        {"key": 0, "id": "x", "name": "a", "arguments": '{"p"'},
        {"key": 0, "arguments": ":1}"},
        {"key": 0, "id": "y", "name": "a", "arguments": '{"p":2}'},
    ) == [("x", "a", '{"p":1}'), ("y", "a", '{"p":2}')]


def test_an_id_repeated_in_every_piece_begins_no_other_call() -> None:
    assert calls(
        {"key": 0, "id": "x", "name": "a", "arguments": "{"},
        {"key": 0, "id": "x", "name": "a", "arguments": '"p":1'},
        {"key": 0, "id": "x", "name": "a", "arguments": "}"},
    ) == [("x", "a", '{"p":1}')]


def test_an_id_that_changes_without_a_name_leaves_the_call_as_it_was() -> None:
    assert calls({"key": 0, "id": "x", "name": "a", "arguments": "{"}, {"key": 0, "id": "y", "arguments": "}"}) == [
        ("x", "a", "{}")
    ]


@pytest.mark.parametrize("nothing", ["", "null", None])
def test_an_empty_id_counts_as_absent(nothing: str | None) -> None:
    assert calls(
        {"key": 0, "id": "x", "name": "a", "arguments": "{"}, {"key": 0, "id": nothing, "name": "", "arguments": "}"}
    ) == [("x", "a", "{}")]
    assert calls({"key": 0, "id": nothing, "name": "a"}) == [("", "a", "{}")]


def test_an_id_may_come_late() -> None:
    assert calls({"name": "a", "arguments": "{"}, {"id": "x", "arguments": "}"}) == [("x", "a", "{}")]


def test_indexes_may_start_anywhere_and_have_gaps_and_order_is_of_first_appearance() -> None:
    assert calls({"key": 7, "id": "x", "name": "a"}, {"key": 1, "id": "y", "name": "b"}) == [
        ("x", "a", "{}"),
        ("y", "b", "{}"),
    ]


def test_one_id_under_two_indexes_is_two_calls() -> None:
    assert calls(
        {"key": 0, "id": "x", "name": "a", "arguments": '{"p":1}'},
        {"key": 1, "id": "x", "name": "a", "arguments": '{"p":2}'},
    ) == [("x", "a", '{"p":1}'), ("x", "a", '{"p":2}')]


@pytest.mark.parametrize("id_", ["", "x", None])
def test_without_index_a_name_after_complete_arguments_begins_another_call(id_: str | None) -> None:
    assert calls(
        {"id": id_, "name": "a", "arguments": "{}"},
        {"id": id_, "name": "a", "arguments": '{"p":2'},
        {"id": id_, "arguments": "}"},
    ) == [(id_ or "", "a", "{}"), (id_ or "", "a", '{"p":2}')]


def test_without_index_and_id_a_name_repeated_on_every_piece_begins_no_other_call() -> None:
    assert calls(
        {"name": "a"},
        {"name": "a", "arguments": '{"p":'},
        {"name": "a", "arguments": '"}{"'},
        {"name": "a", "arguments": "}"},
    ) == [("", "a", '{"p":"}{"}')]


def test_without_index_and_id_another_name_begins_another_call() -> None:
    assert calls({"name": "a"}, {"name": "b", "arguments": "{}"}) == [("", "a", "{}"), ("", "b", "{}")]


def test_one_index_and_no_ids_never_hands_one_call_the_arguments_of_another() -> None:
    assert calls(
        {"key": 0, "id": "", "name": "a", "arguments": "{}"}, {"key": 0, "id": "", "name": "b", "arguments": '{"p":1}'}
    ) == [("", "a", "{}"), ("", "b", '{"p":1}')]


def test_a_name_cut_in_pieces_is_put_together_before_the_arguments_begin() -> None:
    assert calls(
        {"key": 0, "id": "x", "name": "get_"},
        {"key": 0, "name": "weather", "arguments": ""},
        {"key": 0, "name": "get_weather", "arguments": '{"p":1}'},
    ) == [("x", "get_weather", '{"p":1}')]


def test_two_names_for_one_unfinished_call_are_malformed() -> None:
    assembly = Assembly()
    with pytest.raises(ApiError) as error:
        put(assembly, {"key": 0, "name": "a", "arguments": '{"p"'}, {"key": 0, "name": "b", "arguments": ":1}"})
    assert (error.value.kind, error.value.retryable) == ("malformed", True)


def test_a_call_is_announced_once_its_name_is_known_with_all_that_came_before() -> None:
    assembly = Assembly()
    before = put(assembly, {"key": 0, "id": "x", "arguments": '{"p"'}, {"key": 0, "arguments": ":"})
    after = put(assembly, {"key": 0, "name": "a", "arguments": "1"}, {"key": 0, "arguments": "}"})
    assert (before, after) == (
        [],
        [ContentStart("toolcall", 0), ContentDelta("toolcall", 0, '{"p":1'), ContentDelta("toolcall", 0, "}")],
    )


def test_a_piece_that_says_nothing_is_no_call() -> None:
    assembly = Assembly()
    put(assembly, {"key": 3})
    list(assembly.text("hi"))
    assembly.stop_reason = "stop"
    assert (assembly.content, assembly.end_turn(terminated=True)) == ((TextContent("hi"),), "stop")


# Arguments


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        ([], "{}"),
        ([""], "{}"),
        ([" \n"], "{}"),
        (["null"], "{}"),
        ([None], "{}"),
        ([{}], "{}"),
        ([{"p": "é"}], '{"p": "é"}'),
        (["{}", '{"p":1}'], '{"p":1}'),
        (["{}", " ", '{"p":1}'], '{"p":1}'),
        ([r'"{\"p\":1}"'], '{"p":1}'),
        ([r'"{\"p\":\"a\nb\"}"'], r'{"p":"a\nb"}'),
        (['{"p":"a\tb\nc"}'], r'{"p":"a\tb\nc"}'),
        (['{\n"p":\t"a\x01"}'], '{\n"p":\t"a\\u0001"}'),
        ([r'{"p":"say \"hi\"', '\n"}'], r'{"p":"say \"hi\"\n"}'),
    ],
)
def test_what_only_servers_add_to_arguments_is_undone(pieces: list[Json], whole: str) -> None:
    assert arguments(*pieces) == whole


@pytest.mark.parametrize(
    "text",
    [
        '{"p":',
        '{"p":"a\nb',
        r'{"p":"\q"}',
        '{"p":"a\\\nb"}',
        '{"p":1}{"p":2}',
        "{}1",
        "[1]",
        '"text"',
        r'"\"{}\""',
        "{'p':1}",
        "```json\n{}\n```",
        '{"p":1,}',
        "[" * 100_000,
        '"' + '\\"' * 100_000,
        "\n" + '"{' * 50_000,
    ],
)
def test_what_a_model_got_wrong_stays_wrong(text: str) -> None:
    assert arguments(text) == text.strip()


# Text and thinking


def test_parts_interleave_and_keep_the_order_in_which_they_began() -> None:
    assembly = Assembly()
    events = [
        *assembly.thinking("a"),
        *assembly.text(""),
        *assembly.text("b"),
        *assembly.tool_call(key=0, id="x", name="c"),
        *assembly.thinking("d"),
        *assembly.text("e"),
        *assembly.end_content(),
        *assembly.end_content(),
    ]
    assert events == [
        ContentStart("thinking", 0),
        ContentDelta("thinking", 0, "a"),
        ContentStart("text", 1),
        ContentDelta("text", 1, "b"),
        ContentStart("toolcall", 2),
        ContentDelta("thinking", 0, "d"),
        ContentDelta("text", 1, "e"),
        ContentEnd("thinking", 0),
        ContentEnd("text", 1),
        ContentEnd("toolcall", 2),
    ]
    assert assembly.content == (ThinkingContent("ad"), TextContent("be"), ToolCall("x", "c", "{}"))


def test_a_part_that_ended_is_followed_by_another_under_the_same_key() -> None:
    assembly = Assembly()
    for events in (assembly.text("a", 0), assembly.end_part("text", 0), assembly.text("b", 0)):
        list(events)
    assert assembly.content == (TextContent("a"), TextContent("b"))


def test_a_part_without_text_is_kept_for_what_it_replays() -> None:
    assembly = Assembly()
    assembly.keep("thinking", {"sealed": "x"}, 1)
    assembly.keep("thinking", {"sealed": "y", "more": 1}, 1)
    list(assembly.text("a"))
    assert assembly.content == (ThinkingContent("", {"sealed": "y", "more": 1}), TextContent("a"))


def test_the_first_name_of_response_and_model_counts() -> None:
    assembly = Assembly()
    for response_id, model in (("", None), ("r", ""), ("s", "m"), ("", "n")):
        assembly.identify(response_id=response_id, model=model)
    assert (assembly.response_id, assembly.model) == ("r", "m")


# The end of the turn


def ended(
    reason: StopReason | None,
    *pieces: Piece,
    text: str = "",
    terminated: bool = True,
    usage: Usage | None = None,
    limit: int | None = None,
) -> StopReason:
    assembly = Assembly(max_output_tokens=limit)
    put(assembly, *pieces)
    list(assembly.text(text))
    assembly.stop_reason, assembly.usage = reason, usage
    return assembly.end_turn(terminated=terminated)


CALL: Piece = {"key": 0, "id": "x", "name": "a", "arguments": "{}"}
HALF: Piece = {"key": 0, "id": "x", "name": "a", "arguments": '{"p'}


@pytest.mark.parametrize(
    ("reason", "pieces", "text", "stop_reason"),
    [
        ("stop", (), "hi", "stop"),
        ("stop", (CALL,), "", "tool_use"),
        ("stop", (CALL,), "hi", "tool_use"),
        ("tool_use", (CALL,), "", "tool_use"),
        ("tool_use", (), "hi", "stop"),
        ("length", (HALF,), "", "length"),
        ("length", (), "", "length"),
        (None, (), "hi", "stop"),
        (None, (CALL,), "", "tool_use"),
    ],
)
def test_how_a_turn_ends(
    reason: StopReason | None, pieces: tuple[Piece, ...], text: str, stop_reason: StopReason
) -> None:
    assert ended(reason, *pieces, text=text) == stop_reason


def test_a_stream_without_reason_and_end_was_cut_even_when_it_told_its_usage_on_the_way() -> None:
    with pytest.raises(ApiError) as error:
        ended(None, CALL, text="hi", terminated=False, usage=Usage(1, 1))
    assert (error.value.kind, error.value.retryable) == ("truncated", True)


@pytest.mark.parametrize(("output_tokens", "stop_reason"), [(9, "tool_use"), (10, "length"), (11, "length")])
def test_half_a_call_at_the_limit_is_cut_whatever_the_server_says(output_tokens: int, stop_reason: StopReason) -> None:
    assert ended("tool_use", HALF, usage=Usage(output_tokens=output_tokens), limit=10) == stop_reason


def test_a_whole_call_at_the_limit_is_whole() -> None:
    assert ended("tool_use", CALL, usage=Usage(output_tokens=10), limit=10) == "tool_use"


def test_a_call_without_a_name_is_malformed() -> None:
    with pytest.raises(ApiError) as error:
        ended("tool_use", {"key": 0, "id": "x", "arguments": "{}"})
    assert (error.value.kind, error.value.retryable) == ("malformed", True)


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_answer_that_says_nothing_is_a_failure(text: str) -> None:
    with pytest.raises(ApiError) as error:
        ended("stop", text=text)
    assert (error.value.kind, error.value.retryable) == ("empty", True)


def test_an_answer_that_was_only_thought_is_quoted() -> None:
    assembly = Assembly()
    list(assembly.thinking("so it is 42"))
    assembly.stop_reason = "stop"
    with pytest.raises(ApiError, match="so it is 42"):
        assembly.end_turn(terminated=True)


# Cost


class CountedText(str):
    """Counts how often its characters are walked through."""

    __slots__ = ()
    walks = 0

    def __iter__(self) -> Iterator[str]:
        CountedText.walks += 1
        return super().__iter__()


def test_a_name_repeated_on_every_piece_costs_one_look_at_each_piece() -> None:
    CountedText.walks = 0
    assembly = Assembly()
    put(assembly, {"name": "a", "arguments": CountedText('{"p":"')})
    for _ in range(1000):
        put(assembly, {"name": "a", "arguments": CountedText("x")})
    assert CountedText.walks == 1000


def test_the_halves_of_a_character_in_two_pieces_are_put_together() -> None:
    assembly = Assembly()
    for piece in ("a\ud83d", "\ude00b\ud83d"):
        list(assembly.text(piece))
    assert assembly.content == (TextContent("a\U0001f600b\ud83d"),)


def test_attack_more_calls_than_a_run_could_answer_in_its_time() -> None:
    assembly = Assembly()
    pieces: list[Piece] = [{"key": number, "name": "a"} for number in range(MAX_CALLS)]
    put(assembly, *pieces)
    with pytest.raises(ApiError, match=r"more than 2,000 tool calls") as failure:
        put(assembly, {"key": MAX_CALLS, "name": "canary"})
    assert not failure.value.retryable
    assert len(assembly.content) == MAX_CALLS


def test_attack_an_answer_that_fills_memory_and_record() -> None:
    assembly = Assembly()
    assert len(list(assembly.text("x" * (MAX_CHARS - 1)))) == 2
    put(assembly, {"key": 0, "name": "a", "arguments": "{"})
    with pytest.raises(ApiError, match=r"more than 4,194,304 characters") as failure:
        list(assembly.thinking("canary"))
    with pytest.raises(ApiError, match=r"more than 4,194,304 characters"):
        put(assembly, {"key": 0, "arguments": "}"})
    assert not failure.value.retryable
    assert sum(len(part.text) for part in assembly.content if isinstance(part, TextContent)) == MAX_CHARS - 1
