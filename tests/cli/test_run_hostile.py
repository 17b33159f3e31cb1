"""Attacks on the log of a CI job: a hijacked model and its tools say what they want, the runner obeys no line of it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Hostile = Callable[[int, int], Iterator[str]]
Runner = Callable[[str], list[str]]

RULES = """
rules:
  - {id: files, allow: [read, ls], path: "**"}
  - {id: say, allow: bash, command: ["cat **"]}
"""


@pytest.fixture
def model(workspace: Path, hostile_texts: Hostile) -> str:
    """A script whose every word is hostile: names of tools, arguments, results, errors, thoughts, answers."""
    texts = [text.replace("\ud800", "") for text in hostile_texts(400, 5)]
    (workspace / "hostile.txt").write_text("\n".join(texts), newline="")
    calls = [
        {"name": "bash", "arguments": {"command": "cat hostile.txt"}},
        {"name": "read", "arguments": {"path": "hostile.txt"}},
    ]
    for number, text in enumerate(texts[:60]):
        calls.append({"name": "read", "arguments": {"path": text}})
        calls.append({"name": "bash", "arguments": {"command": f"cat {text}"}})
        calls.append({"name": f"{text}{number}"[:60], "arguments": {text: text}})
        calls.append({"name": "read", "arguments_json": text})
    turns = [
        {"thinking": "\n".join(texts), "text": "\n".join(texts), "tool_calls": calls},
        {"text": "\n".join(texts)},
    ]
    (workspace / "script.yaml").write_text(as_yaml({"turns": turns}))
    return "scripted:script.yaml"


def as_yaml(value: object) -> str:
    """JSON in which what YAML does not take as it is is escaped, and nothing else: it takes no pair of surrogates."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


@pytest.mark.parametrize(
    ("output", "more"),
    [("json", ["--verbose"]), ("jsonl", []), ("text", []), ("text", ["--quiet", "--fail-on-error", "any"])],
    ids=["json", "jsonl", "text", "quiet"],
)
def test_attack_no_line_of_a_run_is_a_command_to_the_runner(
    output: str, more: list[str], ci_agent: Any, policy: Callable[[str], str], model: str, runner_commands: Runner
) -> None:
    flags = ["--policy", policy(RULES), "--model", model, "--output", output, *more]
    done = ci_agent("run", *flags, "Go.", env={"GITHUB_ACTIONS": "true"})
    assert "Traceback" not in done.stderr
    assert "add-mask" in done.stdout
    assert ("add-mask" in done.stderr) == ("--quiet" not in more or done.returncode != 0)
    assert runner_commands(done.stdout) == []
    folded = [] if "--quiet" in more else ["::group::ci-agent run", "::endgroup::"]
    assert runner_commands(done.stderr) == folded


def test_in_github_actions_the_lines_of_a_run_are_folded_and_the_outcome_stands_below(
    ci_agent: Any, policy: Callable[[str], str], script: Callable[[str], str]
) -> None:
    model = script("turns: [{tool_calls: [{name: ls, arguments: {path: .}}]}, {error: {message: overloaded}}]")
    for github in ({"GITHUB_ACTIONS": "true"}, {}):
        done = ci_agent("run", "--policy", policy(RULES), "--model", model, "Go.", env=github)
        lines = done.stderr.splitlines()
        folds = [number for number, line in enumerate(lines) if line.startswith("::")]
        (outcome,) = (at for at, line in enumerate(lines) if line.startswith("provider_error, exit code 4"))
        assert folds == ([0, outcome - 1] if github else [])


def test_attack_no_error_of_a_command_is_a_command_to_the_runner(
    ci_agent: Any, hostile_texts: Hostile, runner_commands: Runner
) -> None:
    text = "\n".join(hostile_texts(400, 6)).replace("\x00", "").replace("\ud800", "") + "\n::error::x\n##[error]y\n"
    name = text[-200:]  # what a file may be called
    for args in (
        ["report", name],
        ["run", "--policy", name, "--model", "scripted:x", "Go."],
        ["policy", "explain", "--policy", "read-only", "--tool", text, "--args", text],
        ["report", "--format", text, "x"],
        [text],
        ["run", f"--{text}"],
    ):
        done = ci_agent(*args, env={"GITHUB_ACTIONS": "true"})
        assert "Traceback" not in done.stderr
        assert done.stdout + done.stderr
        assert runner_commands(done.stdout + done.stderr) == [], args
