"""Errors for a person, as every command prints them."""

import io
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

import click

from ci_agent.cli.streams import write_stream
from ci_agent.errors import CIAgentError
from ci_agent.terminal import inert_lines, printable

Hide = Callable[[str], str]
"""Takes secrets out of a text."""


def hide_secrets_of(environment: Mapping[str, str]) -> Hide:
    """For errors of a command that may not have come so far as to know its secrets."""
    return partial(_hide, environment)


def _hide(environment: Mapping[str, str], text: str) -> str:
    from ci_agent.transcript.redact import Redactor  # noqa: PLC0415 - for errors alone; commands start faster without
    from ci_agent.transcript.secret_sources import collect_secrets  # noqa: PLC0415 - as above

    return Redactor(collect_secrets(environment)).text(text)


def show_error(error: CIAgentError, hide: Hide = str) -> None:
    """A line on stderr for each line of the error, harmless to a terminal and to GitHub's runner.

    When nobody can take it the exit code has to do.
    """
    with suppress(OSError):
        text = "\n".join([str(error), *notes_of(error)])
        write_stream(sys.stderr, [f"ci-agent: {printable(line)}\n" for line in hide(text).splitlines()])


def show_usage_error(error: click.ClickException, hide: Hide = str) -> None:
    """click's own words, which repeat what stood on the command line, as harmless."""
    text = io.StringIO()
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        del error.possibilities[1:]  # the first is the nearest; click would sort them by the alphabet
    error.show(text)
    text.writelines(f"{note}\n" for note in notes_of(error))
    show_lines(hide(text.getvalue()))


def notes_of(error: Exception) -> list[str]:
    """Lines that were added to the error, for whom it concerns."""
    return getattr(error, "__notes__", [])


def show_lines(text: str) -> None:
    """Lines of any origin on stderr, harmless to a terminal and to GitHub's runner."""
    with suppress(OSError):
        write_stream(sys.stderr, [inert_lines(text)])


def show_traceback(error: Exception, hide: Hide = str) -> None:
    """Of a bug; its message may be anybody's text."""
    show_lines(hide("".join(traceback.format_exception(error))))
