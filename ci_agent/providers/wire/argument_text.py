"""The raw arguments of a call: whether they are complete so far, and what servers add to them taken away again."""

import json
import re
from dataclasses import dataclass

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_CONTROL = re.compile(r"[\x00-\x1f]")


@dataclass(slots=True)
class Nesting:
    """Whether a JSON text is complete, kept up to date piece by piece; not whether it is well-formed."""

    depth: int = 0
    in_string: bool = False
    escaped: bool = False
    begun: bool = False

    @property
    def is_complete(self) -> bool:
        return self.begun and self.depth == 0 and not self.in_string

    def read(self, piece: str) -> None:
        for char in piece:
            if self.escaped:
                self.escaped = False
            elif self.in_string:
                self.escaped = char == "\\"
                self.in_string = char != '"'
            else:
                self.in_string = char == '"'
                self.depth += (char in "{[") - (char in "}]")
                self.begun = self.begun or not char.isspace()


def arguments_text(raw: str) -> str:
    """The arguments without what only servers add: nothing or `null` for no arguments, `{}` before the real object, an
    object inside a string, control characters that were not escaped. What a model got wrong stays wrong."""
    text = raw.strip()
    if text in ("", "null"):
        return "{}"
    if text.startswith("{}") and text[2:].lstrip().startswith("{"):
        text = text[2:].lstrip()
    return _with_escaped_controls(_unquoted(text) if text.startswith('"') else text)


def is_json(text: str, *, strict: bool = True) -> bool:
    """Whether a text is JSON as Python reads it; not `strict`: with control characters in strings."""
    try:
        json.loads(text, strict=strict)
    except (ValueError, RecursionError):
        return False
    return True


def _unquoted(text: str) -> str:
    try:
        inner = json.loads(text, strict=False)
    except ValueError:
        return text
    return inner if isinstance(inner, str) and inner.lstrip().startswith("{") else text


def _with_escaped_controls(text: str) -> str:
    """A raw control character in a string can only mean itself; anything else wrong is left for the model to mend."""
    if not _CONTROL.search(text) or is_json(text) or not is_json(text, strict=False):
        return text
    return _STRING.sub(lambda string: _CONTROL.sub(lambda char: json.dumps(char[0])[1:-1], string[0]), text)
