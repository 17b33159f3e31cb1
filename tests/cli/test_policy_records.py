"""`ci-agent policy replay` and `policy suggest`, on records of real runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[[str], str]

RULES = """
rules:
  - {id: look, allow: [read, ls]}
  - {id: git, allow: bash, command: git status}
  - {id: no-env, deny: read, path: "**/.env"}
"""

CALLS = """
turns:
  - tool_calls:
      - {name: read, arguments: {path: README.md}}
      - {name: bash, arguments: {command: git status}}
      - {name: bash, arguments: {command: npm run build}}
      - {name: bash, arguments: {command: npm run lint}}
      - {name: read, arguments: {path: .env}}
      - {name: reed, arguments: {path: a}}
      - {name: write, arguments: {path: out/report.md, content: x}}
      - {name: write, arguments: {path: t.json, content: x}}
  - text: Done.
"""


@pytest.fixture
def transcript(ci_agent: Any, script: Write, policy: Write, workspace: Path) -> Path:
    """The record of a run under RULES, which stand in policy.yml."""
    (workspace / "README.md").write_text("hello\n")
    done = ci_agent("run", "--policy", policy(RULES), "--model", script(CALLS), "--transcript", "t.json", "Go.")
    assert done.returncode == 0, done.stderr
    return workspace / "t.json"


def write_policy(workspace: Path, rules: str) -> str:
    (workspace / "other.yml").write_text(f"policy: 1\n{rules}")
    return "other.yml"


# Replay


def test_under_the_same_policy_nothing_changes(ci_agent: Any, transcript: Path, workspace: Path) -> None:
    done = ci_agent("policy", "replay", "--policy", "policy.yml", "t.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "0 calls would change, 7 unchanged",
        "left out: 1 call (1 lookup), which no policy decided or which are not on record as they were",
        f"decided in {workspace}, where the run worked",
    ]


def test_calls_that_flip_are_listed_and_the_exit_code_is_1(ci_agent: Any, transcript: Path, workspace: Path) -> None:
    other = write_policy(workspace, "rules: [{id: npm, allow: bash, command: npm run *}, {id: not-now, deny: read}]\n")
    done = ci_agent("policy", "replay", "--policy", other, "t.json")
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert rows[0].startswith("t.json #1 read README.md allow -> deny not-now: Blocked by policy rule not-now: ")
    assert rows[1].startswith("t.json #2 bash git status allow -> deny default: Blocked: no policy rule allows running")
    assert rows[2:5] == [
        "t.json #3 bash npm run build deny -> allow npm: Allowed by policy rule npm.",
        "t.json #4 bash npm run lint deny -> allow npm: Allowed by policy rule npm.",
        "4 calls would change, 3 unchanged",
    ]


def test_a_folder_of_records_is_replayed_for_a_program(ci_agent: Any, transcript: Path, workspace: Path) -> None:
    folder = workspace / "records"
    folder.mkdir()
    transcript.rename(folder / "a.json")
    (folder / "other.json").write_text("{}")
    other = write_policy(workspace, "rules: [{id: look, allow: read}, {id: git, allow: bash, command: git status}]\n")
    done = ci_agent("policy", "replay", "--policy", other, "--format", "json", "records")
    result = json.loads(done.stdout)
    (flip,) = result.pop("flips")
    after = flip.pop("after")
    assert (done.returncode, after["effect"], after["rule_id"]) == (1, "allow", "look")
    assert flip == {
        "transcript": "records/a.json",
        "seq": 5,
        "tool": "read",
        "args": {"path": ".env"},
        "before": {
            "effect": "deny",
            "code": "rule",
            "rule_id": "no-env",
            "reason": f"Blocked by policy rule no-env: it forbids reading {workspace}/.env",
        },
    }
    assert result.pop("sha256")
    assert result == {
        "policy": "other.yml",
        "unchanged": 6,
        "skipped": [{"transcript": "records/a.json", "seq": 6, "tool": "reed", "why": "lookup"}],
        "transcripts": [{"transcript": "records/a.json", "workspace": str(workspace), "workspace_is": "recorded"}],
        "passed_over": ["records/other.json"],
    }


def test_where_the_workspace_is_gone_the_current_folder_stands_for_it(
    ci_agent: Any, transcript: Path, workspace: Path
) -> None:
    text = transcript.read_text().replace(str(workspace), "/srv/gone")
    transcript.write_text(text)
    gone = ci_agent("policy", "replay", "--policy", "policy.yml", "t.json")
    assert gone.returncode == 0
    assert gone.stdout.splitlines()[-1] == f"decided in {workspace}, because /srv/gone is not here"
    (workspace / "sub").mkdir()
    given = ci_agent("policy", "replay", "--policy", "policy.yml", "--workspace", "sub", "t.json")
    assert given.stdout.splitlines()[-1] == f"decided in {workspace / 'sub'}"


@pytest.mark.parametrize("command", ["replay", "suggest"])
@pytest.mark.parametrize("path", ["gone.json", "policy.yml", "."])
def test_what_is_no_transcript_exits_3_with_one_line(ci_agent: Any, policy: Write, command: str, path: str) -> None:
    policy(RULES)
    done = ci_agent("policy", command, "--policy", "policy.yml", path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)


# Suggest


def test_what_is_suggested_can_be_pasted_and_allows_what_was_denied(
    ci_agent: Any, transcript: Path, policy: Write, workspace: Path
) -> None:
    before = (workspace / "policy.yml").read_bytes()
    done = ci_agent("policy", "suggest", "--policy", "policy.yml", "t.json")
    assert (done.returncode, done.stderr) == (0, "")
    sealed = "the policy and the record of the run are never written by a tool"
    assert (
        done.stdout
        == f"""\
