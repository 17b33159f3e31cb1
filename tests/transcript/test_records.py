"""The published schemas: valid JSON Schema, strict, and the same in both of their forms."""

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import jsonschema
import pytest

from ci_agent.exit_codes import ResultReason
from ci_agent.hooks import DecisionCode, ToolCallStage, ToolCallStatus
from ci_agent.json_types import JsonObject
from ci_agent.transcript.journal import read_journal
from ci_agent.transcript.records import (
    document_problems,
    journal_schema,
    line_problems,
    transcript_schema,
)

RecordRun = Callable[[Path], JsonObject]


@pytest.fixture
def document(tmp_path: Path, record_run: RecordRun) -> JsonObject:
    return record_run(tmp_path / "t.json")


@pytest.mark.parametrize("publish", [transcript_schema, journal_schema])
def test_a_schema_is_valid_and_says_what_it_is(publish: Callable[[], JsonObject]) -> None:
    schema = publish()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"].startswith("urn:ci-agent:")
    assert schema["title"]


def test_both_forms_take_the_same_documents(document: JsonObject, tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(transcript_schema())
    assert (document_problems(document), list(validator.iter_errors(document))) == ([], [])
    for key in document:
        broken = {name: value for name, value in document.items() if name != key}
        assert document_problems(broken)
        assert list(validator.iter_errors(broken))
    wrongs: list[JsonObject] = [{"extra": 1}, {"schema": "x"}, {"messages": {}}, {"tool_calls": [{}]}, {"usage": None}]
    for wrong in wrongs:
        assert document_problems(document | wrong)
        assert list(validator.iter_errors(document | wrong))


def test_both_forms_take_the_same_lines(document: JsonObject, tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(journal_schema())
    for line in read_journal(tmp_path / "t.json.journal").records:
        assert (line_problems(line), list(validator.iter_errors(line))) == ([], [])
        for wrong in ({"extra": 1}, {"seq": 0}, {"prev": "x"}, {"kind": "x"}, {"at": "yesterday"}):
            assert line_problems(line | wrong)
            assert list(validator.iter_errors(line | wrong))


def test_problems_are_bounded(document: JsonObject) -> None:
    document["tool_calls"] = [{} for _ in range(10_000)]
    assert len(document_problems(document)) == 20


def test_the_closed_words_of_the_code_are_those_of_the_schema() -> None:
    definitions = transcript_schema()["$defs"]
    call, decision = definitions["ToolCallRecord"]["properties"], definitions["DecisionRecord"]["properties"]
    assert call["status"]["enum"] == [*get_args(ToolCallStatus), "unknown"]
    assert call["stage"]["anyOf"][0]["enum"] == list(get_args(ToolCallStage))
    assert decision["code"]["enum"] == list(get_args(DecisionCode))
    reasons = definitions["ResultRecord"]["properties"]["reason"]
    assert sorted(word for part in reasons["anyOf"] for word in part.get("enum", [part.get("const")])) == sorted(
        [*get_args(ResultReason), "unknown"]
    )
