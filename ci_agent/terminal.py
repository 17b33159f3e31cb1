"""Text from models and tools made safe for a log: no control of the terminal, no command to a CI runner."""

import re
import unicodedata

_JOINER = "\u200d"
"""Makes one sign of several emoji or letters; every other format character can hide or reorder text."""

_LOOSE_JOINER = re.compile("(?<![^ -~])\u200d|\u200d(?![^ -~])")
"""One that joins nothing: beside ASCII, or at an end of the text."""

_UNSEEN = frozenset(
    map(
        chr,
        (
            *(0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE0E),
            *range(0xE0100, 0xE01F0),
        ),
    )
)
"""Letters and marks without a look of their own (Unicode: Default_Ignorable_Code_Point), but for the two that choose
between a sign and an emoji."""


def printable(text: str) -> str:
    """The text with everything invisible or controlling escaped, line breaks included: one line, safe to print.

    Runners obey `##NAME[...]` anywhere in a line, so that sequence is broken: `##[command]` GitHub's (the second parser
    of actions/runner, ActionCommand.cs), `##vso[` and `##[` Azure's, `##teamcity[` TeamCity's. GitHub's other parser
    wants `::` first in a line, Buildkite `---` or its like; callers prevent both by printing something before.
    GitLab's sections need a carriage return and an escape.
    """
    if text.isprintable() and (text.isascii() or _UNSEEN.isdisjoint(text)):
        return _broken(text)
    return _broken(_LOOSE_JOINER.sub(r"\\u200d", text.translate(_ESCAPES)))


def inert_json(text: str) -> str:
    """JSON text that says the same, and in which no string is a command to a runner (see `printable`)."""
    return _COMMAND.sub(r"#\\u0023\1[", text) if "##" in text else text


def _broken(text: str) -> str:
    return _COMMAND.sub(r"##\1\\[", text) if "##" in text else text


_COMMAND = re.compile(r"##([^\s\[\]#\\]{0,20})\[")
"""The name may hold anything that is not seen apart: .NET compares by culture, which skips some characters."""


def shortened(text: str, max_chars: int) -> str:
    """At most `max_chars` characters of it, ending in an ellipsis when something was left out."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def one_line(text: str, max_chars: int) -> str:
    """At most `max_chars` characters of it, printable, each run of white space one blank."""
    return shortened(printable(" ".join(text.split())[: max_chars + 1]), max_chars)


def prefixed(text: str, prefix: str = "| ") -> str:
    """Each line printable and behind a prefix, so that none begins with what the text says."""
    return "\n".join(f"{prefix}{_line(line)}" for line in text.split("\n"))


def inert_lines(text: str) -> str:
    """Each line printable, and none that begins as a workflow command does: for text that must stand at the line's
    start, as inside of Markdown's fences. Where a line can have a prefix, `prefixed` changes less."""
    return "\n".join(_LEADING_COLONS.sub(r"\1:\\:", _line(line)) for line in text.split("\n"))


_LEADING_COLONS = re.compile("^([^!-~]*)::")
"""The runner skips white space before the colons, by Unicode's idea of it and its culture's; so anything that is not
plainly visible counts as skipped here."""


def _line(line: str) -> str:
    """A line of a text printable; its tabs are blanks, and the line end of other systems is none of its text."""
    return printable(line.removesuffix("\r").expandtabs())


class _Escapes(dict[int, str]):
    """Each character that was met to what is shown of it."""

    def __missing__(self, code: int) -> str:
        shown = self[code] = _escaped(chr(code))
        return shown


_ESCAPES = _Escapes()


def _escaped(char: str) -> str:
    category = unicodedata.category(char)
    if char in _UNSEEN or category in {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"} or (category == "Cf" and char != _JOINER):
        return char.encode("unicode_escape", "surrogatepass").decode("ascii")
    return char
