"""What a .gitignore leaves out, byte for byte as git decides it."""

from collections.abc import Iterable
from dataclasses import dataclass

import re2

from ci_agent.tools.globs import InvalidGlobError, glob_expression, glob_options

MAX_IGNORE_BYTES = 1 << 20
"""More of a file is not read."""

_MAX_MEMORY = 64 << 20


@dataclass(frozen=True, slots=True)
class _Rule:
    expression: bytes
    negated: bool
    folders_only: bool


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """One .gitignore, ready to be asked."""

    rules: tuple[_Rule, ...]
    expressions: "re2.Set"

    def verdict(self, path: bytes, *, is_folder: bool) -> bool | None:
        """Whether a path relative to the file's folder is ignored; None: no rule speaks of it. The last one counts."""
        matching = self.expressions.Match(path) or ()
        deciding = max((index for index in matching if is_folder or not self.rules[index].folders_only), default=None)
        return None if deciding is None else not self.rules[deciding].negated


def parse_ignore_file(data: bytes) -> IgnoreFile | None:
    """None when the file has no rule."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    rules = tuple(rule for line in lines if (rule := _parse_line(line)))
    if not rules:
        return None
    options = glob_options()
    options.encoding = re2.Options.Encoding.LATIN1  # git matches bytes
    options.max_mem = _MAX_MEMORY
    expressions = re2.Set.FullMatchSet(options)
    for rule in rules:
        expressions.Add(rule.expression)
    expressions.Compile()
    return IgnoreFile(rules, expressions)


def is_ignored(path: bytes, files: Iterable[tuple[int, IgnoreFile]], *, is_folder: bool) -> bool:
    """`files` from the innermost folder outwards, each with the length of the path's part that it does not see."""
    for start, file in files:
        verdict = file.verdict(path[start:], is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def _parse_line(line: bytes) -> _Rule | None:
    glob = _without_trailing_blanks(line.removesuffix(b"\r")).decode("latin-1")
    if glob.startswith("#"):
        return None
    negated = glob.startswith("!")
    glob = glob.removeprefix("!")
    folders_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    if not glob:
        return None
    try:
        expression = glob_expression(glob)
    except InvalidGlobError:
        return None  # matches nothing
    return _Rule(expression.encode("latin-1"), negated, folders_only)


def _without_trailing_blanks(line: bytes) -> bytes:
    stripped = line.rstrip(b" ")
    backslashes = len(stripped) - len(stripped.rstrip(b"\\"))
    quoted = backslashes % 2 == 1 and len(stripped) < len(line)
    return stripped + b" " if quoted else stripped
