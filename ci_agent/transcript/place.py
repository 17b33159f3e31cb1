"""Where the record of a run stands: found out before it starts, opened, and left in order at its end."""

import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ci_agent.errors import BusyError, ConfigurationError, RecordError
from ci_agent.json_types import JsonObject
from ci_agent.transcript.document import (
    RECORD_MODE,
    build_document,
    document_chunks,
    remove_leftovers,
    sync_folder,
    write_document,
)
from ci_agent.transcript.journal import JOURNAL_SUFFIX, PRODUCT_SUFFIX, Journal, open_journal_file
from ci_agent.transcript.journal_lines import JournalContents
from ci_agent.transcript.rescue import FinishedRecord, Render, save_record
from ci_agent.transcript.room import give_back_room

_FIRST_BYTES = b'{"seq":1,"prev":"'


@dataclass(frozen=True, slots=True)
class Place:
    """Absolute paths, their folders free of symlinks. None of them may be touched by a tool."""

    journal: Path
    document: Path | None = None
    """None: no document is asked for."""
    folder: Path | None = None
    """The private folder of a journal that nobody asked for; made when it is opened."""

    @property
    def is_product(self) -> bool:
        """Whether the journal itself is what was asked for."""
        return self.document is None and self.folder is None


class OpenedJournal(NamedTuple):
    journal: Journal
    recovered: Path | None
    """The document of an earlier run that was killed; None: no such journal lay there."""


def find_place(transcript: str | Path | None) -> Place:
    """Where the record goes when this transcript is asked for; without one, into a new private folder. Makes nothing.

    Raises ConfigurationError when no transcript could ever be put there.
    """
    if transcript is None:
        folder = _temporary_folder() / f"ci-agent-{os.urandom(8).hex()}"
        return Place(folder / f"transcript.json{JOURNAL_SUFFIX}", folder=folder)
    given = Path(os.path.abspath(transcript))
    path = Path(os.path.realpath(given.parent)) / given.name
    _check_name(str(transcript), path)
    if path.name.endswith(PRODUCT_SUFFIX):
        return Place(path)
    return Place(path.with_name(path.name + JOURNAL_SUFFIX), path)


def open_journal(place: Place) -> OpenedJournal:
    """The journal, empty and locked. What a killed run left in it is first made into a document beside it.

    Raises ConfigurationError when it cannot be used, BusyError when another run holds it.
    """
    if place.folder is not None:
        _make_private(place.folder)
    journal = open_journal_file(place.journal, RECORD_MODE if place.is_product else 0o600)
    try:
        remove_leftovers(place.document or place.journal)
        recovered = _save_what_is_left(journal, place)
        sync_folder(place.journal.parent)  # the recovered document must be there for good before its source goes
        journal.empty()
    except OSError as error:
        journal.close()
        why = os.strerror(error.errno or 0)
        raise ConfigurationError(f"the run's journal {str(place.journal)!r} cannot be used: {why}") from error
    except BaseException:
        journal.close()
        raise
    return OpenedJournal(journal, recovered)


def recover_killed(transcript: Path) -> Path | None:
    """Make the document of a run that was killed, and let its journal go; one that was damaged stays.

    None: there is nothing to do, for the run goes on, has its document, or wrote nothing. Raises ConfigurationError
    when the journal cannot be used, RecordError when no document can be written; the journal then stays.
    """
    place = find_place(transcript)
    if transcript.exists():
        return None
    try:
        journal = open_journal_file(place.journal, 0o600)
    except BusyError:
        return None
    try:
        return _make_missing_document(journal, place)
    finally:
        journal.close()
        give_back_room(place.journal)


def finish_record(journal: Journal, place: Place, *, keep_journal: bool = False) -> FinishedRecord:
    """Make the document of a run that has ended, put it in its place, and let the journal go, unless it is to stay
    beside the document.

    When a command has removed or changed the journal, or taken its folder away, the record is saved all the same: see
    `save_record`. Raises RecordError when it cannot be placed; a journal that stands where it belongs then stays, for
    `transcript recover`.
    """
    contents = journal.read()
    document = build_document(_only_valid(contents) if contents.problems else contents)
    journal.release_room()
    record = FinishedRecord(document, place.document or place.journal)
    if place.folder is None and not journal.is_intact():
        record = save_record(record.path, document, _render_lines(journal) if place.is_product else document_chunks)
    elif place.document is not None:
        _write_beside_its_journal(place.document, document)
    is_kept = place.is_product or (keep_journal and place.folder is None)
    if not (is_kept or contents.problems):
        _remove(place)
    journal.close()
    return record


