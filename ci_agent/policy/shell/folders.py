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
    if len(operands) > 1 or operands[0].splits or operands[0].literal == "":
        return None
    reached = [_reached(folder, word.literal, variables) for word in operands[0].choices or operands]
    start = variables.environment.get("PWD", "")
    same = len({_from_root(each, start) for each in reached}) == 1
    return reached[0] if same else None


def _reached(folder: Folder, target: str | None, variables: Variables) -> Folder:
    """Where one of the values leads; an empty one leaves the shell where it is, whether it is an error or not."""
    if target is None or target.startswith("-") or (not target and folder == UNREACHABLE):
        return None
    if variables.environment.get("CDPATH") and not target.startswith(("/", "./", "../")):
        return None
    return _enter(folder, target) if target else folder


def _from_root(folder: Folder, start: str) -> Folder:
    return folder if folder is None or folder.startswith("/") else f"{start}/{folder}".rstrip("/")


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
