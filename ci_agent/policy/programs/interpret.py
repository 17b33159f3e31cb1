"""From the words of a simple command to its effects, by the profile of its program."""

import re
from collections.abc import Sequence
from itertools import chain, product
from math import prod
from typing import Literal, assert_never

from ci_agent.policy.effects import Effects, UrlUse
from ci_agent.policy.programs.draft import (
    Draft,
    is_plain_name,
    is_version,
    reaches_no_file,
    use_anything,
    use_at,
    use_named,
    use_source,
)
from ci_agent.policy.programs.languages import find_reader
from ci_agent.policy.programs.languages.contents import read_printed
from ci_agent.policy.programs.languages.launchers import doubt_shell_text
from ci_agent.policy.programs.levels import parse_levels
from ci_agent.policy.programs.load import find_profile
from ci_agent.policy.programs.operands import apply_operands
from ci_agent.policy.programs.options import begins_option
from ci_agent.policy.programs.packages import use_package, use_repository_name
from ci_agent.policy.programs.parsed import Found, Parsed
from ci_agent.policy.programs.profile import HAZARDS, Meaning
from ci_agent.policy.programs.together import together
from ci_agent.policy.programs.unprofiled import without_profile
from ci_agent.policy.words import Word, literal_word

_FOLDERS_FOR_PROGRAMS = frozenset({"bin", ".bin", "sbin", "Scripts"})

_FOLDERS_ADD_UP = frozenset({"make", "ruby"})
"""To these, a second `-C` is relative to the first; to others it may stand in its place."""

_OF_PACKAGES = frozenset({"npm", "npx", "pnpm", "bun"})
_SHELL_MODE = ("-c", "--shell-mode")
_ANOTHER_FOLDER = frozenset({"--prefix", "-C"})
_OTHER_FOLDERS = frozenset(
    ("-w", "--workspace", "-ws", "--workspaces", "-r", "--recursive", "-F", "--filter", "--filter-prod")
)
"""With these, npm and pnpm start a command in the folder of each workspace."""

_COUNT = re.compile(r"[01]?")
"""What stands for a number, or for nothing."""

MAX_ALTERNATIVES = 64
"""How many combinations of a loop's values are tried one by one when the command depends on them."""

MAX_WORDS_TRIED = 10_000
"""How many words all these combinations may have together."""


def interpret(words: Sequence[Word], *, input_names: tuple[Word, ...] | None = None) -> Effects:
    """What running the words would do.

    `input_names` says what is known of the lines on standard input, for `xargs`: they are paths of files at or
    beneath these (`names_printed` of the command before the pipe); None: nothing is known.
    """
    words = tuple(words)
    effects = _interpret(words, input_names)
    if [word for word in words[1:] if word.splits and _may_be_none(word)]:
        effects = together([effects, _without_names(words, input_names)])
    if effects.problem is None:
        return effects
    if any(word.kind == "choice" for word in words):
        return _each_alternative(words, input_names) or effects
    if any(map(_is_option_with_number, words)):
        return _with_numbers(words, input_names) or effects
    return effects


def _is_option_with_number(word: Word) -> bool:
    """`-j$(nproc)`: a count, or nothing, behind the beginning of an option."""
    return word.prefix.startswith("-") and word.kind == "unknown" and not word.splits and bool(word.stand_ins)


def _with_numbers(words: tuple[Word, ...], input_names: tuple[Word, ...] | None) -> Effects | None:
    """The effects with one number in place of any, as long as no file is called after it; None: that may not be."""
    options = [word for word in words if _is_option_with_number(word)]
    if not all(_COUNT.fullmatch(text[len(word.prefix) :]) for word in options for text in word.stand_ins):
        return None
    tried = tuple(_as_choice(word) if word in options else word for word in words)
    effects = _each_alternative(tried, input_names)
    if effects is None or effects.commands or effects.scripts:
        return None
    used = [*(use.path for use in effects.files), *(use.url for use in effects.urls), *effects.anything]
    used += [effects.folder] if effects.folder is not None else []
    return None if {each.span for each in used} & {word.span for word in options} else effects


