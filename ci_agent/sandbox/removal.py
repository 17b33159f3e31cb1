"""Removing a folder with whatever commands have left in it, however deep, long or locked that is."""

import os
import secrets
import stat
from contextlib import suppress
from itertools import count
from pathlib import Path


def remove_tree(top: Path) -> None:
    """As far as that can be done, and without following links. For a folder that nobody uses any more.

    Each folder within is moved to the top before it is emptied. So there is no depth at which calls nest too deep or a
    path becomes too long, as there is for `shutil.rmtree`: a command makes five thousand levels in a moment.
    """
    prefix = secrets.token_hex(8)
    places = (str(top / f"{prefix}-{number}") for number in count())
    waiting = [str(top)]
    while waiting:
        folder = waiting.pop()
        for path in _entries(folder):
            if os.path.isdir(path) and not os.path.islink(path):
                _unlock(path)  # or else it cannot be moved, for its own `..` changes
                place = next(places)
                with suppress(OSError):
                    os.rename(path, place)
                    waiting.append(place)
            else:
                with suppress(OSError):
                    os.unlink(path)
        with suppress(OSError):
            os.rmdir(folder)
    with suppress(OSError):
        os.rmdir(top)


def _entries(folder: str) -> list[str]:
    _unlock(folder)
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def _unlock(folder: str) -> None:
    """Some tools lock their folders against their own user (Go's module cache)."""
    with suppress(OSError):
        os.chmod(folder, stat.S_IRWXU)
