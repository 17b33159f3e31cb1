"""A record whose folder was taken away is put where it belongs, or else aside, and never behind a link."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.errors import RecordError
from ci_agent.json_types import JsonObject, parse_json
from ci_agent.transcript.document import document_chunks
from ci_agent.transcript.rescue import save_record
from ci_agent.transcript.verify import verify

RecordRun = Callable[[Path], JsonObject]


@pytest.fixture
def document(record_run: RecordRun, tmp_path: Path) -> JsonObject:
    (tmp_path / "before").mkdir()
    return record_run(tmp_path / "before" / "t.json")


@pytest.fixture
def aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are made."""
    folder = tmp_path / "aside"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_a_folder_that_is_gone_is_made_again_with_those_above_it(tmp_path: Path, document: JsonObject) -> None:
    path = tmp_path / "a" / "b" / "t.json"
    assert save_record(path, document, document_chunks) == (document, path)
    assert verify(path) == []


def test_a_file_in_the_place_of_the_folder_has_the_record_put_aside(
    tmp_path: Path, document: JsonObject, aside: Path
) -> None:
    (tmp_path / "rec").touch()
    told, path = save_record(tmp_path / "rec" / "t.json", document, document_chunks)
    assert (path.name, path.parent.parent) == ("t.json", aside)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert parse_json(path.read_text()) == told
    assert verify(path) == []
    assert told["result"]["exit_code"] == document["result"]["exit_code"]
    why = f"the transcript '{tmp_path}/rec/t.json' cannot be written: Not a directory; it is '{path}'"
    assert told["result"]["error"] == why


@pytest.mark.parametrize("leads_to", ["elsewhere", "nowhere"])
@pytest.mark.parametrize("name", ["rec/t.json", "rec/below/t.json"])
def test_attack_lead_the_folder_elsewhere(
    tmp_path: Path, document: JsonObject, aside: Path, leads_to: str, name: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "rec").symlink_to(leads_to)
    assert save_record(tmp_path / name, document, document_chunks).path.parent.parent == aside
    assert os.listdir(tmp_path / "elsewhere") == []
    assert not (tmp_path / "nowhere").exists()


def test_a_record_that_was_put_aside_is_no_success(tmp_path: Path, document: JsonObject, aside: Path) -> None:
    document["result"]["exit_code"] = 0
    (tmp_path / "rec").touch()
    assert save_record(tmp_path / "rec" / "t.json", document, document_chunks).document["result"]["exit_code"] == 9
    assert len(os.listdir(aside)) == 1


def test_without_any_place_it_is_said_what_was_tried(tmp_path: Path, document: JsonObject, aside: Path) -> None:
    (tmp_path / "rec").touch()
    aside.rmdir()
    with pytest.raises(RecordError) as error:
        save_record(tmp_path / "rec" / "t.json", document, document_chunks)
    said = f"the transcript '{tmp_path}/rec/t.json' cannot be written: Not a directory; nor can a temporary file"
    assert str(error.value) == said
