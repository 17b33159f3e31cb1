"""The folder that the shell is in, as `cd` changes it."""

from typing import Final, NamedTuple, TypeAlias

from ci_agent.policy.shell.variables import Variables
from ci_agent.policy.words import Word

Folder: TypeAlias = str | None
"""A path as written, relative to where the program starts (`""`: there); None: not known."""

UNREACHABLE: Final = "\0"
"""Stands for the folder of a place that is never reached."""


def join(one: Folder, other: Folder) -> Folder:
    """Where the shell is when it may have come from either."""
    if other in {one, UNREACHABLE}:
        return one
    return other if one == UNREACHABLE else None


class Outcome(NamedTuple):
    """The folder that the shell is in after success, and after failure."""

    success: Folder
    failure: Folder

    @property
    def either(self) -> Folder:
        return join(self.success, self.failure)


def change_folder(folder: Folder, arguments: tuple[Word, ...], variables: Variables) -> Folder:
    """Where a `cd` that succeeds leads from `folder`."""
    operands = arguments[1:] if arguments and arguments[0].literal == "--" else arguments
    if not operands:
        return _home(variables)
    target = operands[0].literal
    if len(operands) > 1 or not target or target.startswith("-"):
        return None
    if variables.environment.get("CDPATH") and not target.startswith(("/", "./", "../")):
        return None
    return _enter(folder, target)


def _home(variables: Variables) -> Folder:
    home = variables.literal("HOME")
    return home if home and home.startswith("/") else None


def _enter(folder: Folder, target: str) -> Folder:
    """Bash takes `..` off the path as written, but off the real path when that does not exist: only a `..` that leads
    back to where the shell has come from is certain."""
    names = [name for name in target.split("/") if name not in {"", "."}]
    if target.startswith("/"):
        return None if ".." in names else "/" + "/".join(names)
    if folder is None or folder == UNREACHABLE:
        return None
    if ".." not in names:
        return "/".join(filter(None, (folder.rstrip("/"), *names))) if folder != "/" else "/" + "/".join(names)
    here = folder.strip("/").split("/") if folder.strip("/") else []
    if set(names) != {".."} or len(names) > len(here):
        return None
    return ("/" if folder.startswith("/") else "") + "/".join(here[: len(here) - len(names)])