def _as_choice(word: Word) -> Word:
    return Word("choice", word.text, word.span, tuple(literal_word(text, word.span) for text in word.stand_ins))


def _may_be_none(word: Word) -> bool:
    """A list of names that may be empty: without them some programs take the whole folder."""
    return word.splits and bool(word.beneath) and not word.some


def _without_names(words: tuple[Word, ...], input_names: tuple[Word, ...] | None) -> Effects:
    kept = [at for at, word in enumerate(words) if at == 0 or not _may_be_none(word)]
    effects = _interpret(tuple(words[at] for at in kept), input_names)
    return effects._replace(
        hazards=tuple((kept[at], why) for at, why in effects.hazards),
        looked_through=tuple(kept[at] for at in effects.looked_through),
        may_be_options=tuple(kept[at] for at in effects.may_be_options),
        code=tuple((kept[at], begins) for at, begins in effects.code),
    )


def _installed(word: Word) -> Word | None:
    """The name of a program with a profile that is spelled in a folder for programs: `.venv/bin/ruff`,
    `node_modules/.bin/eslint`, `/opt/node/bin/npm`; the workspace's own `bin/test` is a script of any kind."""
    folder, _, name = word.text.rpartition("/")
    above, _, last = folder.rpartition("/")
    found = last in _FOLDERS_FOR_PROGRAMS and above not in ("", ".") and find_profile(name) is not None
    return literal_word(name, word.span) if found else None


def _as(program: Word, words: tuple[Word, ...], input_names: tuple[Word, ...] | None) -> Effects:
    """What the words would do to the program of this name, as far as it goes: it may be any other. So a rule has to
    grant the program and each of its words, whatever the profile says."""
    effects = _interpret((program, *words[1:]), input_names)._replace(looked_through=(), transparent=False)
    return together([effects, without_profile(words)._replace(folder=effects.folder, known=effects.known)])


def _interpret(words: tuple[Word, ...], input_names: tuple[Word, ...] | None) -> Effects:
    if not words:
        return Effects()
    if words[0].kind != "literal":
        return Effects(known=False, problem=f"the program that {words[0].text} means is not known")
    levels = parse_levels(words)
    if not levels:
        installed = _installed(words[0])
        return without_profile(words) if installed is None else _as(installed, words, input_names)
    draft = Draft(input_names)
    draft.file_addresses = levels[0].profile.file_addresses
    for level in levels:
        _apply(level, draft, last=level is levels[-1])
    if levels[0].profile.name in _OF_PACKAGES:
        for found in chain.from_iterable(level.options for level in levels):
            _go_elsewhere(found, draft)
        if any(level.has(*_SHELL_MODE) for level in levels) and levels[0].profile.name == "pnpm":
            doubt_shell_text(draft, list(chain.from_iterable(command.words for command in draft.commands)))
    return draft.finished()


def _go_elsewhere(found: Found, draft: Draft) -> None:
    name = found.option.name
    if name in _OTHER_FOLDERS:
        draft.elsewhere.append(None)
        if draft.commands or draft.scripts:
            draft.hazard(found.at, "runs the command in other folders")
    elif name in _ANOTHER_FOLDER and found.option.meaning == "load" and found.value is not None:
        draft.elsewhere.append(found.value)


def _each_alternative(words: tuple[Word, ...], input_names: tuple[Word, ...] | None) -> Effects | None:
    """The effects of all combinations of the known values together; None when there are too many."""
    alternatives = [word.choices if word.kind == "choice" else (word,) for word in words]
    combinations = prod(map(len, alternatives))
    if combinations > MAX_ALTERNATIVES or combinations * len(words) > MAX_WORDS_TRIED:
        return None
    return together([_interpret(chosen, input_names) for chosen in product(*alternatives)])


