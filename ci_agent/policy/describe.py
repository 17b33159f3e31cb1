"""Facts in words: for the record, for the model, for people."""

import re
import shlex
from collections.abc import Sequence
from typing import Final, assert_never

from ci_agent.policy.facts import ExecFact, FileFact, NetFact, ToolFact, UnknownFact
from ci_agent.policy.words import Word
from ci_agent.terminal import printable, shortened

_MAX_CHARACTERS: Final = 300

_NEEDS_NO_QUOTES: Final = re.compile(r"[\w@%+=:,./-]+(?: [\w@%+=:,./-]+)*", re.ASCII)
"""Words that `shlex.quote` leaves as they are: to look at them one by one takes ten times as long."""

_DOING: Final = {"read": "reading", "list": "listing", "write": "writing", "delete": "deleting"}


def kind_of(fact: ExecFact | ToolFact | FileFact | NetFact | UnknownFact) -> str:
    """The kind that a record names."""
    match fact:
        case ExecFact():
            return "exec"
        case ToolFact():
            return "tool"
        case FileFact():
            return fact.effect
        case NetFact():
            return "net"
        case UnknownFact():
            return "unknown"
        case _:
            assert_never(fact)


def value_of(fact: ExecFact | ToolFact | FileFact | NetFact | UnknownFact) -> str:
    """The normalised value: a command line, an absolute path, a method and a URL, a tool's name, a reason."""
    match fact:
        case ExecFact():
            text = _command_line(fact.words)
        case ToolFact():
            text = fact.name
        case FileFact():
            text = fact.shown
        case NetFact():
            text = f"{fact.method} {fact.url}"
        case UnknownFact():
            text = fact.why
        case _:
            assert_never(fact)
    return one_line(text, _MAX_CHARACTERS)


def _command_line(words: Sequence[Word]) -> str:
    text = " ".join([word.text for word in words])
    if _NEEDS_NO_QUOTES.fullmatch(text) and text.count(" ") == len(words) - 1:
        return text
    return " ".join(word.text if word.literal is None else shlex.quote(word.text) for word in words)


def doing(fact: ExecFact | ToolFact | FileFact | NetFact) -> str:
    """What the call would do, as the subject of a sentence."""
    value = value_of(fact)
    match fact:
        case ExecFact():
            return f"running `{value}`"
        case ToolFact():
            return f"calling {value}"
        case FileFact():
            return f"{_DOING[fact.effect]} {value}"
        case NetFact():
            return f"requesting {value}"
        case _:
            assert_never(fact)


def one_line(text: str, max_characters: int = 1_000) -> str:
    """Fit for a line of a log or a message to a model."""
    if len(text) <= max_characters and text.isascii() and text.isprintable() and "#" not in text:
        return text
    return shortened(printable(" ".join(text.split())), max_characters)