# 2 rules for 3 denied calls, as narrow as they can be: what you want of them goes beneath `rules:` in policy.yml

  # denied: t.json #3, t.json #4
  # also allows: bash: git status | npm run build
  # also allows: bash: timeout 600 npm run build
  - id: suggested-npm
    allow: bash
    command: "npm run {{build,lint}}"

  # denied: t.json #7
  # also allows: bash: git status > out/report.md
  - id: suggested-write
    allow: write
    path: "out/report.md"

# not suggested:
#   t.json #5  read  .env  rule: Blocked by policy rule no-env: it forbids reading {workspace}/.env
#   t.json #8  write  t.json  default: {workspace}/t.json: {sealed}
# left out: 1 call (1 lookup)
# decided in {workspace}, where the run worked
"""
    )
    assert (workspace / "policy.yml").read_bytes() == before
    policy(RULES + done.stdout)
    replayed = ci_agent("policy", "replay", "--policy", "policy.yml", "--format", "json", "t.json")
    assert [(flip["seq"], flip["after"]["effect"]) for flip in json.loads(replayed.stdout)["flips"]] == [
        *((3, "allow"), (4, "allow"), (7, "allow")),
    ]


def test_a_program_gets_rules_with_evidence_and_witnesses(ci_agent: Any, transcript: Path) -> None:
    done = ci_agent("policy", "suggest", "--policy", "policy.yml", "--format", "json", "t.json")
    result = json.loads(done.stdout)
    npm, write = result["suggestions"]
    evidence = [{"transcript": "t.json", "seq": 7, "tool": "write", "args": {"path": "out/report.md", "content": "x"}}]
    assert (done.returncode, npm["rule_id"], [call["seq"] for call in npm["evidence"]]) == (0, "suggested-npm", [3, 4])
    assert write == {
        "rule_id": "suggested-write",
        "yaml": '  - id: suggested-write\n    allow: write\n    path: "out/report.md"',
        "caution": None,
        "evidence": evidence,
        "also_allows": [{"tool": "bash", "args": {"command": "git status > out/report.md"}}],
        "findings": [],
    }
    assert [(each["seq"], each["code"]) for each in result["not_suggested"]] == [(5, "rule"), (8, "default")]
    assert [(each["seq"], each["why"]) for each in result["skipped"]] == [(6, "lookup")]


def test_where_nothing_was_denied_nothing_is_suggested(ci_agent: Any, transcript: Path, workspace: Path) -> None:
    rules = "rules: [{id: a, allow: [read, write]}, {id: b, allow: bash, command: ['**']}]\n"
    other = write_policy(workspace, rules)
    done = ci_agent("policy", "suggest", "--policy", other, "t.json")
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0]) == (0, "# no rule to suggest")
    assert "# allowed by the policy already: t.json #3, t.json #4, t.json #5, t.json #7" in lines


HOSTILE = r"""
turns:
  - tool_calls:
      - {name: bash, arguments: {command: "echo '##[error]x' '::error::y' '\u001b[2J'"}}
      - {name: read, arguments: {path: "##[error]a.txt"}}
      - {name: write, arguments: {path: "a\n::error::b", content: x}}
      - {name: "::error::c", arguments: {}}
  - text: Done.
"""


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("command", ["replay", "suggest"])
def test_nothing_that_a_model_wrote_is_a_command_to_a_runner_or_a_terminal(
    ci_agent: Any, script: Write, policy: Write, workspace: Path, command: str, form: str
) -> None:
    model = script(HOSTILE)
    ci_agent(
        "run", "--policy", policy("rules: [{id: a, allow: ls}]\n"), "--model", model, "--transcript", "t.json", "Go."
    )
    other = write_policy(workspace, "rules: [{id: a, allow: read}]\n") if command == "replay" else "policy.yml"
    done = ci_agent("policy", command, "--policy", other, "--format", form, "t.json")
    assert done.returncode == (1 if command == "replay" else 0)
    assert "a.txt" in done.stdout
    assert "##[" not in done.stdout
    assert "\x1b" not in done.stdout
    assert not any(line.lstrip().startswith("::") for line in done.stdout.splitlines())
