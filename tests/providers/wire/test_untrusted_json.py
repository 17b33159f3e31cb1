"""Values out of JSON that nobody has checked."""

import pytest

from ci_agent.json_types import Json
from ci_agent.providers.wire.untrusted_json import can_be_sent, list_at, object_at, text_at, value_at

SOURCE: Json = {"a": {"t": "x", "l": [1], "n": None}, "s": "text"}


def test_values_of_the_type_asked_for_are_found() -> None:
    assert text_at(SOURCE, "a", "t") == "x"
    assert list_at(SOURCE, "a", "l") == [1]
    assert object_at(SOURCE, "a") == {"t": "x", "l": [1], "n": None}
    assert value_at(SOURCE, "a", "n") is None


@pytest.mark.parametrize("path", [("a", "gone"), ("gone", "t"), ("s", "t"), ("a", "l", "t"), ("a", "n")])
def test_anything_else_is_empty(path: tuple[str, ...]) -> None:
    assert (text_at(SOURCE, *path), list_at(SOURCE, *path), object_at(SOURCE, *path)) == ("", [], {})


@pytest.mark.parametrize("source", [None, [], "text", 1, True])
def test_a_source_that_is_no_object_holds_nothing(source: Json) -> None:
    assert text_at(source, "a") == ""


@pytest.mark.parametrize(
    ("value", "sendable"), [("ä😀", True), ({"a": ["x"]}, True), (["\ud800"], False), ({"\udc00": 1}, False)]
)
def test_half_a_surrogate_pair_cannot_be_sent(value: Json, sendable: bool) -> None:
    assert can_be_sent(value) is sendable
