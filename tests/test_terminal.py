"""Hostile text in a log: nothing controls the terminal, nothing commands the runner."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.terminal import inert_json, inert_lines, prefixed, printable, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode 日本 👩‍👩‍👧", "plain ünïcode 日本 👩‍👩‍👧"),
        ("\x1b[31mred\x1b]8;;http://x\x07", "\\x1b[31mred\\x1b]8;;http://x\\x07"),
        ("a\r::error::b\nc", "a\\r::error::b\\nc"),
        ("x ##[add-mask]y", "x ##\\[add-mask]y"),
        ("x ##vso[task.setvariable]y", "x ##vso\\[task.setvariable]y"),
        ("###TeamCity[a] ##v\ufe0fso[b]", "###TeamCity\\[a] ##v\ufe0fso\\[b]"),
        ("## a[b] #[c]", "## a[b] #[c]"),
        ("right\u202eleft\u2066 zero\u200bwidth\x9b", "right\\u202eleft\\u2066 zero\\u200bwidth\\x9b"),
        ("half \ud800 pair", "half \\ud800 pair"),
        ("line\u2028separator", "line\\u2028separator"),
        ("no\u200d-push \u200d", "no\\u200d-push \\u200d"),
        ("\u0915\u094d\u200d\u0937", "\u0915\u094d\u200d\u0937"),
        ("\u2764\ufe0f a\ufe00b\U000e0141\u034f\u3164", "\u2764\ufe0f a\\ufe00b\\U000e0141\\u034f\\u3164"),
    ],
)
def test_printable_escapes_what_controls_or_hides(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters(exclude_categories=[])))
def test_printable_is_always_one_encodable_line_without_the_runners_marker(text: str) -> None:
    shown = printable(text)
    shown.encode("utf-8")
    assert shown.splitlines() in ([], [shown])
    assert "##[" not in shown


def test_inert_json_says_the_same_and_commands_no_runner() -> None:
    value = ["##[error]", "###vso[x]", "##teamcity[y]", "## a[0]", "#[", "\u65e5##\ufe0f["]
    text = inert_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert text.count("#\\u0023") == 4
    assert not any(marker in text for marker in ("##[", "##vso[", "##teamcity["))


def test_shortened_says_that_something_is_missing() -> None:
    assert [shortened("abcdef", 6), shortened("abcdefg", 6)] == ["abcdef", "abcde…"]


def test_prefixed_lines_never_begin_with_what_the_text_says() -> None:
    assert prefixed("::error::a\n##[group]b\n") == "| ::error::a\n| ##\\[group]b\n| "


def test_inert_lines_are_broken_only_where_a_line_would_be_a_command() -> None:
    assert inert_lines("std::vector\n::error::a\n\u00a0 \ufe0f::group::b\n##[debug]c\r::x::") == (
        "std::vector\n:\\:error::a\n\u00a0 \ufe0f:\\:group::b\n##\\[debug]c\\r::x::"
    )
