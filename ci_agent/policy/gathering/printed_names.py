"""Which words of a program are names of files that another of its commands prints."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from ci_agent.policy.programs.input_left import leaves_input
from ci_agent.policy.programs.names import ends_names_by_nul, names_printed
from ci_agent.policy.shell.program import Command, LineLoop, Redirect, ShellProgram
from ci_agent.policy.words import Word, literal_word

_HARMLESS: Final = re.compile(r"LANG|LANGUAGE|LC_[A-Z]+|TZ")
"""Variables that do not change which names a program prints."""

_Known: TypeAlias = dict[int, tuple[Word, ...] | None]
"""What is known of the lines that a command prints, by its index."""


def input_names(commands: Sequence[Command], command: Command) -> tuple[Word, ...] | None:
    """What `xargs` will read from the pipe; of interest to it alone."""
    if command.reads_from is None or "xargs" not in [word.literal for word in command.words]:
        return None
    return _lines_of(commands, command.reads_from)


def with_names(program: ShellProgram) -> Iterable[Command]:
    """The commands, with what is known of the words that are lines of another one's output."""
    printers = {word.printed_by for command in program.commands for word in command.words}
    printers |= {redirect.target.printed_by for command in program.commands for redirect in command.redirects}
    return program.commands if printers <= {None} else _with_known_names(program)


def _with_known_names(program: ShellProgram) -> Iterator[Command]:
    interrupted = [loop for loop in program.loops if not _is_left_alone(program, loop)]
    known: _Known = {}
    for index, command in enumerate(program.commands):
        words = tuple(_with_names(program, word, index, interrupted, known) for word in command.words)
        redirects = tuple(_redirected(program, redirect, index, interrupted, known) for redirect in command.redirects)
        yield command._replace(words=words, redirects=redirects)


def _redirected(
    program: ShellProgram, redirect: Redirect, index: int, interrupted: Sequence[LineLoop], known: _Known
) -> Redirect:
    return redirect._replace(target=_with_names(program, redirect.target, index, interrupted, known))


def _with_names(program: ShellProgram, word: Word, index: int, interrupted: Sequence[LineLoop], known: _Known) -> Word:
    if word.printed_by is None or word.whole:
        return word
    cut = any(loop.printer == word.printed_by and loop.start <= index < loop.end for loop in interrupted)
    if word.printed_by not in known:
        known[word.printed_by] = _lines_of(program.commands, word.printed_by, by_shell=True)
    names = None if cut else known[word.printed_by]
    folder = program.commands[word.printed_by].folder
    if not names or program.commands[index].folder != folder:
        return word._replace(printed_by=None)
    return word._replace(beneath=names)


def _lines_of(commands: Sequence[Command], printer: int, *, by_shell: bool = False) -> tuple[Word, ...] | None:
    """The places at or beneath which every line of the output is; None when nothing of the kind is known."""
    chain = [commands[printer]]
    while (before := chain[-1].reads_from) is not None:
        chain.append(commands[before])
    names: tuple[Word, ...] | None = None
    for feeder in reversed(chain):
        as_usual = all(_HARMLESS.fullmatch(each.name) for each in feeder.assignments)
        if not (feeder.words and as_usual) or feeder.function or (by_shell and ends_names_by_nul(feeder.words)):
            return None
        names = names_printed(feeder.words, names)
    return names


def _is_left_alone(program: ShellProgram, loop: LineLoop) -> bool:
    """Whether no command of the loop takes a part of the lines: the next would begin in the middle of one."""
    body = program.commands[loop.start : loop.end]
    return all(
        not command.function and (_has_own_input(command) or leaves_input(_as_names(command.words, loop)))
        for command in body
    )


def _as_names(words: tuple[Word, ...], loop: LineLoop) -> tuple[Word, ...]:
    """The words with the lines of the loop as what they are if it is left alone: names of files."""
    here = (literal_word("."),)
    return tuple(word._replace(beneath=here) if word.printed_by == loop.printer else word for word in words)


def _has_own_input(command: Command) -> bool:
    return command.reads_from is not None or any(redirect.is_input for redirect in command.redirects)
