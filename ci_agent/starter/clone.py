"""What git says of a clone, in a line."""

import os
import subprocess
from pathlib import Path
from typing import Final

from ci_agent.git_files import git_command, git_environment

_WITHIN_S: Final = 10.0


def ask_git(folder: Path, *arguments: str) -> str:
    """Its line; empty when it has none to say."""
    try:
        done = subprocess.run(
            git_command(*arguments),
            cwd=folder,
            env=git_environment(os.environ),
            capture_output=True,
            text=True,
            check=False,
            timeout=_WITHIN_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
