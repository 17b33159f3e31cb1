"""Errors for a person, as every command prints them."""

import io
import sys
import traceback
from contextlib import suppress

import click

from ci_agent.cli.streams import write_stream
from ci_agent.errors import CIAgentError
from ci_agent.terminal import inert_lines, printable


def show_error(error: CIAgentError) -> None:
    """A line on stderr for each line of the error, harmless to a terminal and to GitHub's runner.

    When nobody can take it the exit code has to do.
    """
    with suppress(OSError):
        write_stream(sys.stderr, [f"ci-agent: {printable(line)}\n" for line in str(error).splitlines()])


def show_usage_error(error: click.ClickException) -> None:
    """click's own words, which repeat what stood on the command line, as harmless."""
    text = io.StringIO()
    error.show(text)
    show_lines(text.getvalue())


def show_lines(text: str) -> None:
    """Lines of any origin on stderr, harmless to a terminal and to GitHub's runner."""
    with suppress(OSError):
        write_stream(sys.stderr, [inert_lines(text)])


def show_traceback(error: Exception) -> None:
    """Of a bug; its message may be anybody's text."""
    show_lines("".join(traceback.format_exception(error)))
