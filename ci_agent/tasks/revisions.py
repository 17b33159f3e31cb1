"""Whether the revisions that a run is to look at are there: without them each of its git commands would fail."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ci_agent.errors import ConfigurationError
from ci_agent.git_files import git_command, git_environment
from ci_agent.tasks.document import InputModel
from ci_agent.tasks.inputs import Value

_WITHIN_S: Final = 30.0


def require_revisions(
    inputs: Mapping[str, InputModel], values: Mapping[str, Value], workspace: Path, file: str
) -> None:
    """ConfigurationError for an input of the type `revision` that is no commit in the workspace's repository."""
    for name, spec in inputs.items():
        if spec.type == "revision" and not _is_commit(str(values[name]), workspace):
            raise ConfigurationError(
                f"{file}: there is no revision {values[name]!r} in {os.path.abspath(workspace)!r}: give another with "
                f"--input {name}=..., or fetch it first (actions/checkout needs fetch-depth: 0)"
            )


def _is_commit(revision: str, workspace: Path) -> bool:
    argv = git_command("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    environment = git_environment(os.environ, but_not=workspace)
    try:
        done = subprocess.run(argv, cwd=workspace, env=environment, capture_output=True, check=False, timeout=_WITHIN_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"git cannot be asked for the revision {revision!r}: {error}") from error
    return done.returncode == 0
