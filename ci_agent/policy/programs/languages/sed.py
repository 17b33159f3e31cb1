"""sed scripts: which files they read and write, and whether they run a command."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, product

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.words import Word, literal_word

_STANDARD = frozenset({"/dev/stdout", "/dev/stderr", "/dev/stdin"})
_WITHOUT_ARGUMENT = frozenset("=dDgGhHnNpPxzF")

_LABEL = re.compile(r"[^\n;} \t]*")

_PLAIN_BRACKET = re.compile(r"(?:\^[^\[\n]|[^\[\n^])[^\]\[\n]*\]")
"""The rest of a `[...]` without classes; its first character may be a `]`."""

MAX_COMMANDS = 2_000
"""Of one script: each takes microseconds, and a script may have to be read twice."""

_COMMIT = "0" * 40
"""Stands for the name of any commit; of other values only the digits are others."""
_MAX_TRIED = 16
"""How many scripts are read where something is known of the values in one."""


class _BadScriptError(Exception):
    """sed would refuse it too, or reads it otherwise than this reader."""


@dataclass(slots=True)
class _Cursor:
    text: str
    bracketed: bool
    """Whether a delimiter between `[` and `]` is an ordinary character: versions of sed differ."""
    position: int = 0
    absent: set[str] = field(default_factory=set)
    """Ends of character classes that do not come any more: looking for each again would take quadratic time."""

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def next(self) -> str:
        char = self.peek()
        self.position += len(char)
        return char

    def skip(self, chars: str) -> str:
        """Past all of these characters that come now, which it returns."""
        text, start = self.text, self.position
        at = start
        while at < len(text) and text[at] in chars:
            at += 1
        self.position = at
        return text[start:at]

    def find(self, text: str, start: int) -> int:
        """Where a text comes next, from a start that only grows; -1 when it does not."""
        found = -1 if text in self.absent else self.text.find(text, start)
        if found < 0:
            self.absent.add(text)
        return found

    def line(self) -> str:
        """The rest of the line; the newline is consumed."""
        end = self.text.find("\n", self.position)
        end = len(self.text) if end < 0 else end
        found = self.text[self.position : end]
        self.position = end + 1
        return found


def read(parsed: Parsed, draft: Draft) -> None:
    scripts = list(_scripts(parsed))
    for _, word in scripts:
        if word.literal is None and not (word.stand_ins and _only_edits(scripts)):
            draft.doubt(f"the sed script {word.text} is not known")
    text = "\n".join(word.stand_ins[-1] if word.stand_ins else word.text for _, word in scripts)
    reasons = {_report(draft, effect, name) for effect, name in _effects(text)}
    for why in sorted(reasons - {None}, key=str):
        for index, _ in scripts:
            draft.hazard(index, str(why))


def _only_edits(scripts: list[tuple[int, Word]]) -> bool:
    """Whether the scripts neither run nor open anything, with each value of which something is known.

    The name of a commit may begin with the letter of a command.
    """
    if any(_COMMIT in text for _, word in scripts for text in word.stand_ins):
        return False
    options = [word.stand_ins or (word.text,) for _, word in scripts]
    combined = islice(product(*options), _MAX_TRIED + 1)
    return all(at < _MAX_TRIED and not _effects("\n".join(texts)) for at, texts in enumerate(combined))


def _scripts(parsed: Parsed) -> Iterator[tuple[int, Word]]:
    if parsed.has(*parsed.profile.instead):
        for found in parsed.options:
            if found.option.name in ("-e", "--expression") and found.value is not None:
                yield found.at if found.value_index is None else found.value_index, found.value
        return
    operands = parsed.operands[:1]
    if operands and operands[0].word.literal == "" and parsed.has("-i"):
        # Where `-i` always takes a value (BSD), the empty word is that, and the script comes after it.
        operands = parsed.operands[:2]
    for operand in operands:
        yield operand.at, operand.word


def _report(draft: Draft, effect: str, name: str) -> str | None:
    """Note the file that is used; return what makes the script a hazard, if anything."""
    if effect == "read" and name not in _STANDARD:
        draft.use("read", literal_word(name))
    if effect == "write" and name not in _STANDARD and name != "/dev/null":
        draft.use("write", literal_word(name))
        return "writes a file"
    if effect == "long":
        draft.doubt(f"a sed script of {MAX_COMMANDS:,} commands or more is not read to its end; do it in several steps")
    return {"run": "runs a command", "bad": "is a sed script that cannot be read"}.get(effect)


def _effects(text: str) -> list[tuple[str, str]]:
    """What either kind of sed would do; a script that neither can read is bad."""
    effects: list[tuple[str, str]] = []
    good = False
    for bracketed in (True, False) if "[" in text else (True,):
        try:
            for effect in _commands(_Cursor(text, bracketed)):
                effects.append(effect)  # noqa: PERF402  # what came before a mistake counts
            good = True
        except _BadScriptError:
            continue
    return list(dict.fromkeys(effects if good else [*effects, ("bad", "")]))


def _commands(cursor: _Cursor) -> Iterator[tuple[str, str]]:
    for _ in range(MAX_COMMANDS):
        cursor.skip(" \t\n;}\r\f\v")
        if cursor.position >= len(cursor.text):
            return
        _skip_addresses(cursor)
        yield from _command(cursor)
    yield "long", ""


def _skip_addresses(cursor: _Cursor) -> None:
    if _skip_address(cursor):
        cursor.skip(" \t")
        if cursor.peek() == ",":
            cursor.next()
            cursor.skip(" \t")
            if not _skip_address(cursor):
                raise _BadScriptError
    cursor.skip(" \t!")


def _skip_address(cursor: _Cursor) -> bool:
    char = cursor.peek()
    if char in ("/", "\\"):
        cursor.next()
        _skip_to(cursor, char if char == "/" else cursor.next(), regex=True)
        cursor.skip("IM")
        return True
    if char and (char.isdigit() or char in "$+~"):
        cursor.next()
        cursor.skip("0123456789~")
        return True
    return False


def _command(cursor: _Cursor) -> Iterator[tuple[str, str]]:
    command = cursor.next()
    if command in _WITHOUT_ARGUMENT or command in ("{", "}"):
        return
    if command in ("r", "R", "w", "W"):
        cursor.skip(" \t")
        yield ("read" if command in "rR" else "write"), cursor.line()
    elif command == "e":
        cursor.line()
        yield "run", ""
    elif command == "s":
        yield from _substitution(cursor)
    elif command == "y":
        delimiter = cursor.next()
        _skip_to(cursor, delimiter, regex=False)
        _skip_to(cursor, delimiter, regex=False)
    elif command in ("a", "i", "c"):
        _skip_text(cursor)
    elif command == "#":
        cursor.line()
    elif command in (":", "b", "t", "T", "v"):
        _skip_label(cursor)
    elif command in ("q", "Q", "l", "L"):
        cursor.skip(" \t0123456789")
    else:
        raise _BadScriptError


def _substitution(cursor: _Cursor) -> Iterator[tuple[str, str]]:
    delimiter = cursor.next()
    _skip_to(cursor, delimiter, regex=True)
    _skip_to(cursor, delimiter, regex=False)
    flags = cursor.skip("gpiImMe0123456789")
    if "e" in flags:
        yield "run", ""
    if cursor.peek() == "w":
        cursor.next()
        cursor.skip(" \t")
        yield "write", cursor.line()
        return
    cursor.skip(" \t\r")
    if cursor.peek() not in ("", ";", "}", "\n", "#"):
        raise _BadScriptError


def _skip_to(cursor: _Cursor, delimiter: str, regex: bool) -> None:
    """Past the next delimiter that is neither escaped nor, in a regular expression, in brackets."""
    if delimiter in ("", "\n", "\\"):
        raise _BadScriptError
    text, at = cursor.text, cursor.position
    while at < len(text):
        char = text[at]
        at += 1
        if char == delimiter:
            cursor.position = at
            return
        if char == "\\":
            at += 1
        elif char == "[" and regex and cursor.bracketed:
            cursor.position = at
            _skip_bracket(cursor)
            at = cursor.position
    raise _BadScriptError


def _skip_bracket(cursor: _Cursor) -> None:
    """Past `[...]`, in which a `]` that comes first is an ordinary character."""
    plain = _PLAIN_BRACKET.match(cursor.text, cursor.position)
    if plain is not None:
        cursor.position = plain.end()
        return
    end = cursor.position
    if cursor.text[end : end + 1] == "^":
        end += 1
    if cursor.text[end : end + 1] == "]":
        end += 1
    while end < len(cursor.text) and cursor.text[end] not in "]\n":
        opening = cursor.text[end : end + 2]
        if opening in ("[:", "[.", "[="):
            closing = cursor.find(opening[1] + "]", end + 2)
            end = end + 1 if closing < 0 else closing + 2
        else:
            end += 1
    if cursor.text[end : end + 1] != "]":
        raise _BadScriptError
    cursor.position = end + 1


def _skip_text(cursor: _Cursor) -> None:
    """The text of `a`, `i`, `c`: to the end of a line that does not end in a backslash."""
    cursor.skip(" \t")
    if cursor.text.startswith("\\\n", cursor.position):
        cursor.position += 2
    line = cursor.line()
    while (len(line) - len(line.rstrip("\\"))) % 2 and cursor.position < len(cursor.text):
        line = cursor.line()


def _skip_label(cursor: _Cursor) -> None:
    """Where sed takes more for the label than this, it has fewer commands."""
    cursor.skip(" \t")
    label = _LABEL.match(cursor.text, cursor.position)
    if label is not None:
        cursor.position = label.end()
