"""Records that an enemy wrote: every reader gives a value or one line of refusal, and nothing acts on a terminal."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent import RunSettings, load_policy, run
from ci_agent.errors import ConfigurationError
from ci_agent.transcript.records import document_problems

SCRIPT = """
turns:
  - text: I look.
    thinking: Where?
    tool_calls:
      - {name: ls, arguments: {}}
      - {name: read, arguments: {path: gone.txt}}
      - {name: bash, arguments: {command: "git push"}}
      - {name: nothing, arguments: {}}
      - {name: read, arguments_json: '{"path"'}
  - text: Done.
"""

DEEP: Any = json.loads("[" * 80 + "]" * 80)

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    10**400,
    2**63,
    "",
    "x",
    "\x1b]0;title\x07\x1b[31m\u202e\u200b",
    "\ud800",
    "\x00",
    "::error::canary",
    "##[error]canary",
    "y" * 5_000,
    "2026-13-45T99:99:99.999Z",
    [],
    {},
    [None],
    {"type": "text"},
    {"role": "tool_result", "call": 1},
    DEEP,
    {"": {"": DEEP}},
)

FORMATS = ("text", "markdown", "github", "junit", "sarif", "codequality", "html")

READERS = (
    *(("report", "--format", name) for name in FORMATS),
    ("transcript", "verify"),
    ("diff", "{folder}/whole.json"),
    ("diff", "--format", "json", "{folder}/whole.json"),
    ("policy", "replay", "--policy", "read-only"),
    ("policy", "suggest", "--policy", "read-only"),
    ("policy", "replay", "--policy", "read-only", "--format", "json"),
    ("policy", "suggest", "--policy", "read-only", "--format", "json"),
)

CODES = {0, 1, 3}

OPTIONAL = ("redactions", "arguments_json", "decision", "arguments", "replay", "unknown", "estimated", "kind", "seal")
"""Keys that a record may have and that most lack."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records")


@pytest.fixture(scope="session")
def document(folder: Path) -> Any:
    """A real run, with its journal beside it."""
    (folder / "ws").mkdir()
    (folder / "script.yaml").write_text(SCRIPT)
    policy = load_policy("read-only", workspace=folder / "ws")
    model = f"scripted:{folder / 'script.yaml'}"
    place = folder / "whole.json"
    return run(RunSettings(prompt="Go.", policy=policy, model=model, transcript=place, keep_journal=True)).transcript


@pytest.fixture(scope="session")
def lines(folder: Path, document: Any) -> list[bytes]:
    return (folder / "whole.json.journal").read_bytes().splitlines(keepends=True)


def check(command: Callable[..., Any], reader: tuple[str, ...], file: Path) -> None:
    outcome = command(*(word.format(folder=file.parent) for word in reader), str(file))
    assert outcome.code in CODES
    for text in (outcome.stdout, outcome.stderr):
        assert not {"\x1b", "\x07", "\u202e", "\x00"} & set(text)
        assert not [
            line for line in text.splitlines() if line.lstrip().startswith(("::error::canary", "##[error]canary"))
        ]


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path of keys and indexes in a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places_in(item, (*path, key)))]


def with_change(value: Any, path: tuple[Any, ...], new: Any, how: str) -> Any:
    changed = copy.deepcopy(value)
    if not path:
        return new
    parent = changed
    for step in path[:-1]:
        parent = parent[step]
    if how == "add" and isinstance(parent, dict):
        parent[OPTIONAL[len(json.dumps(parent)) % len(OPTIONAL)]] = new
    elif how == "remove":
        del parent[path[-1]]
    elif how == "double" and isinstance(parent, list):
        parent.append(parent[path[-1]])
    else:
        parent[path[-1]] = new
    return changed


changes = st.tuples(
    st.floats(0, 1, exclude_max=True), st.sampled_from(HOSTILE), st.sampled_from(["set", "remove", "double", "add"])
)


