"""A file that a command cannot use is told by what it is and what the command wants, in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CIAgent = Callable[..., Any]

RUN = ("run", "--policy", "read-only", "--model", "scripted:s.yaml", "--quiet")


@pytest.fixture(autouse=True)
def script(workspace: Path) -> None:
    turn = "{tool_calls: [{name: bash, arguments: {command: make}}]}"
    (workspace / "s.yaml").write_text(f"turns: [{turn}, {{text: x}}]\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "missing"),
        ('{"schema": "ci-agent.proposals/1"}', '"ci-agent.proposals/1"'),
        ('{"schema": 7}', "7"),
        ('{"schema": "\\u001b[31m"}', '"\\u001b[31m"'),
    ],
)
def test_what_is_no_transcript_has_one_problem(ci_agent: CIAgent, workspace: Path, text: str, said: str) -> None:
    (workspace / "a.json").write_text(text)
    kind = f'it is a file of another kind: a transcript has the schema "ci-agent.transcript/1", and here that is {said}'
    verified = ci_agent("transcript", "verify", "a.json")
    assert (verified.returncode, verified.stdout) == (1, f"a.json: {kind}\n")
    shown = ci_agent("report", "a.json")
    assert (shown.returncode, shown.stderr) == (3, f"ci-agent: 'a.json' is no transcript: {kind}\n")


@pytest.mark.parametrize("text", ["{}", "[]", None], ids=str)
def test_what_holds_no_proposals_is_told_by_its_kind(ci_agent: CIAgent, workspace: Path, text: str | None) -> None:
    if text is None:
        ci_agent(*RUN, "--transcript", "a.json", "Look.")
    else:
        (workspace / "a.json").write_text(text)
    kind = "it is a file of another kind" if text else "it is the transcript of a run"
    done = ci_agent("apply", "a.json", "--policy", "read-only", "--dry-run")
    wanted = "give the file that `ci-agent run --proposals FILE` has written"
    assert (done.returncode, done.stderr) == (3, f"ci-agent: 'a.json' holds no proposals: {kind}; {wanted}\n")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
@pytest.mark.parametrize(
    ("option", "told"),
    [
        (("--transcript", "/proc/x.json"), "for writing: no file can be made in that folder"),
        (
            ("--answer-file", "/proc/x"),
            "the answer file '/proc/x' cannot be written: name a file in an existing folder",
        ),
        (("--report", "text=/proc/x"), "the report '/proc/x' cannot be written: name a file in an existing folder"),
    ],
)
def test_where_the_kernel_makes_no_files_the_message_does_not_miss_a_folder(
    ci_agent: CIAgent, option: tuple[str, str], told: str
) -> None:
    done = ci_agent(*RUN, *option, "Look.")
    assert (done.returncode, told in done.stderr.splitlines()[0]) == (3, True), done.stderr


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ('"objct"', "\"objct\" is no type; did you mean 'object'? (array, "),
        ('["string", "nul"]', "\"nul\" is no type; did you mean 'null'? (array, "),
        ("5", "5 is no type (array, boolean, integer, null, number, object, string)"),
        ("[]", "a type is one name, or a list of different ones"),
    ],
)
def test_a_type_that_there_is_not_is_told_with_those_there_are(
    ci_agent: CIAgent, workspace: Path, kind: str, problem: str
) -> None:
    (workspace / "schema.json").write_text(f'{{"type": {kind}}}')
    done = ci_agent(*RUN, "--output-schema", "schema.json", "Look.")
    assert (done.returncode, f"output schema is wrong at $.type: {problem}" in done.stderr) == (3, True), done.stderr


def test_rules_for_a_shipped_policy_go_into_a_file_that_extends_it(ci_agent: CIAgent) -> None:
    ci_agent(*RUN, "--transcript", "t.json", "Look.")
    head = ci_agent("policy", "suggest", "--policy", "read-only", "t.json").stdout.splitlines()[0]
    assert head.endswith("goes beneath `rules:` in a file of yours with `extends: [read-only]`")


def test_all_wrong_entries_of_extends_are_told(ci_agent: CIAgent, workspace: Path) -> None:
    (workspace / "p.yml").write_text("policy: 1\nextends: [reviw, read-only, ./gone.yml]\n")
    done = ci_agent("policy", "check", "p.yml")
    told = done.stderr.splitlines()
    assert (done.returncode, len(told)) == (3, 2), done.stderr
    assert 'p.yml:2:11: no shipped policy is called "reviw"' in told[0]
    assert "p.yml:2:29: " in told[1]
