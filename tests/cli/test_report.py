"""`ci-agent report`, the real command: each format of a real run, files that are whole, one line for what is wrong."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from ci_agent.reports.table import FORMATS

Write = Callable[[str], str]

TURNS = """
turns:
  - tool_calls:
      - {name: ls, arguments: {path: .}}
      - {name: bash, arguments: {command: git push}}
      - {name: read, arguments: {path: gone.txt}}
  - text: Done.
"""

BEGINNINGS = {
    "text": "Run ",
    "markdown": "## ✅ ci-agent: completed, exit code 0\n",
    "github": "::group::turn 1: 3 calls (1 denied, 1 error, 1 ok)\n",
    "junit": '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="ci-agent" tests="3" failures="0" errors="0"',
    "sarif": '{"$schema":',
    "codequality": '[{"description":',
    "html": "<!doctype html>",
}


@pytest.fixture
def transcript(ci_agent: Any, script: Write) -> str:
    flags = ["--policy", "read-only", "--model", script(TURNS), "--transcript", "t.json", "--keep-journal"]
    done = ci_agent("run", *flags, "Go.")
    assert done.returncode == 0, done.stderr
    return "t.json"


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_on_stdout_and_in_a_file_is_the_same_also_of_the_journal(
    name: str, ci_agent: Any, transcript: str, workspace: Path
) -> None:
    shown = ci_agent("report", transcript, "--format", name)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.lower().startswith(BEGINNINGS[name].lower())
    assert shown.stdout.endswith("\n")
    (workspace / "out").write_text("old")
    written = ci_agent("report", f"{transcript}.journal", "--format", name, "--output", "out")
    assert (written.returncode, written.stdout, written.stderr) == (0, "", "")
    assert (workspace / "out").read_text() == shown.stdout
    assert [file.name for file in workspace.iterdir() if file.name.startswith(".")] == []


def test_machine_formats_are_read_by_their_parsers(ci_agent: Any, transcript: str) -> None:
    suite = ET.fromstring(ci_agent("report", transcript, "--format", "junit").stdout.encode())[0]
    assert [case.get("name") for case in suite.iter("testcase")] == ["ls .", "bash git push", "read gone.txt"]
    run = json.loads(ci_agent("report", transcript, "--format", "sarif").stdout)["runs"][0]
    assert [result["ruleId"] for result in run["results"]] == ["denied/default", "error/execute"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.json", None, "cannot read the transcript 'gone.json': No such file or directory"),
        (".", None, "cannot read the transcript '.': Is a directory"),
        ("a.json", "", "'a.json' is no transcript: it is no JSON document"),
        ("a.json", "[]", "'a.json' is no transcript: it is no JSON object"),
        ("a.json", '{"schema": "ci-agent.transcript/1"}', "'a.json' is no transcript: run: Field required"),
        (
            "a.json",
            '{"schema": "ci-agent.transcript/2"}',
            "'a.json' is a transcript of another version (ci-agent.transcript/2)",
        ),
        ("a.jsonl", '{"kind": "x"}\n', "'a.jsonl' is no transcript: no line of it is a record of a run"),
    ],
)
def test_what_is_no_transcript_is_refused_in_one_line(
    name: str, content: str | None, message: str, ci_agent: Any, workspace: Path
) -> None:
    if content is not None:
        (workspace / name).write_text(content)
    done = ci_agent("report", name)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert done.stderr.startswith(f"ci-agent: {message}")


@pytest.mark.parametrize("output", ["no/such/folder", ".", "/dev/null", "/dev/stdout"])
def test_a_file_that_cannot_take_the_report_is_refused_in_one_line(output: str, ci_agent: Any, transcript: str) -> None:
    done = ci_agent("report", transcript, "--output", output)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)


def test_a_report_does_not_take_the_place_of_its_record(ci_agent: Any, transcript: str, workspace: Path) -> None:
    record = (workspace / transcript).read_bytes()
    (workspace / "link").symlink_to(transcript)
    done = ci_agent("report", transcript, "--format", "html", "--output", "link")
    assert (done.returncode, "would take the place of the record" in done.stderr) == (2, True)
    assert (workspace / transcript).read_bytes() == record


def test_an_unknown_format_is_a_usage_error_that_names_the_known(ci_agent: Any, transcript: str) -> None:
    done = ci_agent("report", transcript, "--format", "xml")
    assert done.returncode == 2
    assert all(f"'{name}'" in done.stderr for name in FORMATS)


def test_in_a_terminal_lines_fit_and_have_colours_unless_unwanted(
    transcript: str, workspace: Path, environment: Mapping[str, str]
) -> None:
    def shown(**more: str) -> str:
        ours, theirs = pty.openpty()
        command = [sys.executable, "-P", "-m", "ci_agent", "report", transcript]
        env = {**environment, "COLUMNS": "60", **more}
        subprocess.run(command, cwd=workspace, env=env, stdout=theirs, check=True, timeout=110)
        os.close(theirs)
        text = b""
        while chunk := _read(ours):
            text += chunk
        os.close(ours)
        return text.decode().replace("\r\n", "\n")

    colored, plain = shown(), shown(NO_COLOR="1")
    assert "\x1b[31mdenied" in colored
    assert re.sub("\x1b\\[\\d+m", "", colored) == plain
    calls = plain.split("\n\n")[1].splitlines()
    assert max(map(len, calls)) <= 60
    assert any(line.startswith("             | ") for line in calls)


def _read(terminal: int) -> bytes:
    """What the terminal still holds; Linux answers EIO once nobody has its other end."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""


def test_reports_name_files_from_the_top_of_the_repository_though_the_workspace_is_a_part_of_it(
    ci_agent: Any, script: Write, policy: Write, workspace: Path
) -> None:
    (workspace / ".git").mkdir()
    (workspace / "app").mkdir()
    rules = policy("rules:\n  - {id: look, allow: read}\n  - {id: no-key, deny: read, path: ['**/key']}\n")
    calls = "{name: read, arguments: {path: gone.txt}}, {name: read, arguments: {path: key}}"
    model = script(f"turns:\n  - tool_calls: [{calls}]\n  - text: Done.\n")
    ci_agent("run", "--policy", rules, "--model", model, "--workspace", "app", "--transcript", "t.json", "Go.")
    annotated = ci_agent("report", "t.json", "--format", "github").stdout
    assert re.findall("file=[^:]*", annotated) == ["file=policy.yml,line=4", "file=app/gone.txt"]
    (run,) = json.loads(ci_agent("report", "t.json", "--format", "sarif").stdout)["runs"]
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{workspace.resolve().as_uri()}/"
    places = [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]]
    assert places == ["policy.yml", "app/gone.txt"]
    found = json.loads(ci_agent("report", "t.json", "--format", "codequality").stdout)
    assert [each["location"]["path"] for each in found] == places
