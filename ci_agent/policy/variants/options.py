"""Options and words with which a program runs, loads or writes something, as its profile tells them."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ci_agent.policy.lint.samples import command_call
from ci_agent.policy.programs.levels import parse_levels
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.programs.profile import Option, Profile
from ci_agent.policy.variants.plainly import spells_word
from ci_agent.policy.variants.variant import Variant
from ci_agent.policy.words import literal_word

_WORDS: Final = {
    "find": ("-exec CANARY {} ;", "-execdir CANARY {} +", "-ok CANARY ;"),
    "sed": ("-e '1e CANARY'", "-e 'w CANARY'", "-e s/a/b/e", "-e 's/a/b/w CANARY'"),
    "make": ("SHELL=./CANARY",),
    "awk": ("-f CANARY", "-i CANARY"),
    "git": ("-c core.pager=./CANARY", "-c alias.y=!CANARY"),
}
"""What a table of options does not say."""

_SHORTEST_ABBREVIATION: Final = len("--abc")


class Level(NamedTuple):
    """A program, or one of its subcommands."""

    parsed: Parsed
    start: int
    """Index of the first word behind its name."""


def levels_of(words: Sequence[str]) -> list[Level]:
    """The program and its subcommands as the profiles know them; empty without a profile."""
    levels: list[Level] = []
    for parsed in parse_levels([literal_word(word) for word in words]):
        levels.append(Level(parsed, _start_behind(levels[-1].parsed) if levels else 1))
    return levels


def option_variants(words: Sequence[str], canary: str) -> Iterator[Variant]:
    """Each option of consequence that the profiles of the program and its subcommands list, in several spellings."""
    for level in levels_of(words):
        profile = level.parsed.profile
        if not profile.syntax.options and profile.language is None:
            continue  # all words are for somebody else, as those behind the name of a script
        at = len(words) if profile.bundled or not profile.syntax.options else level.start
        for more in (*_spelled(profile, canary), *_words_of(profile, canary)):
            telling = more[1] if profile.name == "sed" and more[0] == "-e" else more[0]
            hostile = command_call([*words[:at], *more, *words[at:]])
            yield Variant("hazard option", hostile, says=spells_word(telling))


def harmless_options(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Options that a pattern need not name (`git --no-pager`), each with where it may stand."""
    for level in levels_of(words):
        for option in level.parsed.profile.options.values():
            if option.meaning == "look" and option.arity == "bare":
                yield level.start, option.name


def _start_behind(parsed: Parsed) -> int:
    """Where the words of the level after this one begin: behind its subcommand, or the program it hands over to."""
    for found in parsed.options:
        if found.option.name in parsed.profile.delegates:
            return (found.value_index or found.at) + 1
    return parsed.operands[0].at + 1


def _spelled(profile: Profile, canary: str) -> Iterator[list[str]]:
    for option in profile.options.values():
        if option.why is not None:
            yield from _spellings(profile, option, canary)
    unknown = f"--{canary}"
    is_listed = any(unknown.lstrip("-").startswith(option.name[:-1].lstrip("-")) for option in profile.prefixes)
    if profile.unlisted == "hazard" and profile.syntax.options and not is_listed:
        yield [unknown]


def _spellings(profile: Profile, option: Option, canary: str) -> Iterator[list[str]]:
    name, value = option.name.replace("*", canary), f"./{canary}"
    values = {"bare": [], "takes": [value], "takes_two": ["y", value], "may_take": []}[option.arity]
    yield [name, *values]
    if option.arity in ("takes", "may_take"):
        yield [f"{name}{value}" if len(name) == len("-o") and profile.syntax.clusters else f"{name}={value}"]
    if name.startswith("--") and profile.syntax.abbreviations and _is_free(profile, name[:-1]):
        yield [name[:-1], *values]
    if len(name) == len("-o") and profile.syntax.clusters:
        yield from ([f"-{flag}{name[1]}", *values] for flag in _flags(profile)[:1])


def _is_free(profile: Profile, name: str) -> bool:
    """No option has this very name, and it is long enough to be taken for the beginning of one."""
    return len(name) >= _SHORTEST_ABBREVIATION and name not in profile.options


def _flags(profile: Profile) -> list[str]:
    """Letters that change nothing and can stand before others behind one dash."""
    return [
        option.name[1]
        for option in profile.options.values()
        if option.arity == "bare" and option.meaning == "data" and len(option.name) == 2 and option.name[1].isalpha()
    ]


def _words_of(profile: Profile, canary: str) -> list[list[str]]:
    return [shlex.split(text.replace("CANARY", canary)) for text in _WORDS.get(profile.name, ())]
