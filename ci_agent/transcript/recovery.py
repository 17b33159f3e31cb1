"""The document of a run that was killed, made from the journal that it left."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, count
from pathlib import Path

from ci_agent.errors import ConfigurationError, RecordError
from ci_agent.json_types import JsonObject
from ci_agent.transcript.document import build_document, document_chunks, write_new_file
from ci_agent.transcript.journal import JOURNAL_SUFFIX, PRODUCT_SUFFIX, read_journal
from ci_agent.transcript.journal_lines import JournalContents, Problem
from ci_agent.transcript.records import line_problems
from ci_agent.transcript.room import give_back_room


def recover(path: Path) -> Path:
    """Make the document of the transcript at `path` from its journal; returns where it stands.

    `path` names the transcript, or its journal. The document takes the transcript's name if that is free, else the
    next free one beside it; nothing is overwritten, and the journal stays, without the room set aside for it. Raises
    ConfigurationError when there is no journal or nothing in it, BusyError when its run still lives, RecordError when
    nothing can be written.
    """
    journal = journal_of(path)
    contents = read_journal(journal)
    if not contents.records:
        raise ConfigurationError(f"the journal {str(journal)!r} holds no record: there is nothing to recover")
    transcript = path.with_name(path.name.removesuffix(JOURNAL_SUFFIX))
    places = recovered_names(transcript)
    written = write_recovered(contents, transcript, places if transcript == journal else chain([transcript], places))
    give_back_room(journal)
    return written


def journal_of(path: Path) -> Path:
    """The journal of a transcript: beside it, or the file itself. Raises ConfigurationError when there is none."""
    itself = path.name.endswith((PRODUCT_SUFFIX, JOURNAL_SUFFIX))
    journal = path if itself else path.with_name(path.name + JOURNAL_SUFFIX)
    if not journal.exists():
        raise ConfigurationError(f"there is no journal {str(journal)!r}: nothing to recover")
    return journal


def recovered_names(transcript: Path) -> Iterator[Path]:
    """`TRANSCRIPT.recovered.json`, `TRANSCRIPT.recovered-2.json` and so on."""
    yield transcript.with_name(f"{transcript.name}.recovered.json")
    for number in count(2):
        yield transcript.with_name(f"{transcript.name}.recovered-{number}.json")


def write_recovered(contents: JournalContents, transcript: Path, places: Iterable[Path]) -> Path:
    """Write the document at the first place that is free, or that holds the very same document already.

    `transcript` is what the places are beside.
    """
    document = build_document(only_valid(contents))
    for place in places:
        try:
            write_new_file(place, document_chunks(document), beside=transcript)
        except FileExistsError:
            if not _holds(place, document):
                continue
        except OSError as error:
            raise RecordError(f"cannot write the recovered transcript {str(place)!r}: {error.strerror}") from error
        return place
    raise AssertionError("places are endless")


def only_valid(contents: JournalContents) -> JournalContents:
    """The contents without records that no ci-agent has written; each of them is a problem."""
    records: list[JsonObject] = []
    problems: list[Problem] = []
    for record in contents.records:
        wrong = line_problems(record)
        problems += [Problem(f"record {record['seq']} is left out: {text}") for text in wrong[:1]]
        records += [] if wrong else [record]
    return replace(contents, records=tuple(records), problems=(*contents.problems, *problems))


def _holds(place: Path, document: JsonObject) -> bool:
    try:
        return place.read_bytes() == "".join(document_chunks(document)).encode()
    except OSError:
        return False
