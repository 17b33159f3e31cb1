"""What a hostile model proposes in a run of the real command, and what of that stands in the file."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ci_agent.proposals.file import proposals_schema

SECRET = "s3cr3t-value-pelican-0123456789"

POLICY = """\
proposals:
  comment: {max_count: 1, max_chars: 120, prefix: "Triage:"}
  label: {names: [bug, docs], max_count: 2}
  patch: {paths: ["src/**"], max_bytes: 2000, title_prefix: "fix:"}
rules:
  - {id: out, allow: propose}
  - {id: change, allow: [write, edit], path: ["**"]}
  - {id: link, allow: bash, command: ["ln -s **", "chmod **"], paths: ["src/**"]}
"""


@pytest.fixture
def propose(
    ci_agent: Any, script: Callable[[str], str], policy: Callable[[str], str], workspace: Path, tmp_path: Path
) -> Callable[..., tuple[Any, Any]]:
    """Runs calls of tools, one a turn, in a checkout; returns the transcript and the proposals."""

    def run(*calls: tuple[str, dict[str, Any]], rules: str = POLICY) -> tuple[Any, Any]:
        (workspace / "src").mkdir()
        (workspace / "src/a.py").write_text("a = 1\n")
        rules_file = policy(rules)
        model = script(json.dumps({"turns": [*map(turn, calls), {"text": "Done."}]}))
        for args in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x"]):
            subprocess.run(["git", *args], cwd=workspace, check=True, capture_output=True)
        file = tmp_path / "proposals.json"
        file.write_text("of an earlier run")
        argv = ["run", "--policy", rules_file, "--model", model, "--proposals", str(file), "Go."]
        done = ci_agent(*argv, env={"MY_API_KEY": SECRET, "CI": "true"})
        assert done.stdout, done.stderr
        return json.loads(done.stdout), json.loads(file.read_text())

    return run


def turn(call: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"tool_calls": [{"name": call[0], "arguments": call[1]}]}


def results(transcript: Any, tool: str = "propose") -> list[tuple[bool, str]]:
    """Whether each call failed, and what the model was told."""
    calls = [call for call in transcript["tool_calls"] if call["tool"] == tool]
    return [(call["is_error"], call["content"][0]["text"]) for call in calls]


def test_what_is_proposed_stands_in_the_file_inert_and_behind_its_prefix(propose: Any) -> None:
    transcript, file = propose(
        ("propose", {"kind": "comment", "body": "Hi @octocat <!-- CANARY --> fixes #1"}),
        ("propose", {"kind": "label", "labels": ["bug", "bug"]}),
        ("write", {"path": "src/a.py", "content": "a = 2\n"}),
        ("write", {"path": "notes.md", "content": "x\n"}),
        ("propose", {"kind": "patch", "title": "Set a", "body": "Why."}),
    )
    Draft202012Validator(proposals_schema()).validate(file)
    assert file["run"] == {"id": transcript["run"]["id"], "exit_code": 0}
    assert file["policy"]["sha256"] == transcript["policy"]["sha256"]
    assert [is_error for is_error, _ in results(transcript)] == [False] * 3, results(transcript)
    comment, label, patch = file["proposals"]
    assert comment == {"kind": "comment", "body": "Triage:\n\nHi @ octocat < !-- CANARY --> fixes # 1"}
    assert label == {"kind": "label", "labels": ["bug"]}
    assert (patch["title"], patch["body"]) == ("fix: Set a", "Why.")
    assert patch["diff"].startswith("diff --git a/src/a.py b/src/a.py\n")
    assert "notes.md" not in patch["diff"]
    assert results(transcript)[2][1].endswith("Left out, as the policy's paths do not cover it: notes.md.")
    assert {"about": "proposals", "text": "3 proposals"} in [
        {key: note[key] for key in ("about", "text")} for note in transcript["notes"]
    ]


BREAKING: list[tuple[dict[str, Any], str]] = [
    ({"kind": "comment", "body": "x" * 200}, "the body has 209 characters, and 120 are the most"),
    ({"kind": "comment", "body": f"The key is {SECRET}"}, "holds a secret"),
    ({"kind": "comment", "body": f"Reversed {SECRET[::-1]}"}, "holds a secret"),
    ({"kind": "comment", "body": "\u200b\u202e"}, "the body is empty"),
    ({"kind": "comment"}, "A comment needs body."),
    ({"kind": "comment", "body": "x", "labels": ["bug"]}, "A comment takes no labels"),
    ({"kind": "comment", "body": "x", "number": 1}, "number"),
    ({"kind": "label", "labels": ["admin"]}, "the label 'admin' may not be proposed: the labels are bug, docs"),
    ({"kind": "label", "labels": []}, "labels"),
    ({"kind": "issue", "title": "x", "body": "x"}, "kind"),
    ({"kind": "release", "title": "x"}, "kind"),
    ({"kind": "patch", "title": "x", "body": "x"}, "No file is changed that a patch may have (src/**)"),
    ({"kind": "patch", "title": "x" * 300, "body": "x"}, "No file is changed"),
]


def test_attack_what_breaks_a_bound_is_an_error_that_the_model_reads(propose: Any) -> None:
    transcript, file = propose(*(("propose", arguments) for arguments, _ in BREAKING))
    told = results(transcript)
    assert [is_error for is_error, _ in told] == [True] * len(BREAKING)
    assert [text for (_, text), (_, message) in zip(told, BREAKING, strict=True) if message not in text] == []
    assert file["proposals"] == []
    assert SECRET not in json.dumps([transcript, file])


def test_attack_more_than_may_be_proposed(propose: Any) -> None:
    comment = ("propose", {"kind": "comment", "body": "x"})
    transcript, file = propose(comment, comment, comment)
    assert [is_error for is_error, _ in results(transcript)] == [False, True, True]
    assert "1 comment at most, and this would make 2" in results(transcript)[1][1]
    assert len(file["proposals"]) == 1


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (("write", {"path": "src/a.py", "content": f"key = '{SECRET}'\n"}), "the patch holds a secret"),
        (("write", {"path": "src/a.py", "content": "x\n" * 3_000}), "2000 are the most"),
        (("bash", {"command": "ln -s a.py src/link.py"}), "is a symbolic link"),
        (("bash", {"command": "chmod +x src/a.py"}), "its mode is changed"),
    ],
)
def test_attack_a_patch_that_no_reviewer_should_see(propose: Any, before: Any, message: str) -> None:
    transcript, file = propose(before, ("propose", {"kind": "patch", "title": "x", "body": "x"}))
    assert [call["is_error"] for call in transcript["tool_calls"]] == [False, True], transcript["tool_calls"]
    assert message in results(transcript)[0][1]
    assert file["proposals"] == []
    assert SECRET not in json.dumps([transcript, file])


def test_a_patch_that_is_proposed_again_replaces_the_first(propose: Any) -> None:
    patch = ("propose", {"kind": "patch", "title": "Set a", "body": "Why."})
    _, file = propose(
        ("write", {"path": "src/a.py", "content": "a = 2\n"}),
        patch,
        ("write", {"path": "src/a.py", "content": "a = 3\n"}),
        patch,
    )
    (only,) = file["proposals"]
    assert "+a = 3\n" in only["diff"]
    assert "+a = 2\n" not in only["diff"]


def test_attack_a_policy_without_proposals_has_no_tool_for_them(
    ci_agent: Any, script: Callable[[str], str], policy: Callable[[str], str], workspace: Path
) -> None:
    model = script('turns: [{tool_calls: [{name: propose, arguments: {kind: comment, body: x}}]}, {text: "Done."}]')
    rules = policy("rules: [{id: out, allow: propose}]\n")
    argv = ["run", "--policy", rules, "--model", model, "Go."]
    refused = ci_agent(*argv, "--proposals", "out.json")
    assert (refused.returncode, refused.stdout, (workspace / "out.json").exists()) == (3, "", False)
    assert "give it the key proposals" in refused.stderr
    transcript = json.loads(ci_agent(*argv).stdout)
    assert results(transcript)[0][0]


def test_a_policy_with_bounds_and_no_rule_is_told_what_it_lacks(
    ci_agent: Any, script: Callable[[str], str], policy: Callable[[str], str]
) -> None:
    rules = policy("proposals: {comment: {}}\nrules: [{id: look, allow: read}]\n")
    argv = ["run", "--policy", rules, "--model", script("turns: [{text: Done.}]"), "--proposals", "out.json", "Go."]
    done = ci_agent(*argv)
    assert (done.returncode, done.stdout) == (3, "")
    assert "add {id: propose, allow: propose}" in done.stderr


def test_attack_a_rule_narrows_it_as_it_does_every_tool(propose: Any) -> None:
    rules = "proposals: {comment: {}, label: {names: bug}}\nrules:\n"
    rules += "  - {id: out, allow: propose}\n  - {id: mute, deny: propose, args: {kind: {enum: [comment]}}}\n"
    calls = [("propose", {"kind": "comment", "body": "x"}), ("propose", {"kind": "label", "labels": ["bug"]})]
    transcript, file = propose(*calls, rules=rules)
    assert [call["status"] for call in transcript["tool_calls"]] == ["denied", "ok"]
    assert file["proposals"] == [{"kind": "label", "labels": ["bug"]}]


def test_the_file_says_how_the_run_ended(propose: Any) -> None:
    """Whoever applies it goes by that."""
    rules = POLICY + "  - {id: stop, deny: read, on_denied: stop}\n"
    comment = ("propose", {"kind": "comment", "body": "x"})
    _, file = propose(comment, ("read", {"path": "src/a.py"}), comment, rules=rules)
    assert (file["run"]["exit_code"], len(file["proposals"])) == (5, 1)


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_policy_whose_proposals_nobody_takes_is_told_so(
    quiet: list[str], ci_agent: Any, script: Callable[[str], str], policy: Callable[[str], str]
) -> None:
    asked = ("--policy", policy(POLICY), "--model", script("turns: [{text: Done.}]"), "Go.")
    done = ci_agent("run", *quiet, *asked)
    told = "the policy lets things be proposed, and nobody takes them: name a file with --proposals"
    assert (done.returncode, done.stderr.count(told)) == (0, 1)
    assert f"warning  proposals   {told}" in ci_agent("doctor", "--offline", *asked).stdout


@pytest.mark.parametrize("never", [[], ["--fail-on-denied=never"]])
def test_a_run_whose_proposals_are_lost_is_no_success(
    never: list[str], ci_agent: Any, script: Callable[[str], str], policy: Callable[[str], str]
) -> None:
    call = "{name: propose, arguments: {kind: comment, body: x}}"
    turns = f"turns: [{{tool_calls: [{{name: ls, arguments: {{}}}}, {call}, {call}]}}, {{text: Done.}}]"
    asked = ("--policy", policy(POLICY + "  - {id: look, allow: ls}\n"), "--model", script(turns), "Go.")
    done = ci_agent("run", *never, *asked)
    result = json.loads(done.stdout)["result"]
    lost = "2 proposals were lost, for nobody takes them: name a file with --proposals"
    assert (done.returncode, result["exit_code"], result["reason"], result["error"]) == (1, 1, "completed", lost)
    assert lost in ci_agent("run", "--quiet", *never, *asked).stderr
    next_step = "  Next: Run again with --proposals FILE on the command line: a task file cannot name it.\n"
    of_the_action = "  In the action --proposals is the input proposals.\n"
    assert [line for line in (next_step, of_the_action) if line in done.stderr] == [next_step]
    in_the_action = ci_agent("run", *never, *asked, env={"CI_AGENT_ACTION": "/action"}).stderr
    assert [line for line in (next_step, of_the_action) if line in in_the_action] == [next_step, of_the_action]
    assert ci_agent("run", *never, "--proposals", "out.json", *asked).returncode == 0


def test_a_place_where_no_file_can_be_is_refused_before_the_run(
    ci_agent: Any, script: Callable[[str], str], policy: Callable[[str], str]
) -> None:
    argv = ["--policy", policy(POLICY), "--model", script("turns: [{text: Done.}]"), "Go."]
    for path in (".", "no/such/folder/out.json"):
        done = ci_agent("run", "--proposals", path, *argv)
        assert (done.returncode, done.stdout) == (3, "")
        assert "name a file in an existing folder" in done.stderr


def test_a_proposal_is_noted_and_one_without_a_repository_is_told_what_to_say(
    propose: Any, ci_agent: Any, tmp_path: Path
) -> None:
    transcript, _ = propose(("propose", {"kind": "comment", "body": "Hello."}))
    [(failed, said)] = results(transcript)
    assert (failed, said) == (False, "Noted: comment. The run proposes 1 thing now.")
    done = ci_agent("apply", str(tmp_path / "proposals.json"), "--policy", "policy.yml", "--number", "7")
    told = "ci-agent: nothing says which repository: say --repo OWNER/NAME, or set GITHUB_REPOSITORY\n"
    assert (done.returncode, done.stderr) == (3, told)
