"""Files of another revision, named `git:REV:PATH`: what a pull request cannot have changed.

Git is asked for one blob and runs nothing that the repository names: no hooks, filters, monitors or fetching.
"""

import os
import posixpath
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ci_agent.errors import ConfigurationError
from ci_agent.text_files import MAX_TEXT_FILE_BYTES, decode_text, read_text_file

PREFIX: Final = "git:"

_NAME: Final = re.compile(r"git:(?P<revision>[A-Za-z0-9][A-Za-z0-9_./@^~{}+-]*):(?P<path>[^:\0\n]+)")

_CHECKED_OUT: Final = re.compile(r"HEAD([~^]0|\^\{[a-z]*\}|@\{(0|now)\})*", re.IGNORECASE)

_COMMIT: Final = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")

_TIMEOUT_S: Final = 30.0

_SETTINGS: Final = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "protocol.ext.allow=never",
    "safe.bareRepository=explicit",  # a commit can hold the files of a bare repository, but no `.git`
    "core.warnAmbiguousRefs=true",
    "safe.directory=*",  # in a container the checkout often belongs to somebody else; nothing of it is run
)

_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}


def is_git_name(name: str) -> bool:
    return name.startswith(PREFIX)


def names_checkout(name: str) -> bool:
    """Whether it is `git:REV:PATH` of the very commit that is checked out, by the names that git has for it."""
    return is_git_name(name) and _CHECKED_OUT.fullmatch(_split(name)[0]) is not None


def read_named_file(name: str | Path, what: str, *, max_bytes: int = MAX_TEXT_FILE_BYTES) -> str:
    """The text of a file, or of `git:REV:PATH` in the repository of the current folder; raises as `read_text_file`."""
    if is_git_name(str(name)):
        return decode_text(_read_blob(str(name), what, max_bytes), str(name))
    return read_text_file(name, what, max_bytes=max_bytes)


def beside(name: str, other: str) -> str:
    """What `other` means in the file `name`: a path beside it, of the same revision if that is one."""
    if is_git_name(other) or other.startswith("/"):
        return other
    if not is_git_name(name):
        return _tidy(str(Path(name).parent / other))
    revision, path = _split(name)
    return f"{PREFIX}{revision}:{posixpath.normpath(posixpath.join(posixpath.dirname(path), other))}"


def _tidy(path: str) -> str:
    """Without `a/../`, where that is the same file: reports show it, and the pages they stand on compare text."""
    tidy = os.path.normpath(path)
    return tidy if os.path.realpath(tidy) == os.path.realpath(path) else path


def path_in(name: str) -> Path:
    """The path of a file or of `git:REV:PATH`; ConfigurationError for a name that is none."""
    return Path(_split(name)[1]) if is_git_name(name) else Path(name)


def _split(name: str) -> tuple[str, str]:
    found = _NAME.fullmatch(name)
    if found is None or ".." in found["revision"]:
        raise ConfigurationError(f"{name!r} names no file of a revision: write git:REV:PATH, such as git:HEAD~1:a.yml")
    path = posixpath.normpath(found["path"])
    if path.startswith(("/", "../")) or path == "..":
        raise ConfigurationError(f"{name!r} leads out of the repository: PATH is relative to its top")
    return found["revision"], path


def _read_blob(name: str, what: str, max_bytes: int) -> bytes:
    blob = ":".join(_split(name))
    if int(_ask_git(name, what, "cat-file", "-s", blob)) > max_bytes:
        raise ConfigurationError(f"cannot read the {what} {name!r}: it is larger than {max_bytes // 1024} KiB")
    return _ask_git(name, what, "cat-file", "blob", blob)


def _ask_git(name: str, what: str, *arguments: str) -> bytes:
    """What it prints.

    A name that several branches or tags have is refused: git would take the tag, or the local branch `origin/main`,
    and whoever proposes a change names its branch.
    """
    argv, environment = git_command(*arguments), git_environment(os.environ, but_not=_checkout())
    try:
        done = subprocess.run(argv, env=environment, capture_output=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"cannot read the {what} {name!r}: git cannot be run: {error}") from error
    if done.returncode != 0:
        why = done.stderr.decode("utf-8", "replace").strip().removeprefix("fatal: ")
        raise ConfigurationError(f"cannot read the {what} {name!r}: {why or 'git does not say why'}{_hint(why)}")
    if b"is ambiguous" in done.stderr:
        problem = "more than one branch or tag is called so; write git:refs/remotes/REV:PATH"
        raise ConfigurationError(f"cannot read the {what} {name!r}: {problem}")
    return done.stdout


def _checkout() -> Path:
    """The outermost working tree that the current folder is in, but not the root of all; that folder when it is in
    none."""
    here = Path.cwd()
    around = reversed((here, *here.parents[:-1]))
    return next((above for above in around if os.path.lexists(above / ".git")), here)


def find_commit(revision: str, folder: Path, own: Mapping[str, str]) -> str | None:
    """The id of the commit that a revision names in the repository around the folder; None: it names none there.

    `own`: our environment, for its PATH. OSError, or subprocess.TimeoutExpired, when git cannot be run.
    """
    done = subprocess.run(
        git_command("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"),
        cwd=folder,
        env=git_environment(own, but_not=folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    found = done.stdout.decode("ascii", "replace").strip()
    return found if done.returncode == 0 and _COMMIT.fullmatch(found) else None


def git_command(*arguments: str) -> list[str]:
    """git with settings that keep it from running what a repository names."""
    return ["git", *(argument for setting in _SETTINGS for argument in ("-c", setting)), *arguments]


def git_environment(own: Mapping[str, str], *, but_not: Path | None = None) -> dict[str, str]:
    """Nothing of our own but where programs are, and no folder of theirs that is relative to the current one, which may
    be a checkout, or lies in `but_not`: a GIT_DIR of a hook would lead to another repository."""
    folders = [folder for folder in own.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)]
    if but_not is not None:
        folders = [folder for folder in folders if not Path(os.path.realpath(folder)).is_relative_to(but_not.resolve())]
    return {**_ENVIRONMENT, "PATH": os.pathsep.join(folders)}


def _hint(why: str) -> str:
    if "invalid object name" in why or "Not a valid object name" in why or "bad revision" in why:
        return " (is the revision fetched? actions/checkout needs fetch-depth: 0)"
    return ""
