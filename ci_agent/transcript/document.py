"""The transcript document: what a journal's records say, put together, and put in its place in one step."""

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ci_agent.errors import RecordError
from ci_agent.json_types import JsonObject
from ci_agent.messages import Usage, add_usage
from ci_agent.terminal import inert_json
from ci_agent.transcript.as_json import usage_json
from ci_agent.transcript.journal_lines import JournalContents
from ci_agent.transcript.plain_json import canonical_json, json_text
from ci_agent.transcript.story import Story, read_story

TRANSCRIPT_SCHEMA = "ci-agent.transcript/1"

RECORD_MODE = 0o644
"""Read by whom the umask lets, written by its owner alone, whatever the umask lets."""

INTEGRITY = "integrity"
"""The key whose value vouches for all others. It is no signature: it shows an accident or a careless edit, not the
work of somebody who computes it anew."""


def build_document(contents: JournalContents) -> JsonObject:
    """The transcript of a run, finished or not, from whatever its journal holds.

    When the run did not come to its end, its reason is `unknown` and it has no exit code.
    """
    story = read_story(contents.records)
    document: JsonObject = {
        "schema": TRANSCRIPT_SCHEMA,
        "run": _run_json(story),
        "model": story.start.get("model"),
        "policy": story.start.get("policy"),
        "messages": story.messages,
        "tool_calls": story.calls,
        "usage": usage_json(add_usage([Usage(**message["usage"]) for message in _assistant_messages(story)])),
        "result": _result_json(story),
        "redactions": {"count": story.redactions},
        "notes": story.notes,
    }
    document[INTEGRITY] = {
        "complete": contents.is_closed,
        "records": len(contents.records),
        "journal_sha256": contents.head,
        "dropped_bytes": contents.dropped_bytes,
        "problems": [str(problem) for problem in contents.problems],
        "document_sha256": document_digest(document),
    }
    return document


def document_digest(document: JsonObject) -> str:
    """SHA-256 of the content without its integrity block; the same however the JSON is laid out."""
    digest = hashlib.sha256()
    for chunk in _canonical_chunks(document):
        digest.update(chunk.encode("ascii"))
    return digest.hexdigest()


def amend_result(document: JsonObject, exit_code: int, error: str) -> JsonObject:
    """The document of a run whose result turned out worse after its record had been closed, sealed anew."""
    amended: JsonObject = {**document, "result": {**document["result"], "exit_code": exit_code, "error": error}}
    amended[INTEGRITY] = {**document[INTEGRITY], "document_sha256": document_digest(amended)}
    return amended


def document_chunks(document: JsonObject) -> Iterator[str]:
    """The text of a document, a line for each message and each call, so that it can be written piece by piece.

    No line begins with anything but JSON's own punctuation: line breaks inside texts are escaped.
    """
    for number, (key, value) in enumerate(document.items()):
        yield f"{',' if number else '{'}\n{json_text(key)}: "
        if isinstance(value, list) and value:
            for item_number, item in enumerate(value):
                yield f"{',' if item_number else '['}\n{json_text(item)}"
            yield "\n]"
        else:
            yield json_text(value)
    yield "\n}\n"


def stdout_json(document: JsonObject) -> str:
    """The document's text for a log: the same JSON, in which no part is a command to the runner of a CI service.

    No line of JSON begins with `::name` or `---`. A `#` is never part of an escape, so that one may be written as one.
    """
    return inert_json("".join(document_chunks(document)))


def write_document(path: Path, document: JsonObject) -> None:
    """Put the document in place: whatever happens, the name leads to the old file or to the whole new one.

    Raises RecordError when that is not possible; the old file is then still there.
    """
    try:
        replace_file(path, document_chunks(document))
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise RecordError(f"the transcript {str(path)!r} cannot be written: {why}") from error


def replace_file(path: Path, chunks: Iterable[str]) -> None:
    """Put a file in place, durably and whole, or leave the old one as it is. Raises OSError.

    No link is followed: one that has the file's name is replaced, and the folder must be free of them, as it was when
    the path was resolved; somebody may have led it elsewhere.
    """
    if os.path.realpath(path.parent) != str(path.parent):
        raise OSError(errno.ELOOP, "its folder leads somewhere else by now", str(path.parent))
    with _written_beside(path, chunks) as temporary:
        os.replace(temporary, path)
    sync_folder(path.parent)


