"""Workspaces that nobody can have meant: where a service or a job without a folder of its own happens to start."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ci_agent.errors import ConfigurationError
from ci_agent.workspace import lies_in, real_path


def refuse_whole_machine(given: str) -> None:
    """ConfigurationError when the workspace is the root of the file system, unless an absolute path says so: the
    current folder is `/` wherever nobody has chosen one."""
    if not os.path.isabs(given) and _is_root(given):
        raise ConfigurationError(
            "the workspace would be /, the whole machine: name the folder of the project with --workspace DIR, or "
            "start in it (systemd: WorkingDirectory=). Where / is meant, say --workspace /"
        )


def holds_home(given: str, environment: Mapping[str, str]) -> str | None:
    """A warning when the home folder lies in a workspace that no absolute path names; None when it does not."""
    home = environment.get("HOME")
    if os.path.isabs(given) or not home or "\0" in given or not lies_in(real_path(home), real_path(given)):
        return None
    here, home = str(real_path(given)), str(real_path(home))
    what = f"your home folder {home}" if here == home else f"{here}, which holds your home folder"
    return f"the workspace is {what}, with all that lies there: name the folder of the project with --workspace DIR"


def _is_root(folder: str) -> bool:
    """Under each of its names: a mount may show the root once more, elsewhere."""
    with suppress(OSError, ValueError):
        return os.path.samestat(os.stat(Path(folder)), os.stat("/"))
    return False
