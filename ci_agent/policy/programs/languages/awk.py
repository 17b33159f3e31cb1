"""awk programs: whether they run a command, write a file, or read one that is not an operand."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.words import Word

TokenKind: TypeAlias = Literal["name", "string", "regex", "number", "newline", "operator", "end"]
Token: TypeAlias = tuple[TokenKind, str]

_TOKEN = re.compile(
    r"""[ \t\r]*(?:(?:\\\r?\n|\#[^\n]*)[ \t\r]*)*
      (?:(?P<newline>\n)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<string>"(?:[^"\\\n]|\\.|\\\n)*")
      | (?P<operator>\+\+|--|\*\*=?|\|\||&&|\|&|>>|[<>=!+*/%^-]=|!~|::|[-{}()\[\];,+*/%^!<>|?:~$=@])
      | (?P<end>\Z))""",
    re.VERBOSE,
)
_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?+\]?+(?=(?P<set>(?:[^/\]\n\\]|\\.)*))(?P=set)\])*/")
"""Without a bare slash between brackets: whether that ends it depends on the awk. What stands between them is looked
ahead at, so that it is taken whole or not at all: possessive groups do not work on Python 3.11.0 to 3.11.4."""

_DANGEROUS_NAMES = {
    "system": "runs a command",
    "getline": "runs a command or reads a file",
    "ARGV": "changes which files are read",
    "ARGC": "changes which files are read",
}
_DANGEROUS_OPERATORS = {
    "|": "runs a command",
    "|&": "runs a command",
    "@": "loads code or calls a function by a computed name",
}
_ANYTHING_DANGEROUS = re.compile(r"system|getline|ARG[VC]|[@>]|(?<!\|)\|(?!\|)")
_BEFORE_REGEX = frozenset("({[,;!&|~=+-*%^<>?:") | {"&&", "||", "!~", "==", "!=", ">=", "<=", "}", ""}
_KEYWORDS_BEFORE_REGEX = frozenset({"print", "printf", "return", "in", "case", "else", "do"})
_BEFORE_CONDITION = frozenset({"if", "while", "for", "switch"})
_CONTINUES = frozenset({",", "{", "&&", "||", "?", ":", "do", "else"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_STANDARD = frozenset({'"/dev/stderr"', '"/dev/stdout"', '"/dev/null"', '"-"'})
_AMBIGUOUS = "is an awk program that can be read in two ways"

MAX_CHARACTERS = 16_000
"""A longer program takes longer to read than anyone waits for a decision; a script file may be longer."""


class _AmbiguousError(Exception):
    """Whether a slash divides, or opens or closes a regular expression, depends on the awk."""


def read(parsed: Parsed, draft: Draft) -> None:
    operands = parsed.operands
    for index, program in _programs(parsed):
        if program.literal is None:
            draft.doubt(f"the awk program {program.text} is not known")
            continue
        if len(program.text) > MAX_CHARACTERS:
            draft.doubt(f"an awk program of more than {MAX_CHARACTERS:,} characters is not read: put it into a file")
            continue
        why = find_hazard(program.text)
        if why is not None:
            draft.hazard(index, why)
    inputs = operands if parsed.has(*parsed.profile.instead) else operands[1:]
    for operand in inputs:
        if not _ASSIGNMENT.match(operand.word.literal or ""):
            draft.use("read", operand.word)


def _programs(parsed: Parsed) -> Iterator[tuple[int, Word]]:
    for found in parsed.options:
        if found.option.name in ("-e", "--source") and found.value is not None:
            yield found.at if found.value_index is None else found.value_index, found.value
    if parsed.operands and not parsed.has(*parsed.profile.instead):
        yield parsed.operands[0].at, parsed.operands[0].word


def find_hazard(program: str) -> str | None:
    """What the program does beyond reading its operands and printing, in a few words."""
    try:
        return _hazard_in(list(_tokens(program)))
    except _AmbiguousError:
        return _AMBIGUOUS if _ANYTHING_DANGEROUS.search(program) else None


def _hazard_in(tokens: list[Token]) -> str | None:
    printing = _Printing()
    for position, (kind, text) in enumerate(tokens):
        if kind == "name" and text in _DANGEROUS_NAMES:
            return _DANGEROUS_NAMES[text]
        if kind == "operator" and text in _DANGEROUS_OPERATORS:
            return _DANGEROUS_OPERATORS[text]
        redirects = kind == "operator" and text in (">", ">>") and printing.at_top
        if redirects and not _is_standard(tokens[position + 1 : position + 3]):
            return "writes a file"
        printing.follow(kind, text)
    return None


@dataclass(slots=True)
class _Printing:
    """Whether a `>` would redirect: in a print statement, outside parentheses."""

    active: bool = False
    depth: int = 0
    before: str = ""

    @property
    def at_top(self) -> bool:
        return self.active and self.depth <= 0

    def follow(self, kind: str, text: str) -> None:
        if kind == "newline":
            self.active = self.active and self.before in _CONTINUES
            return
        if kind == "name" and text in ("print", "printf"):
            self.active, self.depth = True, 0
        elif kind == "operator":
            self.depth += (text in ("(", "[")) - (text in (")", "]"))
            if text in (";", "}") and self.depth <= 0:
                self.active = False
        self.before = text


def _is_standard(following: list[Token]) -> bool:
    """The target of a redirection is one of the standard streams, and nothing is joined to it."""
    if not following or following[0][1] not in _STANDARD:
        return False
    return len(following) == 1 or following[1][0] == "newline" or following[1][1] in (";", "}")


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    before: Token = ("operator", "")
    groups: list[bool] = []
    ends_value = False
    while match := _TOKEN.match(text, position):
        kind = cast("TokenKind", match.lastgroup)
        token = match[kind]
        if kind == "end":
            return
        if token[0] == "/" and not ends_value and _opens_regex(before):
            match = _REGEX.match(text, match.start(kind))
            if match is None:
                break
            before = ("regex", match[0])
        else:
            ends_value = _ends_value(token, before, groups)
            before = (kind, token)
        yield before
        position = match.end()
    raise _AmbiguousError


def _ends_value(text: str, before: Token, groups: list[bool]) -> bool:
    """Whether a `)` ends a value, not a condition with a statement behind it; `groups` are the `(` that are open."""
    if text == "(":
        groups.append(before[0] != "newline" and before[1] not in _BEFORE_CONDITION)
    return text == ")" and bool(groups) and groups.pop()


def _opens_regex(before: Token) -> bool:
    kind, text = before
    if kind == "newline" or (kind == "operator" and text in _BEFORE_REGEX):
        return True
    if kind == "name":
        if text in _KEYWORDS_BEFORE_REGEX:
            return True
        if text == "length":
            raise _AmbiguousError
        return False
    if kind == "operator" and text in (")", "++", "--", "$"):
        raise _AmbiguousError
    return False
