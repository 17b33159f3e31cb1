import pytest

from ci_agent.errors import InvalidFileError
from ci_agent.strict_yaml import load_yaml, quote


@pytest.mark.parametrize(
    ("text", "place", "character", "escape"),
    [
        ("a: b\u200bc", "1:5", "U+200B (zero width space)", "\\u200b"),
        ("a: \u202eb", "1:4", "U+202E (right-to-left override)", "\\u202e"),
        ("# \u2066\na: b", "1:3", "U+2066 (left-to-right isolate)", "\\u2066"),
        ("a: \x00", "1:4", "U+0000 (a control character)", "\\u0000"),
        ("a: \x1b[31m", "1:4", "U+001B (a control character)", "\\u001b"),
        ("a: b\rc: d", "1:5", "U+000D (a control character)", "\\u000d"),
        ("a: \u3164", "1:4", "U+3164 (hangul filler)", "\\u3164"),
        ("a: \U000e0041", "1:4", "U+E0041 (tag latin capital letter a)", "\\U000e0041"),
        ("a: \ufeffb", "1:4", "U+FEFF (zero width no-break space)", "\\ufeff"),
        ("a: b\u2028c", "1:5", "U+2028 (line separator)", "\\u2028"),
        ("a: \u200db", "1:4", "U+200D (zero width joiner)", "\\u200d"),
    ],
)
def test_what_no_reader_sees_is_refused(text: str, place: str, character: str, escape: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_yaml(text, "f.yml")
    advice = f'delete it, or write it as "{escape}" in double quotes'
    assert str(caught.value) == f"f.yml:{place}: invisible character {character}: {advice}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n  b: c\u00a0d", "2:7: the blank U+00A0 (no-break space) looks like a space and is none: write a space"),
        ("\u3000a: b", "1:1: the blank U+3000 (ideographic space) looks like a space and is none: write a space"),
        ("a: \ud800", "1:4: half of a surrogate pair (U+D800), which is no character: delete it"),
    ],
)
def test_what_looks_like_something_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_yaml(text, "f.yml")
    assert str(caught.value) == f"f.yml:{message}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\ufeffa: b", {"a": "b"}),
        ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
        ("a: \U0001f469\u200d\U0001f4bb", {"a": "\U0001f469\u200d\U0001f4bb"}),
        ('a: "\\u200b\\t\\0"', {"a": "\u200b\t\0"}),
        ("a: |\n  b\tc\n  \td\n", {"a": "b\tc\n\td\n"}),
        ("a: |\n  b\r\n  c\n", {"a": "b\nc\n"}),
    ],
)
def test_what_is_visible_or_written_as_an_escape_passes(text: str, value: object) -> None:
    assert load_yaml(text, "f.yml").value == value


def test_four_mebibytes_are_read_and_one_byte_more_is_not() -> None:
    text = "a: '" + "é" * (2 * 1024 * 1024 - 3) + "'\n"
    assert len(text.encode()) == 4 * 1024 * 1024
    assert len(load_yaml(text, "f.yml").value["a"]) == 2 * 1024 * 1024 - 3
    with pytest.raises(InvalidFileError, match=r"^f\.yml:1:1: the file is larger than 4 MiB$"):
        load_yaml(text + " ", "f.yml")


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a b", '"a b"'),
        ('say "no"', "'say \"no\"'"),
        ('it\'s "odd"', '"it\'s "odd""'),
        ("a\nb\u200b\x1b", '"a\\nb\\u200b\\u001b"'),
        (r"C:\dir", r'"C:\dir"'),
        ("x" * 70, '"' + "x" * 60 + '..."'),
    ],
)
def test_quoted_text_is_one_short_line_that_hides_nothing(text: str, quoted: str) -> None:
    assert quote(text) == quoted
