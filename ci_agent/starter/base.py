"""The revision that changes of a repository are compared with, as far as its clone tells."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ci_agent.git_files import git_command, git_environment

USUAL: Final = "origin/main"

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_WITHIN_S: Final = 10.0


def find_base(folder: Path) -> str:
    """What `origin` has as its default branch; else what the current branch follows, else what is there of the usual
    names; `origin/main` when nothing tells."""
    found = (name for name in _candidates(folder) if _NAME.fullmatch(name))
    return next(found, USUAL)


def _candidates(folder: Path) -> Iterator[str]:
    yield _ask_git(folder, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    for name in ("origin/main", "origin/master"):
        yield name if _ask_git(folder, "rev-parse", "--verify", "--quiet", f"refs/remotes/{name}") else ""
    yield _ask_git(folder, "rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}")
    if _ask_git(folder, "remote"):
        return
    for name in ("main", "master"):
        yield name if _ask_git(folder, "rev-parse", "--verify", "--quiet", f"refs/heads/{name}") else ""


def _ask_git(folder: Path, *arguments: str) -> str:
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
