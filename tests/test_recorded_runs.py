"""Records of real runs read back as the calls that a policy decided."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci_agent import ConfigurationError, Limits, RunSettings, load_policy, run
from ci_agent.policy.checks.recorded import RecordedRun
from ci_agent.recorded_runs import FoundFiles, Whereabouts, find_transcripts, read_recorded_run, whereabouts

RULES = """
policy: 1
rules:
  - {id: look, allow: read}
  - {id: once, allow: ls, max_calls: 1}
  - {id: tripwire, deny: read, path: stop, on_denied: stop}
"""

Record = Callable[..., Path]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Run calls, each `tool, arguments`, in one turn, and return the transcript's path."""
    (tmp_path / "ws").mkdir()

    def make(*calls: tuple[str, Any], name: str = "t.json", **settings: Any) -> Path:
        texts = [
            {"name": tool, "arguments_json": raw if isinstance(raw, str) else json.dumps(raw)} for tool, raw in calls
        ]
        script = {"turns": [{"tool_calls": texts}, {"text": "done"}]}
        (tmp_path / "script.yaml").write_text(json.dumps(script))
        policy = load_policy(text=RULES, workspace=tmp_path / "ws")
        model = f"scripted:{tmp_path / 'script.yaml'}"
        run(RunSettings(prompt="Go.", policy=policy, model=model, transcript=tmp_path / name, **settings))
        return tmp_path / name

    return make


def told(read: RecordedRun) -> list[tuple[int, str, str, str]]:
    return [(call.seq, call.tool, call.answer.effect, call.answer.rule_id or call.answer.code) for call in read.calls]


def skipped(read: RecordedRun) -> list[tuple[int, str]]:
    return [(call.seq, call.why) for call in read.skipped]


def test_what_the_policy_decided_is_read_and_the_rest_says_why_it_is_not(record: Record, tmp_path: Path) -> None:
    read = read_recorded_run(
        record(
            ("read", {"path": "a"}),
            ("write", {"path": "a", "content": "x"}),
            ("ls", {}),
            ("ls", {}),
            ("reed", {"path": "a"}),
            ("read", {"file": "a"}),
            ("read", "{"),
        )
    )
    assert (read.transcript, read.workspace) == (str(tmp_path / "t.json"), str(tmp_path / "ws"))
    assert told(read) == [
        *((1, "read", "allow", "look"), (2, "write", "deny", "default"), (3, "ls", "allow", "once")),
        (4, "ls", "deny", "once"),
    ]
    assert skipped(read) == [(5, "lookup"), (6, "arguments"), (7, "arguments")]
    assert read.calls[0].arguments == {"path": "a"}


def test_what_the_run_and_not_the_policy_refused_is_told_apart(record: Record) -> None:
    calls = [("read", {"path": "a"}), ("ls", {}), ("read", {"path": "b"})]
    read = read_recorded_run(record(*calls, tools=("read",), limits=Limits(max_tool_calls=2)))
    assert told(read) == [(1, "read", "allow", "look")]
    assert skipped(read) == [(2, "not_offered"), (3, "run_limit")]


def test_calls_behind_a_tripwire_were_never_taken_up(record: Record) -> None:
    read = read_recorded_run(record(("read", {"path": "stop"}), ("read", {"path": "a"})))
    assert (told(read), skipped(read)) == ([(1, "read", "deny", "tripwire")], [(2, "cancelled")])


def test_arguments_without_their_secret_are_not_what_was_decided(record: Record) -> None:
    secret = "kW3vR9xZ1qLm7TbN"
    path = record(("read", {"path": f"a/{secret}"}), environment={**os.environ, "API_TOKEN": secret})
    assert secret not in path.read_text()
    assert skipped(read_recorded_run(path)) == [(1, "redacted")]


def test_arguments_too_many_to_be_recorded_are_left_out(record: Record) -> None:
    edits = [{"old": "a", "new": "b"}] * 6_000
    read = read_recorded_run(record(("read", {"path": "a"}), ("edit", {"path": "a", "edits": edits})))
    assert (told(read), skipped(read)) == ([(1, "read", "allow", "look")], [(2, "not_recorded")])


def test_a_journal_is_read_like_its_document(record: Record, tmp_path: Path) -> None:
    document = read_recorded_run(record(("read", {"path": "a"}), ("ls", {}), keep_journal=True))
    journal = read_recorded_run(tmp_path / "t.json.journal")
    product = read_recorded_run(record(("read", {"path": "a"}), ("ls", {}), name="u.jsonl"))
    assert told(document) == told(journal) == told(product)
    assert document.workspace == journal.workspace == product.workspace


def test_a_journal_that_was_cut_off_is_read_as_far_as_it_goes(record: Record) -> None:
    path = record(("read", {"path": "a"}), ("read", {"path": "b"}), name="t.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if b'"call_decision"' in line)
    path.write_bytes(b"".join(lines[: at + 1]) + b'{"torn')
    assert told(read_recorded_run(path)) == [(1, "read", "allow", "look")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.json", b""),
        ("x.json", b"{"),
        ("x.json", b"[1]"),
        ("x.json", b"\xff\xfe"),
        ("x.json", b'{"schema": "ci-agent.transcript/1"}'),
        ("x.jsonl", b""),
        ("x.jsonl", b'{"a": 1}\n'),
        ("x.jsonl", b'{"seq": 1, "kind": "something"}\n'),
    ],
)
def test_a_file_that_is_no_transcript_is_refused_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"{name}' is no transcript"):
        read_recorded_run(tmp_path / name)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for name in ("gone.json", "gone.jsonl"):
        with pytest.raises(ConfigurationError, match="cannot read"):
            read_recorded_run(tmp_path / name)


# Finding them


def test_a_folder_is_searched_for_transcripts_and_other_files_are_told(record: Record, tmp_path: Path) -> None:
    deep = tmp_path / "records" / "deep"
    deep.mkdir(parents=True)
    record(("ls", {})).rename(deep / "b.json")
    record(("ls", {}), name="t.jsonl").rename(tmp_path / "records" / "a.jsonl")
    for name, text in (("other.json", "{}"), ("broken.json", "{"), ("rows.jsonl", "1\n"), ("notes.txt", "x")):
        (tmp_path / "records" / name).write_text(text)
    found = find_transcripts([tmp_path / "records"])
    assert found == FoundFiles(
        (tmp_path / "records" / "a.jsonl", deep / "b.json"),
        tuple(tmp_path / "records" / name for name in ("broken.json", "other.json", "rows.jsonl")),
    )


def test_a_file_that_is_named_is_taken_for_a_transcript_once(tmp_path: Path) -> None:
    path = tmp_path / "any.name"
    assert find_transcripts([path, path]) == FoundFiles((path,), ())


def test_a_folder_without_a_transcript_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no transcript in the folder"):
        find_transcripts([tmp_path])


# Where they are decided


def test_calls_are_decided_where_the_run_worked_if_that_is_still_there(tmp_path: Path) -> None:
    here = RecordedRun("t.json", str(tmp_path), (), ())
    gone = RecordedRun("t.json", str(tmp_path / "gone"), (), ())
    lost = RecordedRun("t.json", None, (), ())
    assert whereabouts(here, None) == Whereabouts(str(tmp_path), "recorded")
    assert whereabouts(gone, None) == whereabouts(lost, None) == Whereabouts(".", "current")
    assert whereabouts(here, "/elsewhere") == Whereabouts("/elsewhere", "given")
