"""Records that were written once stay readable: by every command, whatever is added to the format later.

The files were written by the first version of the format and are never written anew. A change that breaks this test
needs another schema name, and a reader for both.
"""

from pathlib import Path

import pytest

from ci_agent.recorded_runs import read_recorded_run
from ci_agent.reports.comparison import are_alike
from ci_agent.reports.table import FORMATS, renderer
from ci_agent.transcript.compare import compare_calls
from ci_agent.transcript.read import read_transcript
from ci_agent.transcript.verify import verify

KEPT = Path(__file__).parent / "kept"
TRANSCRIPT, JOURNAL = KEPT / "transcript-1.json", KEPT / "journal-1.jsonl"


def test_a_transcript_of_the_first_version_is_read_as_it_was_written() -> None:
    document = read_transcript(TRANSCRIPT)
    assert document["schema"] == "ci-agent.transcript/1"
    assert [(call["tool"], call["status"], call["stage"]) for call in document["tool_calls"]] == [
        ("read", "ok", None),
        ("ls", "ok", None),
        ("bash", "denied", "before_tool_call"),
        ("bash", "error", "execute"),
        ("search", "error", "lookup"),
        ("read", "error", "arguments"),
        ("edit", "ok", None),
    ]
    assert (document["result"]["exit_code"], document["result"]["final_text"]) == (0, "Changed one line; not pushed.")


@pytest.mark.parametrize("path", [TRANSCRIPT, JOURNAL], ids=lambda path: path.name)
def test_nothing_is_wrong_with_it(path: Path) -> None:
    assert verify(path) == []


def test_its_journal_makes_the_same_document() -> None:
    assert read_transcript(JOURNAL) == read_transcript(TRANSCRIPT)


@pytest.mark.parametrize("name", FORMATS)
def test_every_report_takes_it(name: str) -> None:
    assert "no-push" in renderer(name)(read_transcript(TRANSCRIPT))


def test_it_can_be_compared_and_its_calls_decided_again() -> None:
    document = read_transcript(TRANSCRIPT)
    assert are_alike(compare_calls(document, document))
    assert [call.tool for call in read_recorded_run(TRANSCRIPT).calls] == ["read", "ls", "bash", "bash", "edit"]
