"""How the tests write commands down."""

import shlex
from collections.abc import Callable

import pytest

from ci_agent.policy.shell.analysis import analyse
from ci_agent.policy.shell.program import Command
from ci_agent.policy.words import Word

ENVIRONMENT = {"HOME": "/home/ci", "PWD": "/home/ci/project"}


def _write_word(word: Word) -> str:
    match word.kind:
        case "literal":
            return shlex.quote(word.text)
        case "glob":
            return f"edited({word.text})" if word.edits else f"glob({word.text})"
        case "choice":
            kind = "split-choice" if word.splits else "choice"
            return f"{kind}({' | '.join(map(_write_word, word.choices))})"
        case "unknown":
            ending = "pipe" if word.pipe else "words" if word.splits else "word"
            return f"{ending}({word.prefix}...)"


def _write_command(command: Command) -> str:
    folder = "" if command.folder == "" else f"[in {command.folder}] "
    assignments = (f"{assignment.name}={_write_word(assignment.value)}" for assignment in command.assignments)
    redirects = (f"{redirect.mode}:{_write_word(redirect.target)}" for redirect in command.redirects)
    function = ["(function)"] if command.function else []
    return folder + " ".join((*assignments, *map(_write_word, command.words), *redirects, *function))


@pytest.fixture(scope="session")
def commands() -> Callable[[str], list[str]]:
    """The commands of a text, each in one line: `[in FOLDER] NAME=VALUE words mode:file`."""
    return lambda text: [_write_command(command) for command in analyse(text, ENVIRONMENT).commands]
