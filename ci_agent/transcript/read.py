"""The document of a run, from whichever file holds it: the transcript itself, or a journal."""

from pathlib import Path

from ci_agent.errors import ConfigurationError
from ci_agent.json_types import JsonObject
from ci_agent.transcript.document import build_document
from ci_agent.transcript.journal import JOURNAL_SUFFIX, PRODUCT_SUFFIX, read_journal
from ci_agent.transcript.recovery import only_valid
from ci_agent.transcript.verify import read_document


def read_transcript(path: Path) -> JsonObject:
    """The document at a path, made of the journal when the file is one (`.jsonl`, `.journal`); it satisfies its schema.

    Raises ConfigurationError when the file is neither, BusyError while its run goes on.
    """
    if not path.name.endswith((PRODUCT_SUFFIX, JOURNAL_SUFFIX)):
        return read_document(path)
    contents = only_valid(read_journal(path))
    if not contents.records:
        raise ConfigurationError(f"{str(path)!r} is no transcript: no line of it is a record of a run")
    return build_document(contents)
