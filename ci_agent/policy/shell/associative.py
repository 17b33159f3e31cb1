"""Reads what fills associative arrays: `m[key]=value` and `declare -A m=([key]=value)`.

Of any other array bash evaluates what stands in the brackets, and at an empty key it drops the rest of the line. So
wherever a key stands, the array must certainly be associative and the key not empty; `Variables.check_key` sees to it.
"""

import re

from ci_agent.policy.shell.array_keys import read_key
from ci_agent.policy.shell.reader import Keyed, Mask, Reader
from ci_agent.policy.shell.static_words import static_text
from ci_agent.policy.shell.syntax import SourceAssignment, SourceWord
from ci_agent.policy.shell.variables import check_assignable
from ci_agent.policy.shell.word_reader import read_value

_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?=\[)")


def read_element(reader: Reader) -> SourceAssignment | None:
    """Read `name[key]=value`; None: it is not understood."""
    start = reader.position
    name = _NAME.match(reader.text, start, reader.end)
    # What is substituted, bash writes anew before it runs it.
    if name is None or reader.enclosed is not None or reader.outer is not None:
        return None
    reader.position = name.end()
    key = read_key(reader)
    if key is None or not reader.at("="):
        return None
    reader.position += 1
    check_assignable(reader, name[0])
    reader.notes.count_command()
    value = read_value(reader)
    _note_pair(reader, name[0], key, value)
    reader.roles.append((start, reader.position, "assignment"))
    return SourceAssignment(name[0], value, None, False, reader.span(start, reader.position), key)


def read_pair(reader: Reader, name: str) -> bool:
    """Read `[key]=value` among the elements of `declare -A name=(...)`; False: it is not understood."""
    key = read_key(reader) if reader.outer is None else None
    if key is None or key.plain is None or not reader.at("="):
        return False
    reader.masks.append(Mask(reader.position, reader.position + 1, "x"))
    reader.position += 1
    value = read_value(reader)
    _note_pair(reader, name, key, value)
    return static_text(value) is not None


def _note_pair(reader: Reader, name: str, key: SourceWord, value: SourceWord) -> None:
    keyed = reader.notes.keyed.setdefault(name, Keyed())
    keyed.keys[key.plain] = None
    keyed.values[static_text(value)] = None
