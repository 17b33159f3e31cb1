"""The tree of a bash program: what was written, before anything is expanded.

The nodes that a long program has by the thousand are tuples, which are made faster than dataclasses.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from ci_agent.policy.words import Edit

Span: TypeAlias = tuple[int, int]


class Text(NamedTuple):
    """Characters of a word after their quotes are removed; quoted ones are never split, matched or expanded."""

    text: str
    quoted: bool


class Parameter(NamedTuple):
    """`$name` or `${name...}`. `plain`: nothing but its value; otherwise an operator makes something else of it."""

    name: str
    quoted: bool
    plain: bool = True
    length: bool = False
    """`${#name}`: digits."""
    operands: tuple["SourceWord", ...] = ()
    """What stands to the right of an operator: its substitutions run."""
    assigns: bool = False
    """The operator may give the variable a value."""
    key: "SourceWord | None" = None
    """For one element of an associative array."""
    edit: Edit | None = None
    """What the operator makes of the value, when that is as simple as `${name%.py}` and `${name##*/}`."""


class Substitution(NamedTuple):
    """`$(...)`, backticks, `<(...)` or `>(...)`. `process`: the word becomes the path of a pipe."""

    program: "Sequence"
    quoted: bool
    process: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((...))`: names that it reads must hold integers, for bash evaluates their text as code."""

    reads: tuple[str, ...]
    inserts: tuple[str, ...]
    """Those that stand there with a `$`: their text becomes a part of the expression."""
    assigns: tuple[str, ...]
    span: Span
    certain: bool
    """What it gives values to gets them in any case."""
    quoted: bool = True


Part: TypeAlias = Text | Parameter | Substitution | Arithmetic


class SourceWord(NamedTuple):
    """One word. `plain` is its value when no character in it means anything to the shell; it then has no parts."""

    plain: str | None
    parts: tuple[Part, ...]
    span: Span


class SourceAssignment(NamedTuple):
    name: str
    value: SourceWord
    elements: tuple[SourceWord, ...] | None
    """The words of `name=(...)`; None: a plain value."""
    append: bool
    span: Span
    key: SourceWord | None = None
    """For one element of an associative array."""


RedirectOperator: TypeAlias = Literal["<", ">", ">>", ">|", "<>", "&>", "&>>", ">&", "<&", "<<<", "<<"]


class SourceRedirect(NamedTuple):
    operator: RedirectOperator
    target: SourceWord
    variable: str | None
    """`{variable}>file` puts the number of the descriptor there."""
    body: list[Part]
    """The expansions in a here-document; filled when the reading gets there, for a body follows its line."""
    span: Span


class Simple(NamedTuple):
    assignments: tuple[SourceAssignment, ...]
    words: tuple[SourceWord, ...]
    redirects: tuple[SourceRedirect, ...]
    declared: dict[int, SourceAssignment]
    """The arguments of `export` and its like that have the form of an assignment, by their places behind the name;
    among the words stands an empty one for each."""
    builtin: "Builtin | None"
    span: Span


@dataclass(frozen=True, slots=True)
class Builtin:
    """A command of the shell itself whose effect on the shell is followed."""

    name: str
    index: int
    """Where the name stands among the words: behind `command` and `builtin`."""
    assigns: tuple[str, ...] = ()
    """The variables to which it gives values that nobody knows."""
    handler: "Sequence | None" = None
    """What `trap` installs."""


@dataclass(frozen=True, slots=True)
class Conditional:
    """`[[ ... ]]`: its operators and operands in order. `numbers` are the operands evaluated as arithmetic."""

    words: tuple[SourceWord, ...]
    numbers: tuple[SourceWord, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`((...))`."""

    arithmetic: Arithmetic


@dataclass(frozen=True, slots=True)
class Group:
    """`{ ...; }`, or in a shell of its own `( ... )`."""

    body: "Sequence"
    subshell: bool


@dataclass(frozen=True, slots=True)
class Branches:
    """`if`: each condition with its body; `otherwise` is the body of `else`."""

    arms: tuple[tuple["Sequence", "Sequence"], ...]
    otherwise: "Sequence | None"


@dataclass(frozen=True, slots=True)
class Choice:
    """`case`."""

    subject: SourceWord
    patterns: tuple[SourceWord, ...]
    bodies: tuple["Sequence", ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """`while`, `until` and `for ((...))`, whose three expressions are `arithmetic`."""

    condition: "Sequence | None"
    arithmetic: tuple[Arithmetic, ...]
    body: "Sequence"
    moves: bool
    """An iteration may leave the shell in another folder."""
    reads: str | None = None
    """`while read -r NAME`: each iteration has a line of the input there, and nothing inside gives it another value."""
    exactly: bool = False
    """With `IFS=`: also the blanks at its ends."""


@dataclass(frozen=True, slots=True)
class ForEach:
    """`for name in words`; `words` is None for the positional parameters."""

    name: str
    words: tuple[SourceWord, ...] | None
    body: "Sequence"
    moves: bool
    enters: bool
    """Something inside changes the folder, if only that of a subshell."""
    keeps: bool
    """Nothing inside gives the variable another value."""
    span: Span


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    body: "Redirected"
    span: Span


Compound: TypeAlias = Conditional | Evaluation | Group | Branches | Choice | Loop | ForEach


class Redirected(NamedTuple):
    """A compound command with the redirections behind it."""

    command: Compound
    redirects: tuple[SourceRedirect, ...]
    span: Span


Stage: TypeAlias = Simple | Redirected | Function


class Pipeline(NamedTuple):
    stages: tuple[Stage, ...]
    negated: bool


class AndOr(NamedTuple):
    """Pipelines joined by `&&` and `||`; `operators` has one entry fewer than `pipelines`."""

    pipelines: tuple[Pipeline, ...]
    operators: tuple[str, ...]
    background: bool


class Sequence(NamedTuple):
    items: tuple[AndOr, ...]
