"""A cut or an edit of a finished record shows; an untouched one verifies."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.errors import BusyError, ConfigurationError
from ci_agent.json_types import JsonObject
from ci_agent.transcript.document import document_digest, write_document
from ci_agent.transcript.journal import Journal
from ci_agent.transcript.journal_lines import Problem, encode_line, line_hash
from ci_agent.transcript.place import find_place, open_journal
from ci_agent.transcript.recorder import Recorder
from ci_agent.transcript.verify import read_document, verify

RecordRun = Callable[[Path], JsonObject]


@pytest.fixture
def transcript(tmp_path: Path, record_run: RecordRun) -> Path:
    record_run(tmp_path / "t.json")
    return tmp_path / "t.json"


@pytest.fixture
def journal(transcript: Path) -> Path:
    return transcript.with_name("t.json.journal")


def problems(path: Path) -> list[str]:
    return [str(problem) for problem in verify(path)]


def test_an_untouched_record_verifies(transcript: Path, journal: Path) -> None:
    assert verify(transcript) == []
    assert verify(journal) == []


def test_a_document_laid_out_anew_still_verifies(transcript: Path) -> None:
    transcript.write_text(json.dumps(json.loads(transcript.read_text()), indent=2, sort_keys=True))
    assert verify(transcript) == []


def test_every_changed_digit_or_letter_of_the_content_shows(transcript: Path) -> None:
    text = transcript.read_text()
    end = text.index('"integrity"')
    for at in range(20, end, 97):
        if text[at].isalnum():
            transcript.write_text(text[:at] + ("1" if text[at] != "1" else "2") + text[at + 1 :])
            assert verify(transcript), text[at - 10 : at + 10]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_cut_document_is_no_json(transcript: Path, share: float) -> None:
    text = transcript.read_text().rstrip()
    transcript.write_text(text[: int(len(text) * share)])
    (problem,) = problems(transcript)
    assert problem.startswith("it is no JSON document: ")


def test_a_removed_call_shows_even_with_a_digest_computed_anew(transcript: Path) -> None:
    document = json.loads(transcript.read_text())
    del document["tool_calls"][1]
    write_document(transcript, document)
    assert problems(transcript) == [
        "it was changed after it was written",
        "tool_calls are not numbered from 1 without a gap",
        "tool_calls and the calls in the messages are not the same",
        "result.tool_calls does not count what is in tool_calls",
    ]
    document["integrity"]["document_sha256"] = document_digest(document)
    write_document(transcript, document)
    assert len(problems(transcript)) == 3


OF_ANOTHER_KIND = (
    'it is a file of another kind: a transcript has the schema "ci-agent.transcript/1", and here that is missing'
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "it is no JSON object"),
        (
            "{}",
            OF_ANOTHER_KIND,
        ),
        ('{"a": 1, "a": 2}', 'it is no JSON document: the key "a" appears twice in one object'),
        ('{"a": NaN}', "it is no JSON document: NaN is not JSON"),
        ("[" * 1000, "it is no JSON document: nested more than 100 levels deep"),
        ("", "it is no JSON document: Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_what_is_no_transcript_is_told_from_one(transcript: Path, text: str, problem: str) -> None:
    transcript.write_text(text)
    assert problems(transcript)[0] == problem
    with pytest.raises(ConfigurationError) as error:
        read_document(transcript)
    assert str(error.value) == f"'{transcript}' is no transcript: {problem}"


def test_bytes_that_are_no_utf_8_are_told(transcript: Path) -> None:
    transcript.write_bytes(b'{"a": "\xff"}')
    assert problems(transcript)[0].startswith("it is no JSON document: 'utf-8' codec can't decode byte 0xff")


def test_an_unknown_key_or_a_later_version_is_told(transcript: Path) -> None:
    document = json.loads(transcript.read_text())
    write_document(transcript, document | {"extra": 1, "schema": "ci-agent.transcript/2"})
    assert problems(transcript) == [
        "schema: Input should be 'ci-agent.transcript/1'",
        "extra: Extra inputs are not permitted",
    ]


def test_a_document_is_read_when_it_satisfies_its_schema(transcript: Path) -> None:
    assert read_document(transcript) == json.loads(transcript.read_text())


def lines_of(journal: Path) -> list[bytes]:
    return journal.read_bytes().splitlines(keepends=True)


def test_a_journal_cut_at_a_line_shows(journal: Path) -> None:
    journal.write_bytes(b"".join(lines_of(journal)[:-1]))
    assert problems(journal) == ["it does not end with its run's end: the run was killed, or records were cut off"]


def test_a_torn_tail_shows(journal: Path) -> None:
    journal.write_bytes(journal.read_bytes()[:-5])
    length = len(lines_of(journal)[-1])
    assert problems(journal) == [
        f"its last line was never finished ({length} bytes)",
        "it does not end with its run's end: the run was killed, or records were cut off",
    ]


def test_an_edited_line_shows(journal: Path) -> None:
    journal.write_bytes(journal.read_bytes().replace(b"I look.", b"I hide.", 1))
    assert verify(journal) == [Problem("does not continue the record before it: one of the two was changed", 4)]


def test_a_removed_line_and_a_lost_beginning_show(journal: Path) -> None:
    lines = lines_of(journal)
    journal.write_bytes(b"".join(lines[:5] + lines[6:]))
    assert problems(journal)[0].startswith("line 6: has number 7, expected 6")
    journal.write_bytes(b"".join(lines[1:]))
    assert problems(journal) == [
        "line 1: has number 2, expected 1: records are missing, repeated or out of order",
        "it does not begin with its run's start",
    ]


def test_records_after_the_end_show(journal: Path) -> None:
    journal.write_bytes(b"".join([*lines_of(journal), lines_of(journal)[-1]]))
    assert problems(journal)[-1] == "it goes on after its run's end"


@pytest.mark.parametrize("content", [b"", b"garbage\n", b'{"seq":1'])
def test_a_journal_without_records_shows(journal: Path, content: bytes) -> None:
    journal.write_bytes(content)
    assert problems(journal)[-2:] == [
        "it does not begin with its run's start",
        "it does not end with its run's end: the run was killed, or records were cut off",
    ]


def test_a_missing_transcript_is_said_with_the_way_to_recover_it(transcript: Path, journal: Path) -> None:
    os.unlink(transcript)
    with pytest.raises(ConfigurationError) as error:
        verify(transcript)
    assert str(error.value) == (
        f"cannot read the transcript '{transcript}': No such file or directory; "
        f"its journal is there: ci-agent transcript recover {transcript}"
    )
    os.unlink(journal)
    with pytest.raises(ConfigurationError, match=r"No such file or directory$"):
        verify(transcript)


def test_the_journal_of_a_living_run_is_not_judged(
    tmp_path: Path, start_recording: Callable[[Journal], Recorder]
) -> None:
    journal, _ = open_journal(find_place(tmp_path / "live.jsonl"))
    start_recording(journal)
    with pytest.raises(BusyError):
        verify(tmp_path / "live.jsonl")
    journal.close()


def end_again(journal: Path, **result: object) -> None:
    """Append what a run appends whose document could not be put in place."""
    *_, last = lines_of(journal)
    end = json.loads(last)
    again = {**end, "seq": end["seq"] + 1, "prev": line_hash(last), "result": {**end["result"], **result}}
    del again["seal"]
    journal.write_bytes(journal.read_bytes() + encode_line(again))


def test_an_end_that_tells_of_a_lost_document_is_the_run_s_end(journal: Path) -> None:
    end_again(journal, exit_code=3, error="the transcript cannot be written")
    assert problems(journal) == []
    end_again(journal, exit_code=3, error="once more")
    assert problems(journal) == ["it goes on after its run's end"]


def test_an_end_that_only_says_something_else_is_none(journal: Path) -> None:
    end_again(journal, exit_code=0)
    assert problems(journal) == ["it goes on after its run's end"]
