"""Bash text to every simple command, redirection and assignment that bash might run, or a refusal."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from ci_agent.policy.shell.follow import follow_program
from ci_agent.policy.shell.grammar import read_program
from ci_agent.policy.shell.program import BoundExceededError, Dialect, Disk, ShellProgram, UnparsableError
from ci_agent.policy.shell.reader import CONTROL, Notes, Reader, Unit
from ci_agent.policy.shell.second_reading import check_agreement

MAX_BYTES = 128 * 1024
"""As much as Linux takes in one argument of a program."""

_NOTHING: Mapping[str, str] = {}


_NO_DISK: Final = Disk(lambda *_: None, lambda *_: (), lambda _: False)


def analyse(
    text: str,
    environment: Mapping[str, str] = _NOTHING,
    dialect: Dialect = "bash",
    disk: Disk = _NO_DISK,
) -> ShellProgram:
    """What the shell might run for `bash -c text`.

    `environment` holds the variables whose values may be relied on (`HOME`, `PWD`); all others are unknown. `posix` is
    for `sh -c text`, where nobody knows which shell `sh` is: only what all of them read alike is understood.
    `disk` tells what a glob becomes, where a loop enters folders, and what some commands print; without it such
    loops are not understood, and such values not known.
    Raises UnparsableError for what is not understood with certainty, BoundExceededError for what is too large.
    """
    _check_characters(text)
    try:
        return _analyse(text, environment, dialect, disk)
    except RecursionError:
        # Whoever asks stands deep in the stack: what is understood must not depend on that.
        return _in_a_thread(partial(_analyse_bounded, text, environment, dialect, disk))


def _in_a_thread(analyse_it: Callable[[], ShellProgram]) -> ShellProgram:
    with ThreadPoolExecutor(1) as thread:
        try:
            answer = thread.submit(analyse_it)
        except RuntimeError as error:
            raise BoundExceededError(f"the nesting is too deep to be read here: {error}") from error
        return answer.result()


def _analyse_bounded(text: str, environment: Mapping[str, str], dialect: Dialect, disk: Disk) -> ShellProgram:
    try:
        return _analyse(text, environment, dialect, disk)
    except RecursionError:
        raise BoundExceededError("the nesting is too deep") from None


def _analyse(text: str, environment: Mapping[str, str], dialect: Dialect, disk: Disk) -> ShellProgram:
    notes = Notes(posix=dialect == "posix")
    reader = Reader(text, 0, len(text), notes, read_program)
    program = read_program(reader)
    if reader.position < reader.end:
        reader.fail_at_token()
    if problem := _find_conflict(notes):
        raise UnparsableError(problem, (0, len(text)))
    check_agreement([Unit(text, 0, len(text), reader.roles, reader.masks, False, None), *notes.units])
    return follow_program(program, text, notes, environment, disk)


def _find_conflict(notes: Notes) -> str | None:
    """What places far from each other in the text do to the same name, and must not."""
    for name in sorted(notes.arrays & notes.declared):
        return f"a plain value for the array {name}"
    for name in sorted(notes.functions & notes.unset):
        return f"`unset` of the function {name}"
    for name, most in notes.readonly.items():
        if notes.assigned.get(name, 0) > most:
            return f"another value for {name}, which is read-only"
    return None


def _check_characters(text: str) -> None:
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BoundExceededError(f"more than {MAX_BYTES} bytes")
    if match := CONTROL.search(text):
        raise UnparsableError(f"the control character {match[0]!r}", match.span())
