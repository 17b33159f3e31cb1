"""The strict reader of JSON from outside: what it takes, and what it says when it refuses."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.json_types import Json, parse_json

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
)


@given(JSON_VALUES)
def test_json_reads_as_what_was_written(value: Json) -> None:
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "a": 2}', 'the key "a" appears twice in one object'),
        ("[NaN]", "NaN is not JSON"),
        ("-Infinity", "-Infinity is not JSON"),
        ("1e999", "the number 1e999 is too large"),
        ("9" * 1001, "an integer of 1001 digits is too long"),
        ("[" * 101 + "]" * 101, "nested more than 100 levels deep"),
        ('{"a":' * 100_000, "nested more than 100 levels deep"),
        ("[" * 200, "nested more than 100 levels deep"),
    ],
    ids=lambda text: text[:20],
)
def test_what_lenient_readers_take_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="^" + problem.replace("[", r"\[") + "$"):
        parse_json(text)


@pytest.mark.parametrize("text", ["", "{", '{"a": "b', "nul", '"\\', "\\[", "[1,]"])
def test_half_a_text_is_no_value(text: str) -> None:
    with pytest.raises(ValueError, match=r"line 1 column \d+"):
        parse_json(text)


def test_brackets_inside_strings_do_not_nest() -> None:
    text = '["' + "[{" * 500 + r"\"[[[" * 100 + '", ' + "[]," * 500 + "[" * 99 + "]" * 99 + "]"
    assert parse_json(text)[0] == "[{" * 500 + '"[[[' * 100


def test_a_hundred_levels_are_taken() -> None:
    assert json.dumps(parse_json("[" * 100 + "]" * 100)) == "[" * 100 + "]" * 100