def changed(value: Any, edits: list[tuple[float, Any, str]]) -> Any:
    for where, new, how in edits:
        places = places_in(value)
        value = with_change(value, places[int(where * len(places))], new, how)
    return value


@given(st.lists(changes, min_size=1, max_size=3), st.sampled_from(READERS))
@settings(max_examples=100, deadline=None)
def test_a_document_with_anything_anywhere_is_read_or_refused(
    command: Callable[..., Any], folder: Path, document: Any, edits: Any, reader: tuple[str, ...]
) -> None:
    file = folder / "changed.json"
    file.write_text(json.dumps(changed(document, edits)))
    check(command, reader, file)


@given(st.data(), st.sampled_from(READERS))
@settings(max_examples=80, deadline=None)
def test_a_journal_with_any_records_in_any_order_is_read_or_refused(
    command: Callable[..., Any], folder: Path, lines: list[bytes], data: st.DataObject, reader: tuple[str, ...]
) -> None:
    kept = [json.loads(line) for line in data.draw(st.lists(st.sampled_from(lines), max_size=12))]
    edited = [
        changed(record, data.draw(st.lists(changes, max_size=1))) if data.draw(st.booleans()) else record
        for record in kept
    ]
    file = folder / "changed.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in edited))
    check(command, reader, file)


@given(st.data(), st.sampled_from(READERS), st.sampled_from([".json", ".jsonl"]))
@settings(max_examples=60, deadline=None)
def test_bytes_that_were_cut_or_changed_are_read_or_refused(
    command: Callable[..., Any],
    folder: Path,
    lines: list[bytes],
    data: st.DataObject,
    reader: tuple[str, ...],
    suffix: str,
) -> None:
    whole = (folder / "whole.json").read_bytes() if suffix == ".json" else b"".join(lines)
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    file = folder / f"bytes{suffix}"
    file.write_bytes(whole[:start] + data.draw(st.binary(max_size=20)) + whole[end:])
    check(command, reader, file)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_whatever_a_journal_holds_what_is_recovered_of_it_is_valid(
    command: Callable[..., Any], folder: Path, lines: list[bytes], data: st.DataObject
) -> None:
    edited = [
        json.dumps(changed(json.loads(line), data.draw(st.lists(changes, max_size=1)))).encode() + b"\n"
        for line in data.draw(st.lists(st.sampled_from(lines), max_size=12))
    ]
    journal = folder / "r.json.journal"
    journal.write_bytes(b"".join(edited) + data.draw(st.binary(max_size=10)))
    outcome = command("transcript", "recover", str(folder / "r.json"))
    assert outcome.code in {0, 3}
    if outcome.code == 0:
        place = Path(outcome.stdout.strip())
        check(command, ("report",), place)
        assert command("report", str(place)).code == 0
        place.unlink()


@given(st.lists(changes, min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_a_document_with_anything_anywhere_is_played_again_or_refused(folder: Path, document: Any, edits: Any) -> None:
    file = folder / "played.json"
    file.write_text(json.dumps(changed(document, edits)))
    policy = load_policy("read-only", workspace=folder / "ws")
    try:
        result = run(RunSettings(prompt="Go.", policy=policy, model=f"replay:{file}", replay_tools=True))
    except ConfigurationError:
        return
    assert document_problems(result.transcript) == []
    assert result.exit_code in {0, 4, 5, 6}


@pytest.mark.parametrize("key", OPTIONAL)
def test_an_optional_key_that_is_null_is_read_or_refused(
    command: Callable[..., Any], folder: Path, document: Any, lines: list[bytes], key: str
) -> None:
    changed_document = copy.deepcopy(document)
    for call in changed_document["tool_calls"]:
        call[key] = None
    for name, text in {
        "null.json": json.dumps(changed_document),
        "null.jsonl": "".join(f"{json.dumps({**json.loads(line), key: None})}\n" for line in lines),
    }.items():
        (folder / name).write_text(text)
        for reader in READERS:
            check(command, reader, folder / name)
