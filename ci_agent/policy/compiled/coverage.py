"""Whether a command pattern covers the words of a command (to allow it) or may mean them (to deny it)."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ci_agent.policy.facts import ExecFact
from ci_agent.policy.matchers.command_patterns import CommandPattern, TokenPattern
from ci_agent.policy.matchers.reach import fold
from ci_agent.policy.programs.load import find_profile
from ci_agent.policy.words import Word, literal_word

_NO_HAZARDS: Final[dict[int, str]] = {}

_PLACE: Final = "{}"
"""A rule that spells it means the files that `find` puts there."""

_OPTION: Final = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9-]*=")


class Coverage(NamedTuple):
    """How a pattern fits: for each word the index of the token that covers it; None: it was looked through."""

    tokens: tuple[int | None, ...]


class Gap(NamedTuple):
    """Why a pattern does not fit, and how far it came: the more words, the nearer."""

    words: int
    why: str
    is_hazard: bool = False


ANOTHER_PROGRAM: Final = Gap(0, "it names another program")


def cover(pattern: CommandPattern, command: ExecFact) -> Coverage | Gap:
    """Fit an allow rule's pattern to all words of a command."""
    if pattern.tokens and not _names_program(pattern.tokens[0], command):
        program = command.words[0]
        return _other_spelling(pattern.tokens[0], program) if "/" in program.text else ANOTHER_PROGRAM
    hazards = dict(command.hazards) if command.hazards else _NO_HAZARDS
    certain = not (hazards or command.relocated)
    tokens: list[int | None] = [0]
    at = min(len(pattern.tokens), 1)
    for position, word in enumerate(command.words[1:], start=1):
        if certain and pattern.rest and at == len(pattern.tokens):
            # The closing `**` covers all that is left.
            return Coverage((*tokens, *[at] * (len(command.words) - position)))
        token = pattern.tokens[at] if at < len(pattern.tokens) else None
        gap = _covers_at(pattern, token, command, position, hazards.get(position))
        if gap is None:
            tokens.append(at)
            at += token is not None
        elif position in command.looked_through:
            tokens.append(None)
        else:
            if position in hazards and command.has_open_glob and word.text.startswith("-"):
                gap += "; if it is the name of a file that a glob stands for, write `--` or `./` before the glob"
            return Gap(position, gap, is_hazard=position in hazards and _would_cover(pattern, token, word))
    if at < len(pattern.tokens):
        return Gap(len(command.words), f"it goes on with `{pattern.tokens[at].text}`")
    return Coverage(tuple(tokens))


def _names_program(token: TokenPattern, command: ExecFact) -> bool:
    """A path of a program means the same file as in a rule, whatever the folder that it is run in."""
    program = command.words[0]
    if program.kind != "literal":
        return False
    return token.matches(program.text) if command.located is None else any(map(token.matches, command.located))


def _other_spelling(token: TokenPattern, program: Word) -> Gap:
    """`/usr/bin/ls` is no `ls` to an allow rule, but nearer to it than another program."""
    if program.kind != "literal":
        return ANOTHER_PROGRAM
    is_near = token.matches(program.text.rpartition("/")[2])
    return Gap(1, f"`{program.text}` is not `{token.text}`") if is_near else ANOTHER_PROGRAM


def _covers_at(
    pattern: CommandPattern, token: TokenPattern | None, command: ExecFact, position: int, hazard: str | None
) -> str | None:
    """As `_covers`; a file whose code runs is the same file as in a rule, whatever the folder that it is seen from."""
    values = dict(command.relocated).get(position) if command.relocated else None
    option = _option_name(command, command.words[position]) if hazard is not None else ""
    if values is None:
        return _covers(pattern, token, command.words[position], hazard, option)
    for spellings in values:
        gaps = [_covers(pattern, token, literal_word(spelling), hazard, option) for spelling in spellings]
        if not gaps or None not in gaps:
            return gaps[0] if gaps else f"which file `{command.words[position].text}` means is not known"
    return None