def _apply(parsed: Parsed, draft: Draft, last: bool) -> None:
    """Add what the words of one level do."""
    profile = parsed.profile
    draft.problem = draft.problem or parsed.problem
    draft.may_be_options += parsed.may_be_options
    draft.transparent = profile.launches == "transparent"
    for found in parsed.options:
        _apply_option(found, draft)
    for index, why in parsed.disguised:
        draft.hazard(index, why)
    told = draft.folder is not None and profile.name not in _FOLDERS_ADD_UP
    if told and sum(found.option.meaning == "folder" for found in parsed.options) > 1:
        draft.doubt("several options say in which folder it works")
    if not last:
        return
    if profile.commands and parsed.operands:
        _apply_unknown_subcommand(parsed, draft)
        return
    apply_operands(parsed, draft)
    if profile.language is not None:
        find_reader(profile.language)(parsed, draft)
    if profile.prints is not None:
        read_printed(parsed, draft)
    if profile.starts_shell and not draft.commands and not draft.scripts:
        draft.doubt(f"the commands that the shell of {profile.name} reads from standard input are not known")


def _apply_unknown_subcommand(parsed: Parsed, draft: Draft) -> None:
    first, *others = parsed.operands
    if first.word.literal is None:
        draft.doubt(f"the command of {parsed.profile.name} that {first.word.text} means is not known")
    draft.hazard(first.at, f"is no command that the profile of {parsed.profile.name} knows")
    for operand in others:
        use_anything(draft, operand.word)
        begins = begins_option(parsed.profile, operand.word)
        if begins:
            draft.hazard(operand.at, HAZARDS["unlisted"])
        elif begins is None:
            draft.doubt(f"{operand.word.text} may be an option of {parsed.profile.name}")


def _apply_option(found: Found, draft: Draft) -> None:
    option, value, index = found.option, found.value, found.at
    if option.why is not None and not (value is not None and _is_harmless(option.meaning, value)):
        draft.hazard(index, option.why)
    if option.meaning in ("look", "look_folder"):
        draft.looked_through += [index] if found.value_index is None else [index, found.value_index]
    if value is not None:
        _apply_value(found, value, draft)
        if option.arity == "bare" and option.meaning == "data":
            use_anything(draft, value)  # who profiled it did not know of a value
        if option.meaning in ("load", "plugin") or (option.meaning in ("run", "version") and "/" in value.text):
            draft.code.append((index if found.value_index is None else found.value_index, found.value_offset))


def _is_harmless(meaning: Meaning, value: Word) -> bool:
    return (
        (meaning == "write" and reaches_no_file(value))
        or (meaning == "plugin" and is_plain_name(value))
        or (meaning == "version" and is_version(value))
    )


def _apply_value(found: Found, value: Word, draft: Draft) -> None:
    match found.option.meaning:
        case "data" | "code" | "reach" | "look" | "recursive" | "in_place" | "target":
            pass
        case "list" | "read" | "write" | "delete" as effect:
            draft.use(effect, value)
        case "load" | "names":
            draft.use("read", value)
        case "at":
            use_at(draft, value)
        case "named":
            use_named(draft, value)
        case "script":
            draft.script(value)
        case "source" | "package" | "repository" | "url" as kind:
            _use_address(kind, value, draft)
        case "folder" | "look_folder":
            draft.work_in(value)
        case "anything" | "unlisted" | "run" | "config" | "plugin" | "version":
            use_anything(draft, value)
        case _:
            assert_never(found.option.meaning)


def _use_address(kind: Literal["source", "package", "repository", "url"], value: Word, draft: Draft) -> None:
    if kind == "source":
        use_source(draft, value)
    elif kind == "package":
        use_package(draft, value)
    elif kind == "repository":
        use_repository_name(draft, value)
    else:
        draft.urls.append(UrlUse(value))
