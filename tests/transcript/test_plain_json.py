"""Whatever a tool or a model sends becomes JSON that strict parsers take."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent.json_types import Json
from ci_agent.transcript.plain_json import MAX_VALUES, Plain, canonical_json, json_text, plain


def strictly_read(text: str) -> Json:
    """What the strictest parsers take: UTF-8, no NaN, no key twice, 64 levels at most."""

    def refuse(name: str) -> NoReturn:
        raise AssertionError(f"{name} is no JSON")

    def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        assert len(dict(pairs)) == len(pairs), "a key appears twice"
        return dict(pairs)

    value = json.loads(text.encode("utf-8", "strict"), parse_constant=refuse, object_pairs_hook=unique)
    assert depth_of(value) <= 64
    return value


def depth_of(value: Json) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth_of, children), default=0) if isinstance(value, dict | list) else 0


def nested(levels: int, inner: object = "x") -> object:
    for _ in range(levels):
        inner = [inner]
    return inner


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers().map(lambda number: number**400)
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.binary()
    | st.datetimes()
    | st.just(object()),
    lambda children: (
        st.lists(children)
        | st.dictionaries(st.text(st.characters(codec=None), max_size=2) | st.integers(0, 3) | st.none(), children)
        | st.tuples(children)
        | children.map(lambda child: nested(200, child))
    ),
    max_leaves=30,
)


@given(ANYTHING)
@settings(deadline=None)
def test_any_value_becomes_strict_json_and_reads_back_as_itself(value: object) -> None:
    converted = plain(value)
    assert strictly_read(json_text(converted.value)) == converted.value
    assert strictly_read(canonical_json(converted.value)) == converted.value


@given(ANYTHING)
@settings(deadline=None)
def test_what_is_plain_already_stays_as_it_is(value: object) -> None:
    once = plain(value).value
    assert plain(once, lambda text: text) == Plain(once, replaced=0, complete=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\ud800b", Plain("a\ufffdb", 1, True)),
        ("\ud83d\ude00", Plain("😀", 0, True)),
        ("\ude00\ud83d", Plain("\ufffd\ufffd", 2, True)),
        ("kept: \ufffd", Plain("kept: \ufffd", 0, True)),
        (b"ok\xff\xfe", Plain("ok\ufffd\ufffd", 2, True)),
        (b"\xef\xbf\xbd", Plain("\ufffd", 0, True)),
        ("nul \0 stays", Plain("nul \0 stays", 0, True)),
        (float("nan"), Plain("NaN", 0, True)),
        ([float("inf"), -float("inf")], Plain(["Infinity", "-Infinity"], 0, True)),
        ([10**5000], Plain(["[left out: an integer too long]"], 0, False)),
        (object(), Plain("[left out: a Python object]", 0, False)),
        ({1: "a", "1": "b", None: "c"}, Plain({"1": "a", "1 (2)": "b", "null": "c"}, 0, True)),
        ({"\ud800": 1, b"\xff": 2}, Plain({"\ufffd": 1, "\ufffd (2)": 2}, 2, True)),
        (Path("a/b"), Plain("a/b", 0, True)),
        (datetime(2026, 1, 1, tzinfo=UTC), Plain("2026-01-01 00:00:00+00:00", 0, True)),
        ((1, {2}), Plain([1, [2]], 0, True)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_say_is_said_otherwise(value: object, expected: Plain) -> None:
    assert plain(value) == expected


def test_deep_nesting_is_cut_and_said() -> None:
    assert plain(nested(48)) == Plain(nested(48), 0, True)
    assert plain(nested(49)) == Plain(nested(48, "[left out: nested too deep]"), 0, False)
    assert not plain(nested(100_000)).complete


def test_a_list_that_holds_itself_twice_ends() -> None:
    endless: list[Any] = []
    endless += [endless, endless]
    converted = plain(endless)
    assert not converted.complete
    assert len(json_text(converted.value)) < 50 * MAX_VALUES


def test_fifty_thousand_keys_that_become_equal_stay_apart_in_linear_time() -> None:
    hostile = {f"{chr(0xD800 + n % 2048)}{chr(0xD800 + n // 2048)}": n for n in range(40_000)}
    started = time.process_time()
    converted = plain(hostile).value
    assert time.process_time() - started < 20  # what is not linear takes minutes
    assert list(converted.values()) == list(hostile.values())


def test_edit_sees_every_text_and_every_key_after_it_was_mended() -> None:
    seen: list[str] = []

    def edit(text: str) -> str:
        seen.append(text)
        return text.upper()

    assert plain({"a": ["b\ud800", {"c": b"d"}]}, edit).value == {"A": ["B\ufffd", {"C": "D"}]}
    assert seen == ["a", "b\ufffd", "c", "d"]


def test_json_text_is_one_readable_line_that_cannot_act_on_a_terminal() -> None:
    hostile = {"k\x9b": "é 漢 \x1b[31m \x7f \u202e \u200b \u2028 \n"}
    text = json_text(hostile)
    assert text == (
        '{"k\\u009b":"é 漢 \\u001b[31m \\u007f \\u202e \\u200b \\u2028 \\n"}'  # everything visible stays as it is
    )
    assert json.loads(text) == hostile
