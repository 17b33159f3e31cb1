from pathlib import Path

import pytest

from ci_agent.policy.describe import one_line, value_of
from ci_agent.policy.facts import ExecFact, FileFact, UnknownFact
from ci_agent.policy.words import Word, literal_word


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "plain"),
        ("a\nb\r\tc", "a b c"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("##[error]x", "##\\[error]x"),
        ("right\u202eleft", "right\\u202eleft"),
        ("x" * 2_000, "x" * 999 + "\u2026"),
    ],
)
def test_a_reason_is_one_printable_line(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_command_is_shown_as_a_person_would_type_it() -> None:
    words = (literal_word("git"), literal_word("a b"), literal_word("it's"), Word("unknown", '"$X"', (0, 4)))
    command = ExecFact(words, (), Path("/"), (), (), (), frozenset(), True)
    assert value_of(command) == "git 'a b' 'it'\"'\"'s' \"$X\""


def test_files_and_doubts_are_shown_as_they_are() -> None:
    file = FileFact("read", Path("/w/a\nb"), Path("/w/a\nb"))
    assert (value_of(file), value_of(UnknownFact("why not"))) == ("/w/a b", "why not")
