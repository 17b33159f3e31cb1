"""Substitutions whose output the disk tells: the branch that is checked out, the top of the tree, a version."""

import re
from collections.abc import Container
from typing import Final

from ci_agent.policy.shell.printed_words import only_command, spelled_text
from ci_agent.policy.shell.program import Command, Question
from ci_agent.policy.shell.syntax import Sequence

_VERSION_FILE: Final = re.compile(r"(?!-)(?:[\w./-]*/)?(?:[\w.-]*version(?:\.txt)?|\.nvmrc)", re.IGNORECASE)
_MANIFEST: Final = re.compile(r"(?!-)(?:[\w./-]*/)?(?:package|composer|lerna)\.json")
_REQUIRED: Final = re.compile(r"""require\((['"])(\./[\w./-]+)\1\)\.(version|name)""")
_LOGGED: Final = re.compile(r"console\.log\((.+)\);?")
_NEW_BRANCH: Final = {"checkout": ("-b", "-B"), "switch": ("-c", "-C", "--create")}


def question(program: Sequence, functions: Container[str]) -> Question | None:
    """What the disk has to be asked to know what is printed; None: it would not tell."""
    command = only_command(program)
    if command is None or not command.words or command.words[0].plain in functions:
        return None
    match [spelled_text(word) for word in command.words]:
        case ["git", "branch", "--show-current"]:
            return Question("branch")
        case ["git", "rev-parse", "--abbrev-ref", "HEAD"] | ["git", "symbolic-ref", "--short", "HEAD"]:
            return Question("short branch")
        case ["git", "rev-parse", "--show-toplevel"]:
            return Question("top")
        case ["cat", str(file)] | ["head", "-1" | "-n1", str(file)] | ["head", "-n", "1", str(file)]:
            return Question("version", file) if _VERSION_FILE.fullmatch(file) else None
        case ["jq", "-r", ".version" | ".name" as key, str(file)] if _MANIFEST.fullmatch(file):
            return Question("version" if key == ".version" else "name", file)
        case ["node", "-p", str(code)]:
            return _required(code)
        case ["node", "-e", str(code)] if logged := _LOGGED.fullmatch(code):
            return _required(logged[1])
    return None


def _required(code: str) -> Question | None:
    match = _REQUIRED.fullmatch(code)
    if match is None or not _MANIFEST.fullmatch(match[2]):
        return None
    return Question("version" if match[3] == "version" else "name", match[2])


def new_branch(command: Command) -> str | None:
    """The branch that `git checkout -b NAME` and its like make and check out; None: it is no such command."""
    texts = [word.literal for word in command.words[:4]]
    if len(texts) < 4 or texts[0] != "git" or texts[2] not in _NEW_BRANCH.get(texts[1] or "", ()):
        return None
    return texts[3]
