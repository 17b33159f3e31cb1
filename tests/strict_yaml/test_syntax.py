import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.errors import InvalidFileError
from ci_agent.strict_yaml import load_yaml

COLON = (
    'a ":" cannot stand here: put text that contains ": " in quotes, a mapping within a line in {}, or check the '
    "indentation"
)

WRITE_IT_WHOLE = 'write the character itself, or all of it as "\\U0001f600"'

TAB = 'tab character: indent with spaces, and write "\\t" in double quotes where a tab is meant'
MISSING = 'a value is missing here: write "" for empty text'

BROKEN = [
    ("- id:b\n  allow: read", '1:3: a blank belongs after the colon: write "id: b"'),
    ("a:\n  - id: b\n  -id: c", '3:3: "-id: c": a blank belongs after the dash: write "- id: c"'),
    ("a: b: c", f"1:5: {COLON}"),
    ("a: 1\n  b: 2", f"2:4: {COLON}"),
    (
        "a: 1\nb\nc: 2",
        '2:1: "b" stands where a key is expected, and no ":" follows it: add one, or check the indentation',
    ),
    ("- *.py", '1:3: "*.py" begins with "*", which YAML takes for an alias: put it in quotes'),
    ("[**, b]", '1:2: "**" begins with "*", which YAML takes for an alias: put it in quotes'),
    ("a: *name", '1:4: "*name" begins with "*", which YAML takes for an alias: put it in quotes'),
    ("a: &name b", '1:4: "&name" begins with "&", which YAML takes for an anchor: put it in quotes'),
    ("a: &name [b]", '1:4: "&name" begins with "&", which YAML takes for an anchor: put it in quotes'),
    ("a: && b", '1:4: "&&" begins with "&", which YAML takes for an anchor: put it in quotes'),
    ("a: !deny b", '1:4: "!deny" begins with "!", which YAML takes for a tag: put it in quotes'),
    ("a: !!str b", '1:4: "!!str" begins with "!", which YAML takes for a tag: put it in quotes'),
    ("a: ! b", '1:4: "!" begins with "!", which YAML takes for a tag: put it in quotes'),
    ("a: @b", '1:4: a value cannot begin with "@": put it in quotes ("@..." or \'@...\')'),
    ("a: `b`", '1:4: a value cannot begin with "`": put it in quotes ("`..." or \'`...\')'),
    ("a: %b", '1:4: a value cannot begin with "%": put it in quotes ("%..." or \'%...\')'),
    ("%a: b", '1:1: "%a: b" begins with "%", which YAML takes for a directive: put it in quotes'),
    ("%YAML 1.2\n---\na: b", "1:1: lines that begin with % are not supported: delete this one"),
    ("a: 1\n---\nb: 2", "2:1: a second document begins here: one file holds one document"),
    ("[a]\nb: c", '2:1: "b: c" comes after the end of the document: check the indentation'),
    ("a: 'b", "1:4: the quote that opens here is never closed"),
    ('a:\n- "b\n- c\n', "2:3: the quote that opens here is never closed"),
    (
        "a: 'b\n---\nc'",
        "1:4: the quote that opens here is not closed before a line that begins with --- or ...",
    ),
    (
        r'a: "\d+"',
        (
            "1:4: '\"\\d+\"' holds a backslash sequence that double quotes do not know: "
            "double the backslash, or use single quotes, where a backslash is only itself"
        ),
    ),
    *(
        (
            f'a: "{escapes}"',
            f"1:4: '\"{escapes}\"' holds half of a surrogate pair, which is no character: {WRITE_IT_WHOLE}",
        )
        for escapes in (r"\ud800", r"\ud83d\ude00")
    ),
    ("a: [b, c", '2:1: the list opened at line 1, column 4 is not closed: expected "," or "]" here'),
    ("a: {b: c", '2:1: the mapping opened at line 1, column 4 is not closed: expected "," or "}" here'),
    *(
        (f"a: {end}", f'{place}: the {what} opened at line 1, column {column} is not closed: "{mark}" is missing')
        for end, place, what, column, mark in (
            ("[", "2:1", "list", 4, "]"),
            ("[  # b\n\n", "3:1", "list", 4, "]"),
            ("[b,", "2:1", "list", 4, "]"),
            ("[[b], {c: [d,", "2:1", "list", 14, "]"),
            ("{", "2:1", "mapping", 4, "}"),
            ("[{b: ", "2:1", "mapping", 5, "}"),
        )
    ),
    ("a: [b, , c]", '1:8: a value is missing here: write "" for empty text'),
    (
        "a: > b",
        (
            '1:4: "> b": after "|" or ">" the text begins on the next line; '
            "a value that begins with one of them needs quotes"
        ),
    ),
    (
        'a: "b" c',
        '1:8: "c" does not fit the lines above: check the indentation, and that quotes enclose the whole value',
    ),
    (
        "a:\n  - b\n c: d",
        '3:2: "c: d" does not fit the lines above: check the indentation, and that quotes enclose the whole value',
    ),
    ("- a\nb: c", '2:1: "b: c" stands where another "- " is expected: check the indentation'),
    ("a: - b", '1:4: a list cannot begin here: put "- " on a line of its own'),
    ("a: [b?c]", '1:5: "b?c]": inside [] and {} put text with ? or : in quotes'),
    ("a:\n\tb: 1", '2:1: tab character: indent with spaces, and write "\\t" in double quotes where a tab is meant'),
    ("a: b\tc", '1:5: tab character: indent with spaces, and write "\\t" in double quotes where a tab is meant'),
    ("a: b # c\td", '1:9: tab character: indent with spaces, and write "\\t" in double quotes where a tab is meant'),
    ("a: |\n\tb", '2:1: tab character: indent with spaces, and write "\\t" in double quotes where a tab is meant'),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_broken_syntax_is_explained_with_what_to_do(text: str, message: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_yaml(text, "f.yml")
    assert str(caught.value) == f"f.yml:{message}"


@pytest.mark.parametrize("text", [text for text, _ in BROKEN])
def test_pyyamls_own_parser_refuses_the_same(text: str) -> None:
    with pytest.raises(InvalidFileError):
        load_yaml(text, "f.yml", parser=yaml.SafeLoader)


def test_all_problems_are_named_in_the_order_of_the_file() -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_yaml("a: no\nb: &x 1\na: 010\nc: [", "f.yml")
    assert str(caught.value).splitlines() == [
        (
            "f.yml:1:4: no is a boolean to some readers and text to others: "
            'write "no" in quotes if text is meant, else false'
        ),
        'f.yml:2:4: "&x" begins with "&", which YAML takes for an anchor: put it in quotes',
        'f.yml:3:1: the key "a" appears twice: the first is on line 1',
        (
            "f.yml:3:4: a number with a leading zero is octal to some readers: "
            'write "010" in quotes if text is meant, else 10'
        ),
        'f.yml:5:1: the list opened at line 4, column 4 is not closed: "]" is missing',
    ]
    assert (caught.value.line, caught.value.column) == (1, 4)


def test_a_file_full_of_problems_names_the_first_ten() -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_yaml("- no\n" * 200_000, "f.yml")
    lines = str(caught.value).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "f.yml: and more problems after these"


@pytest.mark.parametrize(
    ("text", "tab", "end"), [("a: [b,\t", "1:7", "2:1"), ("a: [\tb,", "1:5", "2:1"), ("a: {b:\n\t", "2:1", "3:1")]
)
def test_a_tab_in_what_is_never_closed_is_named(text: str, tab: str, end: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_yaml(text, "f.yml")
    assert str(caught.value).splitlines() == [f"f.yml:{tab}: {TAB}", f"f.yml:{end}: {MISSING}"]


@pytest.mark.parametrize("parser", [None, yaml.SafeLoader])
@given(pieces=st.lists(st.sampled_from([*"[]{},:-?|>#&*!%'\"\t\n ab", ": ", "- ", "a: [", "\n  "]), max_size=12))
def test_what_is_broken_has_a_place_and_no_other_end(parser: type[yaml.SafeLoader] | None, pieces: list[str]) -> None:
    try:
        load_yaml("rules: [" + "".join(pieces), "f.yml", parser=parser)
    except InvalidFileError as error:
        place = (error.file, error.line > 0, error.column > 0)
    else:
        place = ("f.yml", True, True)
    assert place == ("f.yml", True, True)
