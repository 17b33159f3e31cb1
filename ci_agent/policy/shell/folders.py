"""The folder that the shell is in, as `cd` changes it."""

from typing import Final, NamedTuple, TypeAlias

from ci_agent.policy.shell.program import IsAbsent
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


def change_folder(folder: Folder, arguments: tuple[Word, ...], variables: Variables, is_absent: IsAbsent) -> Folder:
    """Where a `cd` that succeeds leads from `folder`."""
    operands = arguments[1:] if arguments and arguments[0].literal == "--" else arguments
    if not operands:
        return _home(variables)
    if len(operands) > 1 or operands[0].splits or operands[0].literal == "":
        return None
    targets = [word for word in operands[0].choices or operands if not (word.failed and is_absent(word.text))]
    start = variables.environment.get("PWD", "")
    reached = {_from_start(_reached(folder, word.literal, variables), start) for word in targets}
    return reached.pop() if len(reached) == 1 else None


def _reached(folder: Folder, target: str | None, variables: Variables) -> Folder:
    """Where one of the values leads; an empty one leaves the shell where it is, whether it is an error or not."""
    if target is None or target.startswith("-") or (not target and folder == UNREACHABLE):
        return None
    if variables.environment.get("CDPATH") and not target.startswith(("/", "./", "../")):
        return None
    return _enter(folder, target) if target else folder


def _from_start(folder: Folder, start: str) -> Folder:
    """The same place has the same text, however it was spelled."""
    if not folder or not start or folder == UNREACHABLE:
        return folder
    return "" if folder == start else folder.removeprefix(f"{start}/")


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
