"""A folder with the records of runs, a file for each, named by when they began; the oldest go."""

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from ci_agent.errors import BusyError, ConfigurationError, RecordError
from ci_agent.schedule.lock import hold_lock
from ci_agent.transcript.journal import JOURNAL_SUFFIX
from ci_agent.transcript.place import recover_killed

_NAME: Final = re.compile(
    rf"(?P<run>\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{{6}}Z-[0-9a-f]{{8}})\.json({re.escape(JOURNAL_SUFFIX)})?"
)


def new_transcript(folder: Path, now: datetime) -> Path:
    """The path of a record that is not there yet; sorted by name, records are sorted by time, to the microsecond."""
    return folder / f"{now:%Y-%m-%dT%H-%M-%S.%fZ}-{secrets.token_hex(4)}.json"


def remove_old_transcripts(folder: Path, keep: int) -> Iterator[str]:
    """Remove all but the newest `keep` runs' files; yields a line for each that stays although it should not. Raises
    OSError when the folder cannot be read.

    Only regular files that bear the names given here are touched, and none of a run that still goes on.
    """
    named = [found for name in sorted(os.listdir(folder)) if (found := _NAME.fullmatch(name))]
    old = sorted({found["run"] for found in named}, reverse=True)[keep:]
    for found in named:
        if found["run"] in old:
            try:
                _remove(folder / found[0])
            except (OSError, BusyError, ConfigurationError) as error:
                yield f"the old record {str(folder / found[0])!r} stays: {error}"


def recover_killed_runs(folder: Path) -> Iterator[str]:
    """Make the documents that killed runs have not; yields a line for each. Raises OSError when the folder cannot be
    read."""
    for name in sorted(os.listdir(folder)):
        path = folder / name
        if _NAME.fullmatch(name) and name.endswith(JOURNAL_SUFFIX) and _is_own(path):
            try:
                recovered = recover_killed(path.with_name(name.removesuffix(JOURNAL_SUFFIX)))
            except (OSError, ConfigurationError, RecordError) as error:
                yield f"an earlier run was killed, and there is no record of it but {str(path)!r}: {error}"
            else:
                yield from [] if recovered is None else [f"an earlier run was killed; its record is in {recovered}"]


def _is_own(path: Path) -> bool:
    """Not that of another user, whose runs are his affair."""
    with suppress(FileNotFoundError):  # its run has ended meanwhile
        status = path.lstat()
        return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    return False


def _remove(path: Path) -> None:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return
    if path.name.endswith(JOURNAL_SUFFIX):
        with hold_lock(path):  # a run holds its journal by the same lock
            path.unlink()
    else:
        path.unlink(missing_ok=True)
