"""Whether the revisions that a run is to look at are there: without them each of its git commands would fail."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ci_agent.errors import ConfigurationError
from ci_agent.git_files import find_commit
from ci_agent.tasks.document import InputModel
from ci_agent.tasks.inputs import Value


def require_revisions(
    inputs: Mapping[str, InputModel], values: Mapping[str, Value], workspace: Path, file: str
) -> None:
    """ConfigurationError for an input of the type `revision` that is no commit in the workspace's repository."""
    asked = [name for name, spec in inputs.items() if spec.type == "revision"]
    if asked and not is_in_a_repository(workspace):
        raise ConfigurationError(
            f"{file} needs the history of {os.path.abspath(workspace)!r} for its input {asked[0]}, and no git "
            "repository is there: run it in a clone, or name one with --workspace"
        )
    for name in asked:
        if not _is_commit(str(values[name]), workspace):
            raise ConfigurationError(
                f"{file}: there is no revision {values[name]!r} in {os.path.abspath(workspace)!r}: give another with "
                f"--input {name}=..., or fetch it first (actions/checkout needs fetch-depth: 0)"
            )


def is_in_a_repository(folder: Path) -> bool:
    """Whether the folder, which need not be there yet, lies in a working tree of git."""
    here = folder.resolve()
    return any(os.path.lexists(above / ".git") for above in (here, *here.parents))


def _is_commit(revision: str, workspace: Path) -> bool:
    try:
        return find_commit(revision, workspace, os.environ) is not None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"git cannot be asked for the revision {revision!r}: {error}") from error
