"""Decodes `$'...'`."""

import re

_ESCAPE = re.compile(
    r"\\(?:(?P<named>[abeEfnrtv\\'\"?])|x(?P<hex>[0-9A-Fa-f]{1,2})|u(?P<short>[0-9A-Fa-f]{1,4})"
    r"|U(?P<long>[0-9A-Fa-f]{1,8})|(?P<octal>[0-7]{1,3})|(?P<unclear>[cxuU])|(?P<other>.))",
    re.DOTALL,
)
_NAMED = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def decode_ansi_c(source: str) -> str | None:
    """The value of `$'source'`; None where it depends on the locale, or holds a character that bash cannot carry."""
    pieces: list[str] = []
    position = 0
    for match in _ESCAPE.finditer(source):
        value = _decode(match)
        if value is None:
            return None
        pieces += (source[position : match.start()], value)
        position = match.end()
    return "".join((*pieces, source[position:]))


def _decode(match: re.Match[str]) -> str | None:
    kind, text = match.lastgroup, match[match.lastgroup or 0]
    if kind == "named":
        return _NAMED.get(text, text)
    if kind == "other":
        return "\\" + text
    if kind == "unclear":
        return None
    code = int(text, 8 if kind == "octal" else 16)
    return chr(code) if code < 0x7F and code not in {0, 1} else None
