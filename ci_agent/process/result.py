"""How a command ended."""

from dataclasses import dataclass

from ci_agent.cancellation import Cancelled
from ci_agent.process.capture import Output


@dataclass(frozen=True, slots=True)
class ProcessResult:
    exit_status: int | None
    """None: a signal ended it."""
    signal: int | None
    timed_out: bool
    duration_s: float
    output: Output
    """What was written to stdout, and to stderr in the order of writing unless that was to be separate."""
    stderr: Output | None
    """None: it is in `output`."""
    left_background: bool
    """Something that it had started was still running when it ended, and has been killed."""
    killed_because: str | None = None
    """Why it was killed, with all that it had started, for something that it did; None: it was not."""


class ProcessCancelled(Cancelled):
    """The program was ended because its token was cancelled."""

    def __init__(self, reason: str, result: ProcessResult) -> None:
        super().__init__(reason)
        self.result = result
