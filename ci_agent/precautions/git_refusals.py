"""Whether git works in the workspace for commands: one that it refuses looks to a model like an empty repository."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.process import Processes, ProcessResult

_WITHIN_S: Final = 10.0


def why_git_refuses(
    workspace: Path, environment: Mapping[str, str], processes: Processes, cancel: CancelToken
) -> str | None:
    """What git says of the repository that the workspace lies in, and what to do; None: it works, there is no
    repository, or no git. `environment` is that of commands: their HOME says whom git trusts."""
    repository = next((folder for folder in (workspace, *workspace.parents) if os.path.lexists(folder / ".git")), None)
    if repository is None:
        return None
    try:
        answer = processes.run(
            ["git", "rev-parse", "--git-dir"],
            cwd=workspace,
            env={**environment, "LC_ALL": "C"},
            timeout_s=_WITHIN_S,
            cancel=cancel,
            separate_stderr=True,
        )
    except (ToolError, Cancelled):
        return None
    if answer.exit_status == 0:
        return None
    said = _first_line(answer)
    return f"git refuses to work in the workspace, so every git command will fail: {said}. {_remedy(said, repository)}"


def _first_line(answer: ProcessResult) -> str:
    if answer.timed_out:
        return f"it does not answer within {_WITHIN_S:g} s"
    printed = os.fsdecode(answer.stderr.head if answer.stderr else b"").strip()
    return printed.splitlines()[0].removeprefix("fatal: ") if printed else f"exit status {answer.exit_status}"


def _remedy(said: str, repository: Path) -> str:
    if "dubious ownership" not in said:
        return f"Look at {repository / '.git'}, or check the repository out again"
    trust = f"git config --global --add safe.directory {shlex.quote(str(repository))}"
    return f"It belongs to another user: run ci-agent as its owner, or first `{trust}` with the HOME of the run"
