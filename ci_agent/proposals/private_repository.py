"""git over the objects of a checkout and nothing else of it: no configuration, no hooks, no filters, no index.

Everything is written into a repository of our own, in a temporary folder; the checkout is left as it is.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ci_agent.git_files import git_command, git_environment

_TIMEOUT_S: Final = 60.0

_MAX_SHOWN_CHARS: Final = 500

_MAX_INDEX_BYTES: Final = 512 * 1024 * 1024

_CONFIG: Final = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tquotePath = false\n[gc]\n\tauto = 0\n"

_ATTRIBUTES: Final = "* -filter -ident\n"
"""These come before what any .gitattributes says: no program of a filter, no expansion of keywords."""


class GitError(Exception):
    """git could not do it; the message is fit for a person and for a model."""


@dataclass(frozen=True, slots=True)
class PrivateRepository:
    folder: Path
    top: Path
    """Of the checkout whose files are looked at."""
    head: str
    """The commit that is checked out there."""
    own_environment: Mapping[str, str] = field(repr=False)

    def git(
        self,
        *arguments: str,
        stdin: bytes = b"",
        max_bytes: int = 16 * 1024 * 1024,
        settings: Sequence[str] = (),
        more: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
    ) -> bytes:
        """What git prints; GitError when it fails, or prints more than `max_bytes`."""
        own = [argument for setting in settings for argument in ("-c", setting)]
        environment = {**git_environment(self.own_environment), "GIT_DIR": str(self.folder), **(more or {})}
        environment |= {"GIT_WORK_TREE": str(self.top), "GIT_ATTR_NOSYSTEM": "1", "HOME": str(self.folder)}
        argv = git_command(*own, *arguments)
        return _run(argv, self.top, environment, stdin, max_bytes, descriptors)

    def text(self, *arguments: str, stdin: bytes = b"") -> str:
        return self.git(*arguments, stdin=stdin).decode("utf-8", "replace").strip()


@contextmanager
def private_repository(checkout: Path, own_environment: Mapping[str, str]) -> Iterator[PrivateRepository]:
    """For the checkout that holds this folder; GitError when there is none, or no commit in it."""
    top, objects, index, exclude = _ask(checkout, own_environment, "--show-toplevel", *_PATHS)
    (head,) = _ask(checkout, own_environment, "--verify", "HEAD^{commit}")
    if len(head) != _SHA1_DIGITS:
        raise GitError("the repository names its objects by SHA-256, which is not supported")
    with tempfile.TemporaryDirectory(prefix="ci-agent-git-") as temporary:
        folder = Path(temporary) / "repository"
        _lay_out(folder, checkout / objects)
        _copy(checkout / index, folder / "index")
        _copy(checkout / exclude, folder / "info" / "exclude")
        yield PrivateRepository(folder, Path(top), head, own_environment)


_PATHS: Final = ("--git-path", "objects", "--git-path", "index", "--git-path", "info/exclude")
_SHA1_DIGITS: Final = 40


def _ask(checkout: Path, own_environment: Mapping[str, str], *arguments: str) -> list[str]:
    argv = git_command("rev-parse", *arguments)
    answer = _run(argv, checkout, git_environment(own_environment), b"", 65_536, ())
    return os.fsdecode(answer).rstrip("\n").split("\n")


def _lay_out(folder: Path, objects: Path) -> None:
    for name in ("objects/info", "refs/heads", "info"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    (folder / "config").write_text(_CONFIG)
    (folder / "info" / "attributes").write_text(_ATTRIBUTES)
    (folder / "objects" / "info" / "alternates").write_bytes(os.fsencode(os.path.realpath(objects)) + b"\n")


def _copy(source: Path, target: Path) -> None:
    """What a repository does not have, or has as something else than a file, it does not have for us."""
    if source.is_file() and not source.is_symlink() and source.stat().st_size <= _MAX_INDEX_BYTES:
        # With its time of change: by that git knows which entries may have changed after the index was written.
        shutil.copy2(source, target)


def _run(  # noqa: PLR0913, PLR0917 - a program and all that it gets
    argv: list[str],
    folder: Path,
    environment: dict[str, str],
    stdin: bytes,
    max_bytes: int,
    descriptors: Sequence[int],
) -> bytes:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        try:
            done = subprocess.run(
                argv,
                cwd=folder,
                env=environment,
                stdin=given,
                stdout=output,
                stderr=subprocess.PIPE,
                check=False,
                timeout=_TIMEOUT_S,
                pass_fds=descriptors,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitError(f"git cannot be run: {error}") from error
        if done.returncode != 0:
            why = done.stderr.decode("utf-8", "replace").strip()
            raise GitError(f"git does not do it: {why[:_MAX_SHOWN_CHARS] or f'exit status {done.returncode}'}")
        if output.tell() > max_bytes:
            raise GitError(f"git prints more than {max_bytes} bytes")
        output.seek(0)
        return output.read()
