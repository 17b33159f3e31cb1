"""Commands that certainly leave their standard input alone."""

import re
from collections.abc import Sequence
from typing import Final

from ci_agent.policy.programs.levels import parse_levels
from ci_agent.policy.shell.static_words import word_set
from ci_agent.policy.words import Word

_NEVER_READ: Final = word_set(
    "echo printf test [ [[ true false : basename dirname mkdir touch rmdir ls stat chmod realpath readlink "
    "continue break exit shift cd sleep"
)
_ASK: Final = frozenset({"rm", "mv", "cp", "ln"})
"""They read answers when they are told to."""
_READ_WITHOUT_FILES: Final = word_set(
    "cat head tail wc sort uniq nl cut sha256sum md5sum grep egrep fgrep sed jq rg ruff mypy black shellcheck"
)
"""They read their input only where no file is named, or `-`."""
_OF_GIT: Final = word_set("add log diff show blame checkout restore rm mv ls-files")
_PLAIN_SED: Final = re.compile(r"[0-9]*(?:,[0-9$]+)?[pdq]|s/[^/\\\n]*/[^/\\\n]*/g?")


def leaves_input(words: Sequence[Word]) -> bool:
    """Whether a command reads nothing from standard input; without words there is none."""
    if not words:
        return True
    if any(word.kind != "literal" and not word.printed_by and not word.prefix for word in words[:1]):
        return False
    name, *texts = [word.literal if word.literal is not None else word.prefix for word in words]
    if any(
        (text[:1] == text[-1:] == "-" and text != "--") or "/dev/" in text or text.startswith("--stdin")
        for text in texts
    ):
        return False
    if name in _ASK:
        return not any(text.startswith("-") and "i" in text.lower() for text in texts)
    return name in _NEVER_READ or _reads_files(words)


def _reads_files(words: Sequence[Word]) -> bool:
    levels = parse_levels(words)
    if not levels or any(level.problem for level in levels):
        return False
    last = levels[-1]
    name = last.profile.name
    program, _, subcommand = name.partition(" ")
    if program == "git" and subcommand in _OF_GIT:
        return not any(found.option.name.startswith(("--pathspec-from", "--stdin")) for found in last.options)
    if program not in _READ_WITHOUT_FILES:
        return False
    scripted = "pattern" in last.profile.operands.leading or name in ("sed", "jq")
    if name == "sed" and not _PLAIN_SED.fullmatch((last.operands[0].word.literal or "") if last.operands else ""):
        return False
    return len(last.operands) > (1 if scripted else 0)