def replace_record(transcript: Path, document: JsonObject) -> None:
    """Put another document in the place of that of a run that has ended. When a new run has begun there, the place is
    its own, and nothing happens. Raises ConfigurationError or RecordError when that is not possible."""
    place = find_place(transcript)
    try:
        journal = open_journal_file(place.journal, 0o600)
    except BusyError:
        return
    try:
        write_document(transcript, document)
    finally:
        if place.journal.stat().st_size == 0:  # opened for its lock alone
            _remove(place)
        journal.close()


def _render_lines(journal: Journal) -> Render:
    """As they were written: each holds the digest of the one before."""
    return lambda _: (line.decode("utf-8", "replace") for line in journal.lines())


def _write_beside_its_journal(path: Path, document: JsonObject) -> None:
    try:
        write_document(path, document)
    except RecordError as error:
        raise RecordError(f"{error}; its journal is there: ci-agent transcript recover {path}") from error


def _temporary_folder() -> Path:
    try:
        return Path(os.path.realpath(tempfile.gettempdir()))
    except OSError as error:
        raise ConfigurationError("there is no temporary folder to write to: set TMPDIR") from error


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise ConfigurationError(f"the temporary folder {str(folder)!r} cannot be made: {error.strerror}") from error


def _check_name(given: str, path: Path) -> None:
    if given == "-":
        raise ConfigurationError(
            "the transcript '-' would be a file of that name: stdout gets the record by --output json, without a file"
        )
    if not path.parent.is_dir():
        raise ConfigurationError(f"the folder of the transcript {given!r} does not exist: create {str(path.parent)!r}")
    try:
        status = path.lstat()
    except FileNotFoundError:
        status = None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "its name contains a NUL"
        raise ConfigurationError(f"the transcript {given!r} cannot be written: {why}") from error
    if given.endswith("/") or (status is not None and stat.S_ISDIR(status.st_mode)):
        raise ConfigurationError(f"the transcript {given!r} is a folder: name a file in it")
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise ConfigurationError(
            f"the transcript {given!r} is a link or a device: it is put in place by renaming, which would replace that"
        )
    if status is not None and _belongs_to_another(path, status):
        raise ConfigurationError(f"the transcript {given!r} belongs to another user and could not be replaced")


def _belongs_to_another(path: Path, status: os.stat_result) -> bool:
    """Whether the folder's sticky bit, as that of /tmp, protects the file from being replaced."""
    folder, user = path.parent.stat(), os.geteuid()
    return bool(folder.st_mode & stat.S_ISVTX) and user not in (0, status.st_uid, folder.st_uid)


def _save_what_is_left(journal: Journal, place: Place) -> Path | None:
    contents = journal.read()
    if not contents.records:
        _refuse_foreign_content(place.journal)
        return None
    if contents.records[0].get("kind") != "run_start":
        raise _foreign(place.journal)
    if place.is_product and contents.is_closed:
        return None
    return _write_recovered(contents, place.document or place.journal)


def _make_missing_document(journal: Journal, place: Place) -> Path | None:
    contents = journal.read()
    if place.document is None or not contents.records or contents.records[0].get("kind") != "run_start":
        return None
    remove_leftovers(place.document)
    written = _write_recovered(contents, place.document, place.document)
    if not contents.problems:
        _remove(place)
    return written


def _refuse_foreign_content(path: Path) -> None:
    """A first record that was never finished is ours to drop; anything else is not."""
    with path.open("rb") as file:
        first = file.read(len(_FIRST_BYTES))
    if not _FIRST_BYTES.startswith(first):
        raise _foreign(path)


def _foreign(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{str(path)!r} exists and is no journal of ci-agent: remove it, or name another transcript"
    )


def _write_recovered(contents: JournalContents, transcript: Path, *better: Path) -> Path:
    """At one of the better places, if it is free, or else beside the transcript."""
    from ci_agent.transcript.recovery import recovered_names, write_recovered  # noqa: PLC0415 - pydantic, rarely needed

    return write_recovered(contents, transcript, chain(better, recovered_names(transcript)))


def _only_valid(contents: JournalContents) -> JournalContents:
    from ci_agent.transcript.recovery import only_valid  # noqa: PLC0415 - pydantic, only for a journal that was damaged

    return only_valid(contents)


def _remove(place: Place) -> None:
    # What cannot be removed is a whole journal: the next run makes a document of it, and nothing is lost.
    with suppress(OSError):
        place.journal.unlink(missing_ok=True)
        if place.folder is not None:
            place.folder.rmdir()
