"""Reads the key in the brackets behind the name of an associative array."""

import re

from ci_agent.policy.shell.reader import Mask, Reader
from ci_agent.policy.shell.syntax import Parameter, SourceWord

_VARIABLE = r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})"
_KEY = re.compile(
    r"\[(?:(?P<plain>[A-Za-z0-9_./:-]+)|'(?P<single>[^'\n]+)'|\"(?P<double>[^\"$`\\\n]+)\""
    rf"|(?P<variable>{_VARIABLE}|\"{_VARIABLE}\"))\]"
)


def read_key(reader: Reader) -> SourceWord | None:
    """Read `[key]`, which the second reading does not look at; None: it is not as simple as what is understood."""
    match = _KEY.match(reader.text, reader.position, reader.end)
    if match is None:
        return None
    reader.position = match.end()
    reader.notes.count_pieces(1)
    reader.masks.append(Mask(*match.span(), "x"))
    span = reader.span(*match.span())
    if match["variable"]:
        return SourceWord(None, (Parameter(match["variable"].strip('"${}'), quoted=True),), span)
    return SourceWord(match["plain"] or match["single"] or match["double"], (), span)