def write_new_file(path: Path, chunks: Iterable[str], *, beside: Path) -> None:
    """Create a file, durably and whole or not at all; FileExistsError when there is one already, other OSErrors when
    it cannot be written. `beside`: the file whose `remove_leftovers` takes away what a kill in the midst leaves."""
    with _written_beside(beside, chunks) as temporary:
        _give_name(temporary, path)
    sync_folder(path.parent)


def remove_leftovers(path: Path) -> None:
    """Take away what was on its way to this name when its writer was killed. Nobody else may be writing there."""
    for name in os.listdir(path.parent):
        if name.startswith(_temporary_prefix(path)) and name.endswith(_TEMPORARY_SUFFIX):
            path.with_name(name).unlink(missing_ok=True)


_TEMPORARY_SUFFIX = ".tmp"

_NO_HARD_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS})
"""What file systems answer that have none, as FAT and many that come over a network."""


def _give_name(temporary: Path, path: Path) -> None:
    """Move the file there unless something is there already. Raises OSError."""
    try:
        os.link(temporary, path)  # which never replaces anything
        temporary.unlink()
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        temporary.rename(path)


def _temporary_prefix(path: Path) -> str:
    """Of a fixed length: the path's own name may be as long as names can be."""
    return f".ci-agent-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}-"


@contextmanager
def _written_beside(path: Path, chunks: Iterable[str]) -> Iterator[Path]:
    """A new file in the same folder, on disk; gone when what is done with it fails."""
    temporary = path.with_name(f"{_temporary_prefix(path)}{os.urandom(4).hex()}{_TEMPORARY_SUFFIX}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, RECORD_MODE)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make a new name in the folder survive a power failure. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _run_json(story: Story) -> JsonObject | None:
    if not story.start:
        return None
    run = story.start["run"]
    times = {"started_at": story.start["at"], "duration_s": story.end.get("duration_s")}
    return {"id": run["id"], **times, **{key: value for key, value in run.items() if key != "id"}}


def _result_json(story: Story) -> JsonObject:
    ending = story.end.get("result") or {
        "reason": "unknown",
        "exit_code": None,
        "structured_output": None,
        "error": "the run did not come to its end",
        "error_retryable": None,
    }
    return {
        "reason": ending["reason"],
        "exit_code": ending["exit_code"],
        "final_text": _final_text(story, ending["reason"]),
        "structured_output": ending["structured_output"],
        "tool_calls": story.counts(),
        "error": ending["error"],
        "error_retryable": ending["error_retryable"],
    }


_ENDED_BY_ITSELF: Final = frozenset({"completed", "denied", "schema_mismatch"})


def _final_text(story: Story, reason: str) -> str | None:
    """The answer: the last thing that the model said. None when it had not come to its end, for what it said on the
    way to its calls answers nothing.
    """
    messages = _assistant_messages(story)
    if not messages or messages[-1]["stop_reason"] in ("error", "aborted"):
        return None
    if _has_calls(messages[-1]) and reason not in _ENDED_BY_ITSELF:
        return None
    texts = ("".join(part["text"] for part in each["content"] if part["type"] == "text") for each in messages)
    return next(filter(None, reversed([*texts])), None)


def _has_calls(message: JsonObject) -> bool:
    return any(part["type"] == "tool_call" for part in message["content"])


def _assistant_messages(story: Story) -> list[JsonObject]:
    return [message for message in story.messages if message["role"] == "assistant"]


def _canonical_chunks(document: JsonObject) -> Iterator[str]:
    for number, key in enumerate(sorted(document.keys() - {INTEGRITY})):
        yield f"{',' if number else '{'}{canonical_json(key)}:"
        value = document[key]
        if isinstance(value, list):
            yield "["
            for item_number, item in enumerate(value):
                yield f"{',' if item_number else ''}{canonical_json(item)}"
            yield "]"
        else:
            yield canonical_json(value)
    yield "}"
