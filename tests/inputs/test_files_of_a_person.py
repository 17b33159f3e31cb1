"""Policies, scripts, lists of models and config files of any content: a value, or a refusal with its place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ci_agent
from ci_agent import load_policy
from ci_agent.errors import ConfigurationError
from ci_agent.providers.catalog import load_catalog
from ci_agent.providers.script import read_script
from ci_agent.tasks import load_task

POLICIES = [path.read_text() for path in sorted((Path(ci_agent.__file__).parent / "policies").glob("*.yml"))]

SCRIPT = """\
turns:
  - thinking: Where?
    text: I look.
    tool_calls:
      - {id: tree, name: ls, arguments: {path: .}}
      - {name: write, arguments_json: '{"path": "a.txt", "cont'}
  - expect: {tree: README.md}
    text: "It begins with {{ result.tree }}"
    stop_reason: stop
    usage: {input_tokens: 120, output_tokens: 30}
    delay_s: 0.0
  - error: {message: overloaded, retryable: true}
"""

MODELS = "models:\n  a:b: {price: {input: 1.5, output: 2, cache_read: 0.1}, context_tokens: 10, thinks: true}\n"

CONFIG = (
    "policy: read-only\nmodel: scripted:s.yaml\nmax-turns: 3\nverbose: true\ncontext-file: [a]\nmax-cost-usd: 0.5\n"
)

PIECES = st.sampled_from(
    [
        *"{}[]:,-#&*!|>%@`'\"?\t\n\r ~<=0",
        "\ufeff",
        "\x00",
        "\x1b",
        "\x85",
        "\u2028",
        "\u202e",
        "\ud83d\ude00",
        "<<: ",
        "*a",
        "&a ",
        "!!python/object:os.system ",
        "---\n",
        "...\n",
        "%YAML 1.1\n",
        "null",
        "yes",
        "1e999",
        ".inf",
        ".nan",
        "0x10",
        "1_000",
        "12:30",
        "9" * 5_000,
        "[" * 40,
        "{a: " * 40,
        "'" * 3,
        "a" * 5_000,
        "{{ result.tree }}",
        "- id: x\n",
        "rules: []\n",
        "extends: [policy.yml]\n",
        "extends: [../../../../etc/passwd]\n",
        "  ",
    ]
)

pieces = st.one_of(PIECES, st.text(max_size=8))

edits = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.2), pieces), max_size=4)


def edited(text: str, changes: list[tuple[float, float, str]]) -> str:
    for where, length, piece in changes:
        start = int(where * len(text))
        text = text[:start] + piece + text[start + int(length**3 * len(text)) :]
    return text


def as_bytes(text: str, tail: bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") + tail


TASK = """\
task: 1
description: Review a change.
prompt: |
  Review what changed since {{ base }}, {{depth}} levels deep. {{ files }}
inputs:
  base: {default: origin/main, pattern: "[A-Za-z0-9_./-]+", max: 40}
  depth: {type: integer, default: 3, min: 1, max: 5}
  level: {type: choice, of: [low, high], default: low}
  body: {type: text, default: ""}
policy: ../policies/night.yml
context_files: [style.md]
output_schema: answer.schema.json
"""

READERS: dict[str, tuple[list[str], Callable[[Path], object]]] = {
    "policy": (POLICIES, lambda path: load_policy(path, workspace=path.parent)),
    "script": ([SCRIPT], read_script),
    "models": ([MODELS], load_catalog),
    "task": ([TASK], load_task),
}


def refused(read: Callable[[Path], object], path: Path) -> str | None:
    """What a reader says against a file; None when it takes it."""
    try:
        read(path)
    except ConfigurationError as error:
        return str(error)
    return None


@pytest.mark.parametrize("kind", READERS)
@given(data=st.data(), changes=edits, tail=st.binary(max_size=3))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_with_anything_anywhere_is_read_or_refused_at_its_place(
    tmp_path: Path, kind: str, data: st.DataObject, changes: Any, tail: bytes
) -> None:
    originals, read = READERS[kind]
    path = tmp_path / "policy.yml"
    path.write_bytes(as_bytes(edited(data.draw(st.sampled_from(originals)), changes), tail))
    refusal = refused(read, path)
    assert refusal is None or (refusal.startswith(f"{path}:") and len(refusal) < 20_000)


@pytest.mark.parametrize("kind", READERS)
@given(
    content=st.one_of(
        st.binary(max_size=200), st.lists(pieces, max_size=12).map(lambda parts: as_bytes("".join(parts), b""))
    )
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_made_of_nothing_known_is_refused(tmp_path: Path, kind: str, content: bytes) -> None:
    _, read = READERS[kind]
    path = tmp_path / "policy.yml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:")


@given(changes=edits, tail=st.binary(max_size=3))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_config_file_with_anything_anywhere_is_read_or_refused(
    command: Callable[..., Any], tmp_path: Path, changes: Any, tail: bytes
) -> None:
    path = tmp_path / "config.yml"
    path.write_bytes(as_bytes(edited(CONFIG, changes), tail))
    outcome = command("run", "--config", str(path))  # and no prompt: nothing begins
    assert outcome.code in {2, 3}


@given(content=st.one_of(st.binary(max_size=100), st.text(max_size=100).map(lambda text: as_bytes(text, b""))))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_prompts_and_contexts_of_any_bytes_are_taken_or_refused(
    command: Callable[..., Any], tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    known = ("run", "--policy", "deny-all", "--model", f"scripted:{tmp_path / 'gone.yaml'}", "--quiet")
    for arguments in (
        ("--prompt-file", str(path)),
        ("--context-file", str(path), "Go."),
        ("--system-file", str(path), "Go."),
    ):
        assert command(*known, *arguments).code in {2, 3}  # the script is not there
