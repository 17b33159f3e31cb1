"""What to say when a path names nothing, or not what was meant: names close to it, if the model may read them."""

import difflib
import os
import stat
from itertools import islice
from pathlib import Path

from ci_agent.errors import ToolError
from ci_agent.terminal import printable
from ci_agent.tools.file_access import FileAccess, FileEffect, kind_of, open_folder, os_errors_explained

_MAX_NAMES = 2_000


def require_existence(files: FileAccess, path: Path, effect: FileEffect) -> None:
    """ToolError when nothing is at the resolved path, and when the policy does not even let one know.

    `effect` is what is about to happen to the path.
    """
    files.require(effect, path)
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ToolError(f"{files.show(path)} does not exist. {_suggestion(files, path, effect)}") from error
    except OSError:
        return  # opening it will say what is wrong


def require_folder(files: FileAccess, path: Path) -> None:
    """ToolError unless the resolved path is a folder whose names may be listed."""
    require_existence(files, path, "list")
    with os_errors_explained(files, path, "cannot be listed"):
        mode = os.lstat(path).st_mode
    if not stat.S_ISDIR(mode):
        raise ToolError(f"{files.show(path)} is {kind_of(mode)}, not a folder.")


def _suggestion(files: FileAccess, path: Path, effect: FileEffect) -> str:
    if not os.path.lexists(path.parent):
        return f"Its folder {files.show(path.parent)} does not exist either; look with ls or find."
    if not os.path.isdir(path.parent):
        return f"{files.show(path.parent)} is not a folder."
    close = difflib.get_close_matches(path.name, _permitted_names(files, path.parent, effect), n=3)
    if not close:
        return "Look with ls or find."
    return f"Did you mean {', '.join(printable(name) for name in close)}?"


def _permitted_names(files: FileAccess, folder: Path, effect: FileEffect) -> list[str]:
    try:
        with open_folder(files, folder) as descriptor, os.scandir(descriptor) as entries:
            names = [entry.name for entry in islice(entries, _MAX_NAMES)]
    except ToolError:
        return []
    return [name for name in names if files.permits(effect, folder / name)]
