"""Why a program cannot be started, for the model."""

import errno
import os

from ci_agent.errors import ToolError


def not_started(program: str, error: OSError) -> ToolError:
    return ToolError(f"{program} cannot be started: {_reason(error)}")


def _reason(error: OSError) -> str:
    if error.errno == errno.E2BIG:
        return "the command and its environment are longer than the system accepts"
    where = f": {os.fsdecode(error.filename)}" if error.filename else ""
    return f"{os.strerror(error.errno) if error.errno else error}{where}"
