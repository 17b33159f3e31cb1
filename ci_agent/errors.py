"""The two worlds of errors: for the person who runs the command, and for the model.

A bug belongs to neither: it stays an ordinary exception, ends in a traceback and exit code 70.
"""

import errno
import os
from collections.abc import Sequence
from typing import Final

from ci_agent.json_types import JsonObject

EXIT_NEGATIVE: Final = 1
"""Of a command that did its work and has nothing good to tell: no error, and no success."""


class CIAgentError(Exception):
    """For the person: one line that says what is wrong, where, and what to do. Ends the command."""

    exit_code: int = 70


class ConfigurationError(CIAgentError):
    """A policy, script, schema, workspace or transcript location cannot be used. Raised before anything runs."""

    exit_code = 3


class MissingKeyError(ConfigurationError):
    """The model's server takes no request without a key, and none was given."""

    def __init__(self, provider: str, variables: Sequence[str]) -> None:
        """`variables`: those that may hold it, the usual one first."""
        self.problem = f"the provider {provider} needs a key"
        self.variables = variables
        way = f"set {' or '.join(variables)}, or, for --model itself, give a file with --api-key-file"
        super().__init__(f"{self.problem}: {way}")


class InvalidFileError(ConfigurationError):
    """A file that a person wrote is wrong at a known place; `str()` begins with `file:line:column: `."""

    def __init__(self, file: str, line: int, column: int, problem: str) -> None:
        super().__init__(f"{file}:{line}:{column}: {problem}")
        self.file = file
        self.line = line
        self.column = column
        self.problem = problem


class RecordError(CIAgentError):
    """The journal or the transcript cannot be written any more: the run must stop, the record is the product."""

    exit_code = 3


class BusyError(CIAgentError):
    """Another run holds this transcript or lock file."""

    exit_code = 8


class InternalError(CIAgentError):
    """A bug, once its traceback has been written where a person can find it; or the system gave out."""

    exit_code = 70


class ToolError(Exception):
    """For the model: why a tool could not do what was asked, and what would work. Becomes an error result."""

    def __init__(self, message: str, details: JsonObject | None = None) -> None:
        super().__init__(message)
        self.details = details
        """Structured facts for the record, as of a `ToolResult`."""


_REFUSALS: Final = frozenset(
    {
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.EAGAIN,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EROFS,
        errno.EIO,
    }
)


def system_refusal(error: BaseException) -> InternalError | None:
    """The error for a person when the system had no descriptor, thread, memory or space left; None: a bug."""
    if isinstance(error, OSError) and error.errno in _REFUSALS:
        where = f": {os.fsdecode(error.filename)!r}" if isinstance(error.filename, str | bytes) else ""
        return InternalError(f"the system refused what the command needs: {os.strerror(error.errno or 0)}{where}")
    if isinstance(error, MemoryError):
        return InternalError("the system refused what the command needs: no memory is left")
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return InternalError("the system refused what the command needs: another thread")
    return None
