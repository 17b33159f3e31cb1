"""Bash text to every simple command, redirection and assignment that bash might run, or a refusal."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from ci_agent.policy.shell.follow import Follower
from ci_agent.policy.shell.grammar import read_program
from ci_agent.policy.shell.program import BoundExceededError, ShellProgram, UnparsableError
from ci_agent.policy.shell.reader import CONTROL, Notes, Reader, Unit
from ci_agent.policy.shell.second_reading import check_agreement
from ci_agent.policy.shell.variables import Variables

MAX_BYTES = 256 * 1024

Dialect = Literal["bash", "posix"]

_NOTHING: Mapping[str, str] = {}


def analyse(text: str, environment: Mapping[str, str] = _NOTHING, dialect: Dialect = "bash") -> ShellProgram:
    """What the shell might run for `bash -c text`.

    `environment` holds the variables whose values may be relied on (`HOME`, `PWD`); all others are unknown. `posix` is
    for `sh -c text`, where nobody knows which shell `sh` is: only what all of them read alike is understood.
    Raises UnparsableError for what is not understood with certainty, BoundExceededError for what is too large.
    """
    _check_characters(text)
    try:
        return _analyse(text, environment, dialect)
    except RecursionError:
        # Whoever asks stands deep in the stack: what is understood must not depend on that.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(_analyse, text, environment, dialect).result()


def _analyse(text: str, environment: Mapping[str, str], dialect: Dialect) -> ShellProgram:
    notes = Notes(posix=dialect == "posix")
    reader = Reader(text, 0, len(text), notes)
    program = read_program(reader)
    if reader.position < reader.end:
        reader.fail_at_token()
    for name in notes.arrays & notes.declared:
        raise UnparsableError(f"a plain value for the array {name}", (0, len(text)))
    for name, most in notes.readonly.items():
        if notes.assigned.get(name, 0) > most:
            raise UnparsableError(f"another value for {name}, which is read-only", (0, len(text)))
    for name in notes.functions & notes.unset:
        raise UnparsableError(f"`unset` of the function {name}", (0, len(text)))
    check_agreement([Unit(text, 0, len(text), reader.roles, reader.masks, False, None), *notes.units])
    follower = Follower(text, notes, Variables(notes, environment))
    follower.run_sequence(program, None if notes.function_moves else "")
    return ShellProgram(tuple(follower.commands))


def _check_characters(text: str) -> None:
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BoundExceededError(f"more than {MAX_BYTES} bytes")
    if match := CONTROL.search(text):
        raise UnparsableError(f"the control character {match[0]!r}", match.span())
