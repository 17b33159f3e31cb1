"""Child processes: their environment, their output, their end, and that nothing of them stays behind.

Tools start programs through `Processes.run` and in no other way.
"""

from ci_agent.process.capture import HeadAndTail, Output
from ci_agent.process.environment import child_environment, refuse_never_passed
from ci_agent.process.listener import OnOutput
from ci_agent.process.processes import Processes, open_processes
from ci_agent.process.result import ProcessCancelled, ProcessResult

__all__ = [
    "HeadAndTail",
    "OnOutput",
    "Output",
    "ProcessCancelled",
    "ProcessResult",
    "Processes",
    "child_environment",
    "open_processes",
    "refuse_never_passed",
]