def _option_name(command: ExecFact, word: Word) -> str:
    """The name of an option with an attached value, and the `=`; empty for anything else."""
    first = word.choices[0] if word.choices else word
    match = _OPTION.match(first.prefix if first.kind == "unknown" else first.text)
    if match is None or match[0].startswith("--"):
        return match[0] if match else ""
    # Where letters may be joined behind one dash, what follows the `=` may be more of them.
    profile = find_profile(command.words[0].text.rpartition("/")[2])
    return match[0] if profile is not None and not profile.syntax.clusters else ""


def _covers(
    pattern: CommandPattern, token: TokenPattern | None, word: Word, hazard: str | None, option: str = ""
) -> str | None:
    """None when the token, or the closing `**`, covers the word; otherwise why not."""
    if not _would_cover(pattern, token, word):
        return f"`{word.text}` is not `{token.text}`" if token else f"it ends before `{word.text}`"
    if hazard is not None and not (token and _spells(token, word, option)):
        return f"`{word.text}` {hazard}, and no wildcard covers that"
    return None


def _would_cover(pattern: CommandPattern, token: TokenPattern | None, word: Word) -> bool:
    if token is None:
        return pattern.rest
    if word.kind == "unknown":
        if word.beneath and _PLACE in word.text and token.spells(word.text):
            return True
        return not word.splits and (token.is_any or _begins_word(token, word.prefix))
    if word.kind == "glob":
        return False
    if word.kind == "choice":
        return all(_would_cover(pattern, token, choice) for choice in word.choices)
    return token.matches(word.text)


def _begins_word(token: TokenPattern, prefix: str) -> bool:
    """Whether the token is a beginning that the word has, and a `*` for the rest."""
    return any(wild.chunks == (wild.prefix, "") and prefix.startswith(wild.prefix) for wild in token.alternatives)


def _spells(token: TokenPattern, word: Word, option: str) -> bool:
    """The token is the word, or it is the option's name with a wildcard for the value alone."""
    if word.kind == "choice":
        return all(_spells(token, choice, option) for choice in word.choices)
    if word.literal is None:
        return bool(option) and any(wild.prefix == option for wild in token.alternatives)
    return token.spells(word.text) or (
        bool(option) and any(wild.prefix.startswith(option) and wild.matches(word.text) for wild in token.alternatives)
    )


def may_mean(pattern: CommandPattern, words: Sequence[Word], looked_through: frozenset[int]) -> bool:
    """Whether a deny rule's pattern is about the command: in doubt it is.

    The program is compared by its base name. Options that stand before a word that the pattern names are passed
    over, each with the word behind it, which may be its value.
    """
    if not words or not _may_be_program(pattern, words[0]):
        return False
    if pattern.rest and len(pattern.tokens) < 2:
        return True
    reached = {min(1, len(pattern.tokens))}
    skips_value: set[int] = set()
    for position, word in enumerate(words[1:], start=1):
        following: set[int] = set()
        for at in reached:
            if at < len(pattern.tokens):
                if _may_be(pattern.tokens[at], word):
                    following.add(at + 1)
            elif pattern.rest:
                following.add(at)
            if word.kind == "unknown" and word.splits:
                following.update(range(at, len(pattern.tokens) + 1))
            if position in looked_through or (_is_option(word) and at < len(pattern.tokens)) or at in skips_value:
                following.add(at)
        skips_value = {at for at in reached if at < len(pattern.tokens)} if _is_option(word) else set()
        reached = following
    return len(pattern.tokens) in reached


def _may_be_program(pattern: CommandPattern, word: Word) -> bool:
    if not pattern.tokens:
        return True
    if word.literal is None:
        return True
    base = word.text.rpartition("/")[2]
    return any(
        wild.matches(word.text)
        or wild.matches(base)
        or wild.matches(fold(base))
        or _base_name(wild.chunks) == fold(base)
        for wild in pattern.tokens[0].alternatives
    )


def _base_name(chunks: tuple[str, ...]) -> str | None:
    return fold(chunks[0].rpartition("/")[2]) if len(chunks) == 1 else None


def _may_be(token: TokenPattern, word: Word) -> bool:
    if word.kind == "choice":
        return any(_may_be(token, choice) for choice in word.choices)
    return word.literal is None or token.matches(word.text)


def _is_option(word: Word) -> bool:
    text = word.prefix if word.kind == "unknown" else word.text
    return text.startswith("-") and text not in ("-", "--")
