from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, Field

from ci_agent.errors import InvalidFileError
from ci_agent.strict_yaml import FileModel, load_yaml, validate


def refuse_spaces(text: str) -> str:
    if " " in text:
        raise ValueError("spaces are not allowed")
    return text


class Entry(FileModel):
    id: Annotated[str, AfterValidator(refuse_spaces)]
    on_denied: Literal["record", "fail", "stop"] = "record"
    max_calls: int = Field(default=1, ge=1, le=9)
    share: float = 1.0


class Other(FileModel):
    text: str
    delay_s: float = 0


class Document(FileModel):
    version: Literal[1]
    entries: list[Entry] = Field(default=[], min_length=1)
    either: str | list[str] | Entry | None = None
    turns: list[Entry | Other] = Field(default=[])
    table: dict[str, dict[str, int]] = Field(default={})
    label: str | None = None
    flag: bool = False


def test_a_document_becomes_its_model() -> None:
    text = "version: 1\nentries: [{id: a, share: 2}]\neither: [x]\ntable: {a: {b: 3}}\nflag: true\n"
    assert validate(load_yaml(text, "f.yml"), Document) == Document(
        version=1, entries=[Entry(id="a", share=2)], either=["x"], table={"a": {"b": 3}}, flag=True
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", '1:1: the file is empty; it needs "version"'),
        ("[1]", "1:1: expected a mapping, got a list"),
        ("just text", '1:1: expected a mapping, got the text "just text"'),
        ("label: x", '1:1: the key "version" is missing here: write version: 1'),
        ("version: 2", "1:10: expected 1, got the number 2"),
        ("version: 1\nmax_calls: 2", '2:1: unknown key "max_calls": it belongs into "either"'),
        ("version: 1\nentires: []", '2:1: unknown key "entires": did you mean "entries"?'),
        (
            "version: 1\nx-y: []",
            '2:1: unknown key "x-y": the keys here are either, entries, flag, label, table, turns, version',
        ),
        ("version: 1\nentries: []", "2:10: must not be empty: write a value, or delete the key"),
        (
            "version: 1\nentries: {id: a}",
            '2:10: expected a list, got a mapping: begin each entry with a dash, as in "- id: ..."',
        ),
        ("version: 1\nentries: [a]", '2:11: expected a mapping, got the text "a"'),
        ("version: 1\nentries:\n  - on_denied: stop", '3:5: the key "id" is missing here'),
        ("version: 1\nentries:\n  - id: 7", '3:9: expected text, got the number 7: write "7" in quotes'),
        ("version: 1\nentries:\n  - id: true", '3:9: expected text, got true: write "true" in quotes'),
        ("version: 1\nentries:\n  - id:", "3:8: expected text, got nothing"),
        ("version: 1\nentries:\n  - id: a b", "3:9: spaces are not allowed"),
        (
            "version: 1\nentries:\n  - {id: a, on_denied: halt}",
            '3:24: expected record, fail or stop, got the text "halt"',
        ),
        (
            "version: 1\nentries:\n  - {id: a, on_denied: Stopp}",
            '3:24: expected record, fail or stop, got the text "Stopp": did you mean stop?',
        ),
        ("version: 1\nentries:\n  - {id: a, max_calls: 0}", "3:24: expected at least 1, got the number 0"),
        ("version: 1\nentries:\n  - {id: a, max_calls: 10}", "3:24: expected at most 9, got the number 10"),
        ("version: 1\nentries:\n  - {id: a, max_calls: 1.0}", "3:24: expected a whole number, got the number 1.0"),
        ("version: 1\nentries:\n  - {id: a, max_calls: true}", "3:24: expected a whole number, got true"),
        ("version: 1\nentries:\n  - {id: a, share: half}", '3:20: expected a number, got the text "half"'),
        ("version: 1\nentries:\n  - {id: a, maxcalls: 1}", '3:13: unknown key "maxcalls": did you mean "max_calls"?'),
        ("version: 1\nflag: 1", "2:7: expected true or false, got the number 1"),
        ("version: 1\nlabel: 1.5", "2:8: expected text, got a number: put it in quotes as you wrote it"),
        ("version: 1\ntable: {a: {b: c}}", '2:16: expected a whole number, got the text "c"'),
        (
            "version: 1\neither: 5",
            '2:9: expected text or a list or a mapping, got the number 5: write "5" in quotes',
        ),
        ("version: 1\neither: [a, 5]", '2:13: expected text, got the number 5: write "5" in quotes'),
        ("version: 1\neither: {id: a, share: b}", '2:24: expected a number, got the text "b"'),
        ("version: 1\neither: {id: a, shares: 1}", '2:17: unknown key "shares": did you mean "share"?'),
        ("version: 1\nturns: [{text: a, delay: 1}]", '2:19: unknown key "delay": did you mean "delay_s"?'),
        ("version: 1\nturns: [{text: a}, [b]]", "2:20: expected a mapping, got a list"),
    ],
)
def test_a_wrong_value_is_explained_at_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        validate(load_yaml(text, "f.yml"), Document)
    assert str(caught.value) == f"f.yml:{message}"


