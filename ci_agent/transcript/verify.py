"""Whether a transcript or a journal still is what was written: cuts, edits, calls without a result."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from ci_agent.errors import ConfigurationError, RecordError
from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.terminal import printable, shortened
from ci_agent.transcript.document import INTEGRITY, TRANSCRIPT_SCHEMA, document_digest
from ci_agent.transcript.journal import JOURNAL_SUFFIX, PRODUCT_SUFFIX, open_record, read_journal
from ci_agent.transcript.journal_lines import LAST_KIND, JournalContents, Problem
from ci_agent.transcript.records import document_problems, line_problems

_MAX_VERSION_CHARS = 20
_MAX_SHOWN_CHARS = 60


def verify(path: Path) -> list[Problem]:
    """What is wrong with a transcript document or a journal; empty when nothing is.

    It proves that nothing was changed by accident or without care; who changes a file and computes its hashes anew
    is not found out. Raises ConfigurationError when the file cannot be read, BusyError while its run goes on.
    """
    if path.name.endswith((PRODUCT_SUFFIX, JOURNAL_SUFFIX)):
        return list(_journal_problems(read_journal(path)))
    try:
        document = parse_json(_read(path))
    except ValueError as error:
        return [Problem(f"it is no JSON document: {error}")]
    return list(_document_problems(document))


def read_document(path: Path) -> JsonObject:
    """A transcript document, checked against its schema. Raises ConfigurationError for anything else."""
    try:
        document = parse_json(_read(path))
    except ValueError as error:
        raise ConfigurationError(f"{str(path)!r} is no transcript: it is no JSON document: {error}") from error
    other = _other_version(document)
    if other is not None:
        hint = f"this ci-agent reads {TRANSCRIPT_SCHEMA}: take the ci-agent that wrote it, or a newer one"
        raise ConfigurationError(f"{str(path)!r} is a transcript of another version ({other}); {hint}")
    problems = _form_problems(document)
    if problems:
        raise ConfigurationError(f"{str(path)!r} is no transcript: {problems[0]}")
    return document  # type: ignore[no-any-return]  # the schema says that it is an object


def _form_problems(document: Json) -> list[str]:
    """One for a file of another kind, of which all else would be wrong, too."""
    is_one = isinstance(document, dict) and document.get("schema") == TRANSCRIPT_SCHEMA
    if is_one or not isinstance(document, dict) or _other_version(document):
        return document_problems(document)
    said = shortened(printable(json.dumps(document["schema"])), _MAX_SHOWN_CHARS) if "schema" in document else "missing"
    return [f'it is a file of another kind: a transcript has the schema "{TRANSCRIPT_SCHEMA}", and here that is {said}']


def _other_version(document: Json) -> str | None:
    """The schema of a transcript that this version cannot read."""
    schema = document.get("schema") if isinstance(document, dict) else None
    family, _, number = TRANSCRIPT_SCHEMA.rpartition("/")
    said, _, other = schema.rpartition("/") if isinstance(schema, str) else ("", "", "")
    return f"{family}/{other}" if said == family and other != number and len(other) <= _MAX_VERSION_CHARS else None


def _read(path: Path) -> str:
    try:
        with open_record(path) as file:
            return file.read().decode()
    except OSError as error:
        hint = ""
        if Path(f"{path}{JOURNAL_SUFFIX}").exists():
            hint = f"; its journal is there: ci-agent transcript recover {path}"
        raise ConfigurationError(f"cannot read the transcript {str(path)!r}: {error.strerror}{hint}") from error


def _journal_problems(contents: JournalContents) -> Iterator[Problem]:
    yield from contents.problems
    for record in contents.records:
        yield from (Problem(f"record {record['seq']}: {text}") for text in line_problems(record))
    if contents.dropped_bytes:
        yield Problem(f"its last line was never finished ({contents.dropped_bytes} bytes)")
    kinds = [record["kind"] for record in contents.records]
    if kinds[:1] != ["run_start"] or kinds.count("run_start") > 1:
        yield Problem("it does not begin with its run's start")
    if not contents.is_closed:
        yield Problem("it does not end with its run's end: the run was killed, or records were cut off")
    elif kinds.count(LAST_KIND) > 1 and not _ends_without_document(contents.records):
        yield Problem("it goes on after its run's end")


def _ends_without_document(records: Sequence[JsonObject]) -> bool:
    """Whether the last record only tells what came after the run's end: its document could not be put in place."""
    *before, end, again = records
    is_end = end["kind"] == LAST_KIND and all(record["kind"] != LAST_KIND for record in before)
    return is_end and not line_problems(again) and again["result"]["exit_code"] == RecordError.exit_code


def _document_problems(document: Json) -> Iterator[Problem]:
    broken = _form_problems(document)
    yield from map(Problem, broken)
    if broken:
        return
    integrity = document[INTEGRITY]
    if integrity["document_sha256"] != document_digest(document):
        yield Problem("it was changed after it was written")
    yield from (Problem(f"its journal: {text}") for text in integrity["problems"])
    if not integrity["complete"]:
        yield Problem("its run did not come to its end: records after the last may be missing")
    yield from map(Problem, _contradictions(document))


def _contradictions(document: JsonObject) -> Iterator[str]:
    calls = document["tool_calls"]
    if [call["seq"] for call in calls] != list(range(1, len(calls) + 1)):
        yield "tool_calls are not numbered from 1 without a gap"
    wanted = Counter((part["id"], part["name"]) for part in _call_parts(document))
    answered = Counter((call["id"], call["tool"]) for call in calls)
    if wanted != answered:
        yield "tool_calls and the calls in the messages are not the same"
    counts = Counter(call["status"] for call in calls)
    if counts != Counter(document["result"]["tool_calls"]):
        yield "result.tool_calls does not count what is in tool_calls"


def _call_parts(document: JsonObject) -> Iterator[JsonObject]:
    for message in document["messages"]:
        if message["role"] == "assistant":
            yield from (part for part in message["content"] if part["type"] == "tool_call")
