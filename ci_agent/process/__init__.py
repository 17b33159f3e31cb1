"""Child processes: their environment, their output, their end, and that nothing of them stays behind.

Tools start programs through `run_process` and in no other way.
"""

from ci_agent.process.calls import become_subreaper, kill_all_descendants
from ci_agent.process.capture import HeadAndTail, Output
from ci_agent.process.child import ProcessCancelled, ProcessResult, run_process
from ci_agent.process.environment import child_environment, refuse_never_passed
from ci_agent.process.listener import OnOutput

__all__ = [
    "HeadAndTail",
    "OnOutput",
    "Output",
    "ProcessCancelled",
    "ProcessResult",
    "become_subreaper",
    "child_environment",
    "kill_all_descendants",
    "refuse_never_passed",
    "run_process",
]
