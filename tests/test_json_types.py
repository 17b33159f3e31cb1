import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.json_types import MAX_DEPTH, MAX_INTEGER_DIGITS, Json, parse_json

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


def refusal(text: str) -> str:
    try:
        value = parse_json(text)
    except ValueError as error:
        return str(error)
    pytest.fail(f"it was read as {value!r:.50}")


@given(json_values)
def test_what_json_writes_is_read_back(value: Json) -> None:
    assert parse_json(json.dumps(value)) == value


@given(st.text(alphabet='{}[]",:\\ 01.eE-+nulltrfas\ud800', max_size=40))
def test_any_text_is_read_as_python_reads_it_or_refused_with_a_value_error(text: str) -> None:
    try:
        value = parse_json(text)
    except ValueError:
        return
    assert value == json.loads(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0", 0),
        ("1.0", 1.0),
        ("1e40", 1e40),
        (' {"a": [true, null]} ', {"a": [True, None]}),
        (r'"\ud800"', "\ud800"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        ('{"a": {"b": 1}, "b": 2}', {"a": {"b": 1}, "b": 2}),
    ],
)
def test_json_is_read(text: str, value: Json) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("NaN", "NaN is not JSON"),
        ("[Infinity]", "Infinity is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ("1e999", "the number 1e999 is too large"),
        ("-1e999", "the number -1e999 is too large"),
        ('{"a": 1, "b": 2, "a": 3}', 'the key "a" appears twice in one object'),
        ('{"": 1, "": 2}', 'the key "" appears twice in one object'),
        (r'{"a": 1, "\u0061": 2}', 'the key "a" appears twice in one object'),
    ],
)
def test_what_python_takes_silently_is_refused(text: str, problem: str) -> None:
    assert json.loads(text) is not None
    assert refusal(text) == problem


@pytest.mark.parametrize(
    "text", ["", "{", '{"a"', "{'a': 1}", "[1,]", "01", "1 2", '"\n"', "\ufeff1", "nul", "// a\n1"]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    assert refusal(text) != ""


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"[":', "}]")])
def test_depth_is_bounded_just_so(opening: str, closing: str) -> None:
    levels_each = opening.count("[") + opening.count("{") - opening.count('"[')
    times = MAX_DEPTH // levels_each
    assert parse_json(opening * times + "1" + closing * times) is not None
    assert refusal(opening * (times + 1) + "1" + closing * (times + 1)) == f"nested more than {MAX_DEPTH} levels deep"


@pytest.mark.parametrize("text", ["[" * 1_000_000, '{"a":' * 200_000, "]" * 1000 + "[" * 2000])
def test_no_nesting_overflows_the_stack(text: str) -> None:
    assert refusal(text) != ""


def test_brackets_inside_strings_are_not_nesting() -> None:
    text = json.dumps(['[{"' * 500, "\\", '\\"[' * 500])
    assert parse_json(text) == json.loads(text)


def test_the_length_of_integers_is_bounded_just_so() -> None:
    assert parse_json("9" * MAX_INTEGER_DIGITS) == 10**MAX_INTEGER_DIGITS - 1
    assert refusal("9" * (MAX_INTEGER_DIGITS + 1)) == f"an integer of {MAX_INTEGER_DIGITS + 1} digits is too long"


@pytest.mark.parametrize(
    "text",
    ["9" * 2_000_000, "0." + "1" * 2_000_000, "[" + "1e-400," * 100_000 + "1]", '"' + "\\u0041" * 300_000 + '"'],
    ids=["integer", "fraction", "small numbers", "escapes"],
)
def test_long_numbers_and_texts_take_no_long_time(text: str) -> None:
    started = time.process_time()
    try:
        assert parse_json(text) is not None
    except ValueError:
        assert len(refusal(text)) < 200
    assert time.process_time() - started < 5
