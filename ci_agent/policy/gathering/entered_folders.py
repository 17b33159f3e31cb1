"""In which folder the commands behind a `cd` run."""

import os
from pathlib import Path

from ci_agent.policy.gathering.reading import Reading
from ci_agent.policy.gathering.site import Site
from ci_agent.workspace import InvalidPathError


def entered_folder(reading: Reading, start: Path | None, folder: str | None) -> tuple[Path | None, str | None]:
    """The folder, found out once for all the commands that run there; with None, why it is not known."""
    known = reading.folders.get((start, folder))
    if known is None:
        reading.budget.spend_path(folder or "")
        known = reading.folders[start, folder] = _enter(reading.site, start, folder)
    return known


def _enter(site: Site, start: Path | None, folder: str | None) -> tuple[Path | None, str | None]:
    if folder == "" and start is not None:
        return start, None
    if folder is None or (start is None and not folder.startswith("/")):
        return None, "in which folder it runs is not known; join `cd` and what follows it with &&"
    try:
        where = os.path.join(start or "/", folder)
        reached = site.workspace.resolve(where)
        # `cd a/..` goes back by name, even when `a` is a link: bash remembers the way that it came.
        plain = os.path.normpath(where)
        if plain != where and site.workspace.resolve(plain) != reached:
            return None, f"where cd leads with {folder!r} depends on the shell"
    except InvalidPathError as error:
        return None, str(error)
    return reached, None
