"""Patterns that hold a slip of the pen: nobody types what they are about."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from ci_agent.policy.lint.finding import LintFinding, Subject, warning
from ci_agent.policy.lint.samples import command_call, command_patterns, sample_words
from ci_agent.policy.matchers.command_patterns import CommandPattern
from ci_agent.policy.programs.load import find_profile
from ci_agent.policy.rules import Rule
from ci_agent.strict_yaml import quote

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=.*")

_SHORT: Final = 3
"""Of words so short many differ in one letter alone."""


def find_slips(subject: Subject) -> Iterator[LintFinding]:
    for rule in subject.own_rules:
        for pattern in command_patterns(rule):
            message = _variable(rule, pattern) or _comma(pattern) or _misspelled(pattern)
            if message is not None:
                witness = subject.first_allowed([command_call(sample_words(pattern))])
                yield warning("matches-nothing", rule, f"{quote(pattern.text)} {message}", witness)


def _variable(rule: Rule, pattern: CommandPattern) -> str | None:
    """`CI=1 pytest`: what stands before a command is none of its words."""
    texts = [token.text for token in pattern.tokens]
    names = []
    while texts and (match := _ASSIGNMENT.fullmatch(texts[0])):
        names.append(match[1])
        del texts[0]
    if not names:
        return None
    command = " ".join([*texts, *["**"] * pattern.rest]) or "COMMAND"
    how = f"env: [{', '.join(names)}]" if rule.effect == "allow" else "no variable: the rule holds with any"
    return f"is about no command, for a variable is none of its words: write {quote(command)} and {how}"


def _comma(pattern: CommandPattern) -> str | None:
    """`git status, git diff`: several commands in one text."""
    texts = [token.text for token in pattern.tokens]
    for before, word in pairwise(texts):
        if before.endswith(",") and find_profile(word) is not None:
            parts = [quote(part.strip()) for part in pattern.text.split(",")]
            return f"is one command with a comma in it: write a list, [{', '.join(parts)}]"
    return None


def _misspelled(pattern: CommandPattern) -> str | None:
    """`git statuss`: a subcommand that the profile does not know, a letter away from one that it knows."""
    if len(pattern.tokens) == 1 or not pattern.tokens or pattern.tokens[0].alternatives[0].literal is None:
        return None
    program = pattern.tokens[0].text
    profile = find_profile(program)
    if profile is None or not profile.commands or "*" in profile.commands:
        return None
    for wild in pattern.tokens[1].alternatives:
        word = wild.literal
        meant = None if word is None or word in profile.commands else _meant(word, profile.commands)
        if meant is not None:
            written, right = quote(f"{program} {word}"), quote(f"{program} {meant}")
            return f"is about {written}, which {program} does not know: did you mean {right}?"
    return None


def _meant(word: str, known: Iterable[str]) -> str | None:
    """The known word that is one slip away; of several, one that begins alike."""
    close = [each for each in known if _is_one_slip(word, each)]
    return min(close, key=lambda each: (each[:1] != word[:1], each), default=None)


def _is_one_slip(word: str, known: str) -> bool:
    """A letter too many or too few, two changed places, or, in a longer word, another letter."""
    short, long = sorted((word, known), key=len)
    if len(short) == 1 or word.startswith("-"):
        return False
    if len(long) == len(short) + 1:
        return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
    if len(long) != len(short):
        return False
    other = [at for at, (one, two) in enumerate(zip(short, long, strict=True)) if one != two]
    if len(other) == 1:
        return len(short) > _SHORT
    first, last = other[0], other[-1]
    swapped = short[:first] + short[first : last + 1][::-1] + short[last + 1 :]
    return last == first + 1 and swapped == long
