"""Arguments that come as values at paths."""

import pytest

from ci_agent.json_types import Json, JsonObject
from ci_agent.providers.gemini.arguments import MAX_PATH_CHARS, PartialArguments
from ci_agent.providers.wire.failures import ApiError


def put_together(*pieces: Json) -> JsonObject:
    arguments = PartialArguments()
    for piece in pieces:
        arguments.add([piece])
    return arguments.value()


def text(path: str, value: str, *, goes_on: bool = False) -> JsonObject:
    return {"jsonPath": path, "stringValue": value, **({"willContinue": True} if goes_on else {})}


def test_texts_come_in_pieces_and_side_by_side() -> None:
    pieces = [
        text("$.a", "1", goes_on=True),
        text("$.b", "x", goes_on=True),
        text("$['a']", "2", goes_on=True),
        text('$["a"]', ""),
        text("$.b", "y"),
    ]
    assert put_together(*pieces) == {"a": "12", "b": "xy"}


def test_paths_make_the_objects_and_lists_on_their_way() -> None:
    assert put_together(
        {"jsonPath": "$.list[0][0].deep", "numberValue": 1.5},
        {"jsonPath": "$.list[0][1]", "boolValue": True},
        {"jsonPath": "$.list[1]", "nullValue": None},
        {"jsonPath": "$['a b.c']['__class__']", "stringValue": "plain"},
        {"jsonPath": "$.ключ", "numberValue": 10**400},
    ) == {"list": [[{"deep": 1.5}, True], None], "a b.c": {"__class__": "plain"}, "ключ": 10**400}


def test_a_value_that_comes_again_replaces_the_first() -> None:
    assert put_together(text("$.a", "1"), text("$.a", "2"), text("$.l[0]", "x"), text("$.l[0]", "y")) == {
        "a": "2",
        "l": ["y"],
    }


def test_what_came_at_once_is_added_to_and_not_changed_itself() -> None:
    whole: JsonObject = {"a": 1}
    arguments = PartialArguments(whole)
    arguments.add([text("$.b", "2")])
    assert (arguments.value(), whole) == ({"a": 1, "b": "2"}, {"a": 1})


def test_a_text_that_goes_on_is_not_complete() -> None:
    arguments = PartialArguments()
    arguments.add([text("$.a", "1", goes_on=True)])
    assert not arguments.is_complete
    arguments.add([text("$.a", "")])
    assert arguments.is_complete


@pytest.mark.parametrize(
    "path",
    [
        "",
        "$",
        "a",
        "$.",
        "$..a",
        "$.*",
        "$[*]",
        "$.a[-1]",
        "$.a[1]",
        "$.a[999999999]",
        "$.a[9999999999999]",
        "$[0]",
        "$.a b",
        "$.a[?(@.b)]",
        "$.a]",
        "$.a" + "x" * MAX_PATH_CHARS,
        "$" + ".a" * 65,
        "$" + "[0]" * 65,
    ],
)
def test_paths_that_cannot_be_followed_are_refused(path: str) -> None:
    with pytest.raises(ApiError, match="cannot be put together") as caught:
        put_together(text(path, "x"))
    assert (caught.value.kind, caught.value.retryable) == ("malformed", True)


@pytest.mark.parametrize("path", ["$.a.b", "$.a[0]", "$.l.x", "$.l[0].x", "$.l[2]", "$.o[0]"])
def test_paths_through_what_is_something_else_are_refused(path: str) -> None:
    with pytest.raises(ApiError, match="not there"):
        put_together(text("$.a", "x"), text("$.l[0]", "x"), text("$.o.x", "x"), text(path, "y"))


@pytest.mark.parametrize(
    "piece", [{}, {"numberValue": True}, {"numberValue": float("nan")}, {"stringValue": 7}, {"boolValue": 1}]
)
def test_values_of_no_known_kind_are_refused(piece: JsonObject) -> None:
    with pytest.raises(ApiError, match="no value"):
        put_together({"jsonPath": "$.a", **piece})


@pytest.mark.parametrize("piece", [None, 7, "x", []])
def test_what_is_no_piece_is_refused(piece: Json) -> None:
    with pytest.raises(ApiError, match="cannot be put together"):
        put_together(piece)
