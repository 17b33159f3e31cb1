"""Files made to cost time or memory: the real command refuses or reads them within limits that the system holds."""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

MIB = 1024 * 1024

MAX_PEAK_MB = 200

QUICK = (
    "billion laughs",
    "a python object",
    "a list 5,000 deep",
    "a million empty lists",
    "a hundred thousand deep",
    "a key twice",
    "report",
    "a script",
)
"""What the normal suite tries: each try starts the command, which takes a second."""


def each(names: Iterable[str]) -> list[Any]:
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.hard) for name in names]


LAUGHS = "a0: &a0 [x, x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))

YAML_BOMBS = {
    "billion laughs": LAUGHS,
    "merge keys": "base: &b {allow: read}\nrules:\n" + "  - {<<: *b, id: x}\n" * 1_000,
    "a python object": "policy: !!python/object/apply:os.system ['touch canary']\n",
    "a list 5,000 deep": "[" * 5_000 + "]" * 5_000,
    "a list four million deep": "[" * (4 * MIB),
    "mappings one in the other": "".join(" " * depth + "a:\n" for depth in range(2_000)),
    "a million empty lists": "[" + "[]," * (4 * MIB // 3 - 1) + "]",
    "a million empty mappings": "a: [" + "{}," * (4 * MIB // 3 - 3) + "]",
    "two million items": "[" + "a," * (2 * MIB - 1) + "]",
    "half a million keys": "{" + "".join(f"k{n}: 1," for n in range(350_000)) + "}",
    "a key half a million times": "{" + "k: 1," * 700_000 + "}",
    "anchors": "".join(f"- &a{n} x\n" for n in range(300_000)),
    "a number of four million digits": "policy: " + "9" * (4 * MIB - 100),
    "one long word": "a" * (4 * MIB),
    "one long quoted text": '"' + "\\x41" * (MIB - 10) + '"',
    "only quotes": "'" * (4 * MIB),
    "only tabs": "\t" * (4 * MIB),
    "only line ends": "a: |\n" + "\n" * (4 * MIB - 10),
    "only question marks": "? " * (2 * MIB),
    "only dashes": "- " * (2 * MIB),
    "only colons": ": " * (2 * MIB),
    "only comments": "#\n" * (2 * MIB),
    "only documents": "---\n" * MIB,
    "invisible characters": "\u200b" * MIB,
    "more than may be read": "#" * (4 * MIB + 1),
}


@pytest.mark.parametrize("name", each(YAML_BOMBS))
def test_a_policy_that_is_a_bomb_is_refused_soon_and_in_little_memory(bounded: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "bomb.yml").write_text(YAML_BOMBS[name])
    outcome = bounded("policy", "check", "bomb.yml")
    assert (outcome.code, outcome.stdout) == (3, "")
    assert outcome.stderr.startswith(("ci-agent: bomb.yml:", "ci-agent: cannot read the policy 'bomb.yml'"))
    assert len(outcome.stderr) < 10_000
    assert outcome.peak_mb < MAX_PEAK_MB
    assert not (tmp_path / "canary").exists()


OTHER_READERS: dict[str, tuple[str, ...]] = {
    "a script": ("run", "--policy", "deny-all", "--model", "scripted:bomb.yml", "Go."),
    "a list of models": ("models", "--models-file", "bomb.yml"),
    "a config file": ("run", "--config", "bomb.yml", "Go."),
}


@pytest.mark.parametrize("reader", each(OTHER_READERS))
@pytest.mark.parametrize(
    "name", each(["billion laughs", "a list four million deep", "a million empty lists", "a python object"])
)
def test_every_other_yaml_file_that_is_a_bomb_is_refused_likewise(
    bounded: Any, tmp_path: Path, name: str, reader: str
) -> None:
    (tmp_path / "bomb.yml").write_text(YAML_BOMBS[name])
    outcome = bounded(*OTHER_READERS[reader])
    assert (outcome.code, outcome.stdout) == (3, "")
    assert outcome.stderr.startswith("ci-agent: bomb.yml:")
    assert outcome.peak_mb < MAX_PEAK_MB
    assert not (tmp_path / "canary").exists()


JSON_BOMBS = {
    "a hundred thousand deep": "[" * 100_000 + "]" * 100_000,
    "objects a hundred thousand deep": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "ten million brackets": "[" * 10_000_000,
    "a number of ten million digits": "1" * 10_000_000,
    "a number that is infinite": '{"a": 1e999}',
    "no number": '{"a": NaN}',
    "a key twice": '{"schema": 1, "schema": 2}',
    "half a character": '{"schema": "\\ud800"}',
    "a byte order mark": '\ufeff{"schema": 1}',
    "more behind the end": "{} {}",
    "zeros": "\x00" * MIB,
    "a long text that does not end": '"' + "\\" * 8 * MIB,
    "a million lists": "[" + "[]," * MIB + "[]]",
}

JSON_READERS: dict[str, tuple[str, ...]] = {
    "report": ("report", "bomb.json"),
    "replay": ("policy", "replay", "--policy", "deny-all", "bomb.json"),
    "suggest": ("policy", "suggest", "--policy", "deny-all", "bomb.json"),
    "output schema": (
        *("run", "--policy", "deny-all", "--model", "scripted:gone.yaml"),
        *("--output-schema", "bomb.json", "Go."),
    ),
}


@pytest.mark.parametrize("reader", each(JSON_READERS))
@pytest.mark.parametrize("name", each(JSON_BOMBS))
def test_a_json_file_that_is_a_bomb_is_refused_soon_and_in_little_memory(
    bounded: Any, tmp_path: Path, name: str, reader: str
) -> None:
    (tmp_path / "bomb.json").write_text(JSON_BOMBS[name])
    outcome = bounded(*JSON_READERS[reader])
    assert (outcome.code, outcome.stdout) == (3, "")
    assert outcome.stderr.startswith("ci-agent: ")
    assert outcome.stderr.count("\n") == 1
    assert len(outcome.stderr) < 2_000
    assert outcome.peak_mb < MAX_PEAK_MB


@pytest.mark.parametrize("name", each(JSON_BOMBS))
def test_a_record_that_is_a_bomb_does_not_verify(bounded: Any, tmp_path: Path, name: str) -> None:
    for file in ("bomb.json", "bomb.jsonl"):
        (tmp_path / file).write_text(JSON_BOMBS[name] + "\n")
        outcome = bounded("transcript", "verify", file)
        assert (outcome.code, outcome.stderr) == (1, "")
        assert len(outcome.stdout) < 2_000
        assert outcome.peak_mb < MAX_PEAK_MB


@pytest.mark.parametrize("reader", each(["report", "replay", "suggest"]))
def test_a_record_that_is_no_regular_file_is_refused_without_waiting(
    bounded: Any, tmp_path: Path, reader: str, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "bomb.json")
    outcome = bounded(*JSON_READERS[reader])
    assert outcome.code == 3
    assert outcome.stderr.count("\n") == 1


def make_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_terabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1024**4)


@pytest.fixture(params=[os.mkfifo, make_endless, make_terabyte], ids=["pipe", "endless", "terabyte"])
def make(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize(
    "command",
    [
        ("transcript", "verify"),
        pytest.param(("transcript", "recover"), marks=pytest.mark.hard),
        pytest.param(("report",), marks=pytest.mark.hard),
    ],
)
def test_a_journal_that_is_no_regular_file_is_refused_without_waiting(
    bounded: Any, tmp_path: Path, command: tuple[str, ...], make: Callable[[Path], None]
) -> None:
    make(tmp_path / "t.json.journal")
    outcome = bounded(*command, "t.json.journal")
    assert (outcome.code, outcome.stderr.count("\n")) == (3, 1)


@pytest.mark.parametrize("name", each(JSON_BOMBS))
def test_arguments_that_are_a_bomb_are_explained_as_denied(bounded: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "calls.jsonl").write_text('{"tool": "read", "args": ' + JSON_BOMBS[name].replace("\n", " ") + "}\n")
    outcome = bounded("policy", "explain", "--policy", "read-only", "--calls", "calls.jsonl", "--format", "json")
    assert outcome.code in (1, 3)  # a call that can never be made, and a line that is none
    if outcome.code == 1:
        explained = json.loads(outcome.stdout)
        assert (explained["effect"], explained["code"]) == ("deny", "arguments")
    assert outcome.peak_mb < 2 * MAX_PEAK_MB  # the line, its text, and the value
