"""The revision that changes of a repository are compared with, as far as its clone tells."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ci_agent.starter.clone import ask_git

USUAL: Final = "origin/main"

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")


def find_base(folder: Path) -> str:
    """What `origin` has as its default branch; else what the current branch follows, else what is there of the usual
    names; `origin/main` when nothing tells."""
    found = (name for name in _candidates(folder) if _NAME.fullmatch(name))
    return next(found, USUAL)


def _candidates(folder: Path) -> Iterator[str]:
    yield ask_git(folder, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    for name in ("origin/main", "origin/master"):
        yield name if ask_git(folder, "rev-parse", "--verify", "--quiet", f"refs/remotes/{name}") else ""
    yield ask_git(folder, "rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}")
    if ask_git(folder, "remote"):
        return
    for name in ("main", "master"):
        yield name if ask_git(folder, "rev-parse", "--verify", "--quiet", f"refs/heads/{name}") else ""
