"""Globs as git reads them in a .gitignore, turned into regular expressions that RE2 matches in linear time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import re2

from ci_agent.errors import ToolError

_MAX_GLOB_CHARS = 1_000
_MAX_ALTERNATIVES = 100

_CHARACTER_CLASSES: dict[str, str] = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"!-.0-~",
    "lower": "a-z",
    "print": r" -.0-~",
    "punct": r"!-.:-@\[-`{-~",
    "space": r" \t\n\v\f\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
"""What POSIX names stand for in brackets; a slash is in none of them, because brackets never match one."""


class InvalidGlobError(ValueError):
    """The glob can match nothing: a bracket without its end, an unknown character class, a backslash at the end."""


@dataclass(frozen=True, slots=True)
class PathGlob:
    """A glob that a model wrote, with `{a,b}` for alternatives and a leading `!` for everything else."""

    expression: "re2._Regexp"
    negated: bool
    folders_only: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Whether it means a path, which is relative to where the glob starts."""
        found = (is_folder or not self.folders_only) and self.expression.fullmatch(path) is not None
        return found != self.negated


def compile_glob(text: str) -> PathGlob:
    """Raises InvalidGlobError. Without a slash before its end the glob means a name in any folder."""
    negated = text.startswith("!")
    pattern = text.removeprefix("!").removeprefix("./")
    if not pattern.strip("/"):
        raise InvalidGlobError("the glob is empty")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidGlobError("the glob contains a lone surrogate")
    if len(text) > _MAX_GLOB_CHARS:
        raise InvalidGlobError(f"the glob is longer than {_MAX_GLOB_CHARS:,} characters")
    alternatives = "|".join(glob_expression(part.rstrip("/")) for part in _alternatives(pattern))
    try:
        expression = re2.compile(alternatives, glob_options())
    except re2.error as error:
        raise InvalidGlobError(f"the glob cannot be used: {error}") from error
    return PathGlob(expression, negated, folders_only=pattern.endswith("/"))


def compile_glob_argument(argument: str, text: str) -> PathGlob:
    """The same for a tool's argument: ToolError for a glob that can match nothing."""
    try:
        return compile_glob(text)
    except InvalidGlobError as error:
        raise ToolError(f"{argument}: {error}. A glob looks like *.py or src/**/*.{{ts,tsx}}.") from error


def glob_expression(glob: str) -> str:
    """RE2 syntax (with `dot_nl`) for the paths that a glob without trailing slash means; raises InvalidGlobError."""
    if "/" not in glob:
        return f"(?:.*/)?{''.join(_translate_name(glob))}"
    return "".join(_translate_path(glob.removeprefix("/")))


def glob_options() -> "re2.Options":
    options = re2.Options()
    options.dot_nl = True
    options.never_capture = True
    options.log_errors = False
    return options


_ANY_FOLDERS = re.compile(r"\*\*+(?:\\?/)?")


def _translate_path(glob: str) -> Iterator[str]:
    """`**` is special where it is all there is between two slashes, or between a slash and an end."""
    position = 0
    while position < len(glob):
        stars = _ANY_FOLDERS.match(glob, position)
        at_start = position == 0 or glob[position - 1] == "/"
        if stars and at_start and (stars.end() == len(glob) or stars[0].endswith("/")):
            yield "(?:.*/)?" if stars[0].endswith("/") else ".*"
            position = stars.end()
        else:
            translated, position = _translate_one(glob, position)
            yield translated


def _translate_name(glob: str) -> Iterator[str]:
    position = 0
    while position < len(glob):
        translated, position = _translate_one(glob, position)
        yield translated


def _translate_one(glob: str, position: int) -> tuple[str, int]:
    """The expression for what stands at a position, and where the next begins."""
    char = glob[position]
    if char == "*":
        return "[^/]*", len(glob) - len(glob[position:].lstrip("*"))
    if char == "?":
        return "[^/]", position + 1
    if char == "[":
        return _translate_brackets(glob, position + 1)
    if char != "\\":
        return re.escape(char), position + 1
    if position + 1 == len(glob):
        raise InvalidGlobError("the glob ends in a backslash")
    return re.escape(glob[position + 1]), position + 2


_NAMED_CLASS = re.compile(r"\[:([^]]*):\]")


def _translate_brackets(glob: str, position: int) -> tuple[str, int]:
    """Brackets from behind the opening one: a class of characters that never holds a slash."""
    negated = glob.startswith(("!", "^"), position)
    first = position + negated
    members: list[str] = []
    position = first
    while not (glob.startswith("]", position) and position > first):
        member, position = _bracket_member(glob, position)
        members.append(member)
    content = "".join(members)
    if not negated and not content:
        raise InvalidGlobError("brackets never match a slash")
    return f"[^/{content}]" if negated else f"[{content}]", position + 1


def _bracket_member(glob: str, position: int) -> tuple[str, int]:
    if named := _NAMED_CLASS.match(glob, position):
        if named[1] not in _CHARACTER_CLASSES:
            raise InvalidGlobError(f"[:{named[1]}:] is no character class")
        return _CHARACTER_CLASSES[named[1]], named.end()
    low, position = _bracket_char(glob, position)
    if glob.startswith("-", position) and glob[position + 1 : position + 2] not in {"", "]"}:
        high, position = _bracket_char(glob, position + 1)
        return _character_range(low, max(low, high)), position
    return _character_range(low, low), position


def _bracket_char(glob: str, position: int) -> tuple[str, int]:
    position += glob.startswith("\\", position)
    if position >= len(glob):
        raise InvalidGlobError("a bracket is not closed")
    return glob[position], position + 1


def _character_range(low: str, high: str) -> str:
    if low <= "/" <= high:
        return _without_slash(low, high)
    return f"\\x{{{ord(low):x}}}-\\x{{{ord(high):x}}}"


def _without_slash(low: str, high: str) -> str:
    below = _character_range(low, ".") if low < "/" else ""
    above = _character_range("0", high) if high > "/" else ""
    return below + above


def _alternatives(pattern: str) -> list[str]:
    """The pattern once for each choice that its braces leave."""
    waiting, done = [pattern], []
    while waiting:
        part = waiting.pop()
        cuts = _first_braces(part)
        if cuts is None:
            done.append(part)
            continue
        before, after = part[: cuts[0]], part[cuts[-1] + 1 :]
        waiting += [f"{before}{part[start + 1 : end]}{after}" for start, end in pairwise(cuts)]
        if len(waiting) + len(done) > _MAX_ALTERNATIVES:
            raise InvalidGlobError(f"the braces leave more than {_MAX_ALTERNATIVES} alternatives")
    return done


def _first_braces(pattern: str) -> list[int] | None:
    """Where the first braces with a comma open, are divided, and close; braces without one are plain characters."""
    for start, char in enumerate(pattern):
        if char == "{" and not pattern[:start].endswith("\\"):
            cuts = _brace_cuts(pattern, start)
            if len(cuts) > 2:
                return cuts
    return None


def _brace_cuts(pattern: str, start: int) -> list[int]:
    cuts = [start]
    depth = 0
    for match in _BRACE_TOKENS.finditer(pattern, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0 or (depth == 1 and match[0] == ","):
            cuts.append(match.start())
        if depth == 0:
            return cuts
    return []


_BRACE_TOKENS = re.compile(r"\\.|[{},]", re.DOTALL)
