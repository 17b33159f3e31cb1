"""`tools`, `report`, `transcript`, help and version."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ci_agent import __version__
from ci_agent.cli.app import COMMANDS

Write = Callable[[str], str]


@pytest.fixture
def transcript(ci_agent: Any, script: Write, workspace: Path) -> Path:
    model = script(
        "turns: [{tool_calls: [{name: ls, arguments: {}}, {name: bash, arguments: {command: id}}]}, {text: Ok.}]"
    )
    done = ci_agent("run", "--policy", "read-only", "--model", model, "--transcript", "t.json", "--keep-journal", "Go.")
    assert done.returncode == 0, done.stderr
    return workspace / "t.json"


def test_tools_lists_each_tool_with_a_closed_schema(ci_agent: Any) -> None:
    tools = json.loads(ci_agent("tools", "--format", "json").stdout)
    assert [(tool["name"], tool["execution_mode"]) for tool in tools] == [
        ("read", "parallel"),
        ("write", "sequential"),
        ("edit", "sequential"),
        ("grep", "parallel"),
        ("find", "parallel"),
        ("ls", "parallel"),
        ("fetch", "parallel"),
        ("propose", "sequential"),
        ("bash", "sequential"),
    ]
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool["parameters"])
        assert tool["parameters"]["additionalProperties"] is False
    assert ci_agent("tools").stdout.startswith("read(path, offset?, limit?)  parallel\n")


def test_report_shows_the_denial_before_the_rest(ci_agent: Any, transcript: Path) -> None:
    done = ci_agent("report", transcript.name)
    lines = [line.split()[0] for line in done.stdout.splitlines() if "#" in line]
    assert (done.returncode, lines) == (0, ["denied", "ok"])


def test_a_whole_transcript_verifies_and_an_edited_one_does_not(ci_agent: Any, transcript: Path) -> None:
    whole = ci_agent("transcript", "verify", "t.json")
    assert (whole.returncode, whole.stdout) == (0, "t.json: whole\n")
    assert ci_agent("transcript", "verify", "t.json.journal").returncode == 0
    transcript.write_text(transcript.read_text().replace('"denied"', '"ok"', 1))
    edited = ci_agent("transcript", "verify", "t.json")
    assert (edited.returncode, "Traceback" in edited.stderr) == (1, False)


def test_recover_without_a_journal_is_refused(ci_agent: Any) -> None:
    done = ci_agent("transcript", "recover", "gone.json")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)


def test_recover_says_what_it_has_recovered(ci_agent: Any, transcript: Path) -> None:
    transcript.unlink()
    done = ci_agent("transcript", "recover", "t.json")
    assert (done.returncode, done.stdout) == (0, "t.json\n")
    assert done.stderr == "recovered: 2 turns, 2 calls (1 denied, 1 ok)\n"


def test_the_fields_of_the_items_of_a_list_are_shown(ci_agent: Any) -> None:
    assert "\nedit(path, edits: [{old, new}])  sequential\n" in ci_agent("tools").stdout


def test_a_denial_by_default_is_answered_with_the_command_that_proposes_rules(ci_agent: Any, script: Write) -> None:
    model = script("turns: [{tool_calls: [{name: bash, arguments: {command: id}}]}, {text: Ok.}]")
    done = ci_agent("run", "--policy", "read-only", "--model", model, "--transcript", "t.json", "Go.")
    said = "Rules for what no rule allows: `ci-agent policy suggest --policy read-only {}`."
    assert f"  Next: {said.format('t.json')}\n" in done.stderr
    assert said.format("TRANSCRIPT") in ci_agent("report", "t.json", "--format", "markdown").stdout
    assert ci_agent("policy", "suggest", "--policy", "read-only", "t.json").returncode == 0


def test_the_schemas_of_transcript_and_journal_are_printed(ci_agent: Any, transcript: Path) -> None:
    schema = json.loads(ci_agent("transcript", "schema").stdout)
    jsonschema.Draft202012Validator(schema).validate(json.loads(transcript.read_text()))
    line_schema = json.loads(ci_agent("transcript", "schema", "--journal").stdout)
    for line in Path(f"{transcript}.journal").read_text().splitlines():
        jsonschema.Draft202012Validator(line_schema).validate(json.loads(line))


@pytest.mark.parametrize("name", ["gone.json", ".", "script.yaml"])
def test_a_report_of_something_else_is_refused_in_one_line(ci_agent: Any, script: Write, name: str) -> None:
    script("turns: [{text: hi}]")
    done = ci_agent("report", name)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["policy", "check"], ["transcript", "verify"]])
def test_every_command_has_help_with_an_example(ci_agent: Any, command: list[str]) -> None:
    done = ci_agent(*command, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout or "Commands:" in done.stdout


def test_an_unknown_command_is_a_usage_error(ci_agent: Any) -> None:
    assert ci_agent("rnu").returncode == 2


def test_version_and_help_import_nothing_heavy(ci_agent: Any) -> None:
    probe = (
        "import sys, atexit; sys.argv = ['ci-agent', {flag!r}]\n"
        "heavy = {{'httpx', 'pydantic', 'jsonschema', 'yaml', 'tree_sitter', 're2', 'asyncio'}}\n"
        "atexit.register(lambda: print('loaded:', sorted(heavy & sys.modules.keys())))\n"
        "from ci_agent.__main__ import main\n"
        "main()\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", probe.format(flag=flag)], capture_output=True, text=True, check=True, timeout=60
        ).stdout
        for flag in ("--version", "--help")
    ]
    assert outputs[0] == f"ci-agent {__version__}\nloaded: []\n"
    assert outputs[1].endswith("loaded: []\n")


def test_nothing_is_imported_from_the_current_folder(ci_agent: Any, workspace: Path) -> None:
    for name in ("json", "yaml", "click", "sitecustomize"):
        (workspace / f"{name}.py").write_text("raise SystemExit('imported from the workspace')\n")
    assert ci_agent("tools", "--format", "json").returncode == 0
