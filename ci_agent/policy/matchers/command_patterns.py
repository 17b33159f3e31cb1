"""Patterns for commands, their environment and their options: token by token, never as one string."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ci_agent.policy.matchers.wildcards import Wildcard, escape, parse_wildcards

REST: Final = "**"
"""The last token of a pattern: any number of further words."""

_OPERATORS = frozenset(";|&<>()`\n")
_ENV_NAME = re.compile(r"[A-Za-z_*][A-Za-z0-9_*]*")


@dataclass(frozen=True, slots=True)
class TokenPattern:
    """What one word of a command may be: any of the alternatives."""

    text: str
    alternatives: tuple[Wildcard, ...]
    literals: frozenset[str]
    """The alternatives without a wildcard."""
    wildcards: tuple[Wildcard, ...]
    """The others."""

    @property
    def is_any(self) -> bool:
        """The token `*`: one word, whatever it is."""
        return self.text == "*"

    def spells(self, word: str) -> bool:
        """Whether an alternative without a wildcard is this very word."""
        return word in self.literals

    def matches(self, word: str) -> bool:
        if word in self.literals:
            return True
        for wild in self.wildcards:  # noqa: SIM110 - most have none, or one
            if wild.matches(word):
                return True
        return False


@dataclass(frozen=True, slots=True)
class CommandPattern:
    tokens: tuple[TokenPattern, ...]
    """Without the closing `**`."""
    rest: bool
    """The pattern ends in `**`."""

    @property
    def text(self) -> str:
        return " ".join([token.text for token in self.tokens] + [REST] * self.rest)


def split_command_pattern(text: str) -> tuple[str, ...]:
    """Cut a pattern written as one string into token patterns, by the shell's rules for blanks and quotes.

    What stands in quotes is literal: a `*` in quotes matches a star. ValueError for anything that a pattern of one
    simple command cannot hold: operators, substitutions, variables, a quote or brace without its partner.
    """
    tokens = tuple(_tokens(text))
    if not tokens:
        raise ValueError("a command pattern is empty")
    return tokens


def parse_command_pattern(tokens: Sequence[str]) -> CommandPattern:
    """Compile token patterns; ValueError says which of them is wrong and why."""
    if not tokens:
        raise ValueError("a command pattern is empty")
    *init, last = tokens
    if REST in init:
        raise ValueError(f"`**` stands for all further words and must come last, in {' '.join(tokens)!r}")
    rest = last == REST
    return CommandPattern(tuple(_token(token) for token in (init if rest else tokens)), rest)


def parse_env_pattern(text: str) -> TokenPattern:
    """A name of an environment variable, with `*` for any characters; ValueError for what no name can be."""
    if not _ENV_NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name of an environment variable; write a name such as CI or LC_*")
    return _token(text)


def parse_has_token(text: str) -> TokenPattern:
    """A word whose presence a deny rule looks for (`--force`, `-f`, `+*`); ValueError when every word would do."""
    token = _token(text)
    if any(wild.is_star for wild in token.alternatives) or token.matches(""):
        raise ValueError(f"{text!r} would match every word; leave `has` out to forbid the whole command")
    return token


@lru_cache(maxsize=1024)
def _token(text: str) -> TokenPattern:
    if text == REST:
        raise ValueError("`**` is no token of its own here")
    alternatives = parse_wildcards(text)
    literals = frozenset([wild.literal for wild in alternatives if wild.literal is not None])
    wildcards = tuple([wild for wild in alternatives if wild.literal is None])
    return TokenPattern(text, alternatives, literals, wildcards)


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        if text[at] in " \t":
            at += 1
            continue
        token, at = _read_token(text, at)
        yield token


def _read_token(text: str, at: int) -> tuple[str, int]:
    start, pieces = at, []
    while at < len(text) and text[at] not in " \t":
        char = text[at]
        if char == "'":
            piece, at = _single_quoted(text, at)
        elif char == '"':
            piece, at = _double_quoted(text, at)
        elif char == "\\":
            piece, at = escape(text[at + 1 : at + 2]), at + 2
        else:
            _refuse_syntax(text, at, start)
            piece, at = char, at + 1
        pieces.append(piece)
    token = "".join(pieces)
    _refuse_open_brace(text[start:at])
    return token, at


def _single_quoted(text: str, at: int) -> tuple[str, int]:
    end = text.find("'", at + 1)
    if end < 0:
        raise ValueError(f"the quote at character {at + 1} of {text!r} has no partner")
    return escape(text[at + 1 : end]), end + 1


def _double_quoted(text: str, at: int) -> tuple[str, int]:
    start, chars = at, []
    at += 1
    while at < len(text) and text[at] != '"':
        if text[at] in "$`":
            raise ValueError(f"{text[at]!r} in double quotes runs or inserts something; write it in single quotes")
        if text[at] == "\\" and text[at + 1 : at + 2] in ("\\", '"', "$", "`"):
            at += 1
        chars.append(text[at])
        at += 1
    if at >= len(text):
        raise ValueError(f"the quote at character {start + 1} of {text!r} has no partner")
    return escape("".join(chars)), at + 1


def _refuse_syntax(text: str, at: int, start: int) -> None:
    char = text[at]
    _refuse_other_style(text, char)
    if char in _OPERATORS or (char == "#" and at == start):
        shown = "a line break" if char == "\n" else f"`{char}`"
        raise ValueError(
            f"{shown} in {text!r} is shell syntax; a pattern names one simple command: write one pattern for each "
            "command, and put what is meant literally in quotes"
        )
    if char == "$":
        raise ValueError(f"variables are not known when a policy is read, in {text!r}; write '$' in single quotes")


def _refuse_other_style(text: str, char: str) -> None:
    """Where syntax is refused that other tools have in their patterns, say how it is written here."""
    if char in "(|" and (called := re.fullmatch(r"[A-Z]\w*\((.*)\)", text)):
        inner = re.sub(r":\*$", " **", called[1])
        raise ValueError(f"a pattern is the command alone, without the tool's name: write {inner!r}, not {text!r}")
    if char in "(|" and (group := re.search(r"\((\w[^()]*\|[^()]*\w)\)", text)):
        alternatives = "{" + group[1].replace("|", ",") + "}"
        raise ValueError(f"alternatives are written {alternatives}, not {group[0]}, in {text!r}")
    if char in "$(|" and text.startswith("^"):
        raise ValueError(
            f"a pattern is no regular expression, as {text!r} seems to be: write the words, `*` for any characters in "
            "a word and a closing `**` for any further words"
        )


def _refuse_open_brace(source: str) -> None:
    bare = re.sub(r"'[^']*'|\"(?:\\.|[^\"])*\"|\\.", "", source)
    if bare.count("{") != bare.count("}"):
        raise ValueError(f"a brace in {source!r} has no partner; alternatives stand without blanks: {{status,diff}}")
