"""A checkout with a commit, and hostile hands in it."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Git = Callable[..., str]

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{f"GIT_{who}_{what}": "x@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Runs git in the checkout, or in `folder`, and returns what it prints."""

    def call(*args: str, folder: Path | None = None) -> str:
        argv = ["git", "-c", "protocol.file.allow=always", *args]
        where = folder or tmp_path / "checkout"
        done = subprocess.run(argv, cwd=where, env=ENVIRONMENT, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    return call


@pytest.fixture
def checkout(tmp_path: Path, git: Git) -> Path:
    folder = tmp_path / "checkout"
    for name, text in {
        "src/a.py": "a = 1\n",
        "src/b.py": "b = 1\n",
        "README.md": "Hello\n",
        ".github/workflows/ci.yml": "on: push\n",
        ".gitignore": "ignored\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "all")
    return folder
