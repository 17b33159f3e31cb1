"""The words of a command sorted by the profile of its program, and by those of its subcommands."""

from collections.abc import Sequence

from ci_agent.policy.programs.load import find_profile, load_profile
from ci_agent.policy.programs.options import parse
from ci_agent.policy.programs.parsed import Operand, Parsed
from ci_agent.policy.programs.profile import Profile
from ci_agent.policy.words import Word

SYSTEM_FOLDERS = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"})
"""A program that is spelled with one of these is the one that its base name means."""


def program_name(word: Word) -> str | None:
    """The base name by which the profile is found; None: it has a path of its own, or is not known."""
    if word.kind != "literal":
        return None
    folder, slash, name = word.text.rpartition("/")
    return name if not slash or folder in SYSTEM_FOLDERS else None


def parse_levels(words: Sequence[Word]) -> list[Parsed]:
    """The words sorted by the program's profile, then by each subcommand's; empty without a profile."""
    name = program_name(words[0]) if words else None
    profile = find_profile(name) if name is not None else None
    levels: list[Parsed] = []
    start = 1
    while profile is not None:
        parsed = parse(profile, words, start)
        levels.append(parsed)
        if not profile.commands and not profile.delegates:
            break
        value = _taken_for_a_subcommand(parsed)
        if value is None:
            profile, start = _subcommand(parsed)
        else:
            option = parsed.options[-1]
            parsed.options[-1] = option._replace(value=value.word, value_index=value.at)
            parsed.operands.clear()
            start = value.at + 1
    return levels


def _taken_for_a_subcommand(parsed: Parsed) -> Operand | None:
    """`tox --colored yes exec`: a word that no subcommand has, behind an option that no profile lists, is its value.

    What follows is then read as the subcommand, which knows more of its words than the one for any name.
    """
    commands, option = parsed.profile.commands, parsed.options[-1] if parsed.options else None
    first = parsed.operands[0] if parsed.operands else None
    if option is None or first is None or "*" not in commands or first.word.literal in commands:
        return None
    listed = option.option.name in parsed.profile.options
    return None if listed or option.value is not None or option.at != first.at - 1 else first


def _subcommand(parsed: Parsed) -> tuple[Profile | None, int]:
    """The profile that the rest of the words is read by, and where it begins."""
    for found in parsed.options:
        if found.option.name in parsed.profile.delegates and found.value is not None and found.value.literal:
            return find_profile(found.value.text), (found.value_index or found.at) + 1
    first = parsed.operands[0] if parsed.operands else None
    if first is None or first.word.literal is None:
        return None, 0
    commands = parsed.profile.commands
    section = commands.get(first.word.text) or commands.get("*")
    if section is None:
        return None, 0
    profile = load_profile(section)
    is_program = profile.language == "project_program" and section.endswith("*")
    return profile, first.at if is_program else first.at + 1