def test_every_problem_has_a_line_of_its_own_in_the_order_of_the_file() -> None:
    text = "version: 1\nflag: maybe\nentries:\n  - {id: 7, ondenied: 2}\n  - {max_calls: 0}\n"
    with pytest.raises(InvalidFileError) as caught:
        validate(load_yaml(text, "f.yml"), Document)
    assert str(caught.value).splitlines() == [
        'f.yml:2:7: expected true or false, got the text "maybe"',
        'f.yml:4:10: expected text, got the number 7: write "7" in quotes',
        'f.yml:4:13: unknown key "ondenied": did you mean "on_denied"?',
        'f.yml:5:5: the key "id" is missing here',
        "f.yml:5:17: expected at least 1, got the number 0",
    ]


class Choices(FileModel):
    mode: Literal["off", "auto"] | None = None
    modes: list[Literal["on", "auto"]] = Field(default=[])
    version: Literal[1] = 1
    flag: bool = False
    share: float = 0.0
    name: str = ""
    nested: list[Entry] = Field(default=[])
    tuples: list[tuple[str, ...]] = Field(default=[])
    free: Any = None
    mixed: str | int | None = None


BOOLEAN = "is a boolean to some readers and text to others"
DATE = "some readers take this for a date"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mode: off", f'1:7: off {BOOLEAN}: write "off" in quotes'),
        ("mode: no", f'1:7: no {BOOLEAN}: write "off" or auto'),
        ("modes: [yes]", f'1:9: yes {BOOLEAN}: write "on" or auto'),
        ("modes: Yes", f'1:8: Yes {BOOLEAN}: write "on" or auto'),
        ("version: yes", f"1:10: yes {BOOLEAN}: write 1"),
        ("flag: Off", f"1:7: Off {BOOLEAN}: write false"),
        ("flag: 2026-01-01", f"1:7: {DATE}: write true or false"),
        ("share: 1_0", "1:8: numbers are written without underscores: write 10"),
        ("share: on", f"1:8: on {BOOLEAN}: write a number"),
        ("name: 2026-01-01", f'1:7: {DATE}: write "2026-01-01" in quotes'),
        ("nested: [{id: y}]", f'1:15: y {BOOLEAN}: write "y" in quotes'),
        ("tuples: [[a, n]]", f'1:14: n {BOOLEAN}: write "n" in quotes'),
        ("free: no", f'1:7: no {BOOLEAN}: write "no" in quotes if text is meant, else false'),
        ("mixed: 0x10", '1:8: hexadecimal numbers are not supported: write "0x10" in quotes if text is meant, else 16'),
        ("gone: no", f'1:7: no {BOOLEAN}: write "no" in quotes if text is meant, else false'),
        ("name: {flag: no}", f'1:14: no {BOOLEAN}: write "no" in quotes if text is meant, else false'),
    ],
)
def test_a_scalar_that_may_be_this_or_that_is_told_what_its_place_takes(text: str, message: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_yaml(text, "f.yml", model=Choices)
    assert str(caught.value) == f"f.yml:{message}"
