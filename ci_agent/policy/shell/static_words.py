"""What a word of the source is, before anything is known about variables."""

import re

from ci_agent.policy.shell.syntax import Arithmetic, Parameter, Part, SourceWord, Text

INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
"""Digits that arithmetic takes for the number that they look like: not `08`."""
_BRACKET = (Text("[", quoted=False),)
_EXPANDED = frozenset("*?[{~")


def word_set(text: str) -> frozenset[str]:
    """The words of `text`, for tables of names."""
    return frozenset(text.split())


def static_text(word: SourceWord) -> str | None:
    """The one value that the word has in any case; None when it is expanded."""
    if word.plain is not None:
        return word.plain
    if word.parts == _BRACKET:
        return "["
    pieces: list[str] = []
    for part in word.parts:
        if not isinstance(part, Text) or (not part.quoted and not _EXPANDED.isdisjoint(part.text)):
            return None
        pieces.append(part.text)
    return "".join(pieces)


def is_single(word: SourceWord) -> bool:
    """Whether the word becomes exactly one word, whatever its value."""
    for part in word.parts:
        if isinstance(part, Text):
            if not part.quoted and not _EXPANDED.isdisjoint(part.text):
                return False
        elif isinstance(part, Parameter):
            if not part.quoted or is_list(part):
                return False
        elif not isinstance(part, Arithmetic) and not part.quoted:
            return False
    return True


def is_list(parameter: Parameter) -> bool:
    """`"$@"` and `"${name[@]}"`, which become several words even in quotes."""
    return parameter.name.endswith("@") or parameter.name.endswith("[@]")


def is_integer(word: SourceWord) -> bool:
    """Whether the value is certainly an integer; that of `$!` may be empty."""
    if word.plain is not None:
        return INTEGER.fullmatch(word.plain) is not None
    part = only_part(word)
    if isinstance(part, Parameter):
        return part.length or (part.plain and part.name in {"#", "?", "!"})
    return isinstance(part, Arithmetic)


def only_part(word: SourceWord) -> Part | None:
    """The one part of a word that consists of it alone, in quotes or not."""
    parts = [part for part in word.parts if not isinstance(part, Text) or part.text]
    return parts[0] if len(parts) == 1 else None
