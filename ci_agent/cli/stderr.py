"""Errors for a person, as every command prints them."""

import sys

from ci_agent.errors import CIAgentError
from ci_agent.terminal import printable


def show_error(error: CIAgentError) -> None:
    """A line on stderr for each line of the error, harmless to a terminal and to GitHub's runner."""
    for line in str(error).splitlines():
        print(f"ci-agent: {printable(line)}", file=sys.stderr)
