"""The lines that people type in CI: each must be understood, with the right commands."""

from collections.abc import Callable
from pathlib import Path

import pytest

_ENTRIES = (
    (Path(__file__).parent / "everyday.txt").read_text(encoding="utf-8").removesuffix("\n----\n").split("\n----\n")
)


def _divide(entry: str) -> tuple[str, list[str]]:
    """The text, and the commands it must yield: the lines behind `=> `."""
    lines = entry.removesuffix("\n").split("\n")
    expected = [line.removeprefix("=> ") for line in lines if line.startswith("=> ")]
    return "\n".join(line for line in lines if not line.startswith("=> ")), expected


def test_the_list_has_more_than_a_hundred_lines() -> None:
    assert len(_ENTRIES) > 130


@pytest.mark.parametrize("entry", _ENTRIES, ids=lambda entry: entry.split("\n")[0])
def test_an_everyday_line_yields_its_commands(entry: str, commands: Callable[[str], list[str]]) -> None:
    text, expected = _divide(entry)
    assert commands(text) == expected
