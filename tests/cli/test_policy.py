"""`ci-agent policy`: check, explain, schema, list, and the help of all its commands."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from ci_agent.cli.app import cli
from ci_agent.cli.policy import COMMANDS

Write = Callable[[str], str]

RULES = """
rules:
  - {id: look, allow: [read, ls]}
  - {id: git, allow: bash, command: ["git status"]}
  - {id: no-secrets, deny: read, path: "**/.env", because: secrets stay out, instead: read .env.example}
tests:
  - allow: {read: README.md}
  - deny: {read: .env}
    by: no-secrets
"""


def explain(ci_agent: Any, *args: str) -> tuple[int, Any]:
    done = ci_agent("policy", "explain", "--policy", "policy.yml", "--format", "json", *args)
    return done.returncode, json.loads(done.stdout)


def test_check_passes_a_policy_whose_tests_hold(ci_agent: Any, policy: Write) -> None:
    done = ci_agent("policy", "check", policy(RULES))
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "policy.yml: 3 rules, 2 tests (0 failed), 0 errors, 0 warnings\n",
        "",
    )


def test_check_names_a_test_that_fails_and_exits_1(ci_agent: Any, policy: Write) -> None:
    done = ci_agent("policy", "check", policy(RULES + "  - allow: {bash: git push}\n"))
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == [
        "policy.yml:11: test failed: expected allow, got deny by default: bash: git push",
        "    Blocked: no policy rule allows running `git push`. The nearest, git, does not fit: `push` is not `status`",
    ]
    (_, _, failed) = json.loads(ci_agent("policy", "check", "--format", "json", "policy.yml").stdout)[0]["tests"]
    assert (failed["got"], failed["code"], failed["rule_id"], failed["passed"]) == ("deny", "default", None, False)
    assert failed["reason"].startswith("Blocked: no policy rule allows running `git push`")


def test_check_exits_3_for_a_policy_that_is_invalid_with_its_place(ci_agent: Any, policy: Write) -> None:
    done = ci_agent("policy", "check", policy("rules:\n  - {id: a, alow: read}\n"))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith('ci-agent: policy.yml:3:13: unknown key "alow": did you mean "allow"?')


def test_every_shipped_policy_checks_out_and_is_listed(ci_agent: Any) -> None:
    names = [line.split()[0] for line in ci_agent("policy", "list").stdout.splitlines()]
    assert names == ["deny-all", "edit-source", "read-only", "review", "test-and-fix"]
    done = ci_agent("policy", "check", "--format", "json", *names)
    assert done.returncode == 0
    assert [(checked["policy"], checked["passed"]) for checked in json.loads(done.stdout)] == [
        (name, True) for name in names
    ]


def test_explain_says_which_rule_decides_each_effect(ci_agent: Any, policy: Write) -> None:
    policy(RULES)
    assert explain(ci_agent, "--tool", "read", "--args", '{"path": "README.md"}')[1]["effect"] == "allow"
    code, denial = explain(ci_agent, "--tool", "read", "--args", '{"path": "sub/.env"}')
    assert (code, denial["effect"], denial["code"], denial["rule_id"], denial["source"]) == (
        0,
        "deny",
        "rule",
        "no-secrets",
        "policy.yml:6",
    )
    assert denial["reason"] == ("Blocked by policy rule no-secrets: secrets stay out. Instead: read .env.example")


def test_explain_for_a_person_shows_the_effects_as_a_table(ci_agent: Any, policy: Write, workspace: Path) -> None:
    done = ci_agent(
        "policy", "explain", "--policy", policy(RULES), "--tool", "bash", "--args", '{"command": "git status > x"}'
    )
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "deny  (default)"
    assert "exec   git status  granted by git" in done.stdout
    assert f"write  {workspace / 'x'}  not granted" in done.stdout


def test_explain_shows_the_smallest_rules_that_would_allow_a_call(ci_agent: Any, policy: Write) -> None:
    name = policy(RULES)
    shown = ci_agent("policy", "explain", "--policy", name, "make x > y").stdout
    head, rules = shown.split("# as little as would allow it, to go beneath `rules:`\n")
    assert head.startswith("deny  (default)")
    assert ci_agent("policy", "check", policy(RULES.replace("tests:", f"{rules}tests:"))).returncode == 0
    assert ci_agent("policy", "explain", "--policy", name, "--expect", "allow", "make x > y").returncode == 0
    assert ci_agent("policy", "explain", "--policy", name, "--expect", "deny", "make z > y").returncode == 0


@pytest.mark.parametrize(
    "flags", [["git status"], ["--tool", "read", ".env"], ["sh -c x | sh"], ["--format=json", "make"]]
)
def test_no_rule_is_shown_for_what_is_allowed_forbidden_or_not_known(
    ci_agent: Any, policy: Write, flags: list[str]
) -> None:
    assert "as little as" not in ci_agent("policy", "explain", "--policy", policy(RULES), *flags).stdout


def test_explain_knows_which_tools_a_run_would_offer(ci_agent: Any, policy: Write) -> None:
    policy(RULES)
    offered = explain(ci_agent, "--tools", "bash,read", "git status")[1]
    other = explain(ci_agent, "--tools", "read", "git status")[1]
    assert (offered["effect"], other["code"]) == ("allow", "not_offered")
    assert other["reason"] == "Tool bash is not offered in this run. Available tools: read."
    assert explain(ci_agent, "--tools", "read", "git push")[1]["code"] == "default"
    assert ci_agent("policy", "explain", "--policy", "policy.yml", "--tools", "rea", "ls").returncode == 2


@pytest.mark.parametrize(("expected", "code"), [("deny", 0), ("allow", 1)])
def test_explain_can_expect_an_answer(ci_agent: Any, policy: Write, expected: str, code: int) -> None:
    policy(RULES)
    assert explain(ci_agent, "--tool", "read", "--args", '{"path": ".env"}', "--expect", expected)[0] == code


@pytest.mark.parametrize("expected", [[], ["--expect", "allow"], ["--expect", "deny"]])
@pytest.mark.parametrize("arguments", ["{}", '{"file": "x"}', '{"path": 1}'])
def test_a_call_that_can_never_be_made_is_what_nobody_expects(
    ci_agent: Any, policy: Write, arguments: str, expected: list[str]
) -> None:
    policy(RULES)
    asked = ("--tool", "read", "--args", arguments, *expected)
    code, decision = explain(ci_agent, *asked)
    assert (code, decision["effect"], decision["code"]) == (1, "deny", "arguments")
    told = ci_agent("policy", "explain", "--policy", "policy.yml", *asked)
    first, second, *_ = told.stdout.splitlines()
    assert (told.returncode, first, second) == (
        1,
        f"this call can never be made: read: {arguments}",
        "deny  (arguments)",
    )


@pytest.mark.parametrize("expected", [[], ["--expect", "deny"]])
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("{", "; this is none: Expecting property name"),
        ('{"path": "a", "path": "b"}', '; this is none: the key "path" appears twice in one object'),
        ("[]", "\n"),
        ('[{"path": "a"}]', "\n"),
    ],
)
def test_arguments_that_are_no_object_are_a_usage_error(
    ci_agent: Any, policy: Write, arguments: str, problem: str, expected: list[str]
) -> None:
    flags = ("--tool", "read", "--args", arguments, *expected)
    done = ci_agent("policy", "explain", "--policy", policy(RULES), *flags)
    said = f"""--args takes a JSON object, such as '{{"path": "..."}}'{problem}"""
    assert (done.returncode, done.stdout, said in done.stderr) == (2, "", True), done.stderr


@pytest.mark.parametrize("expected", [[], ["--expect", "deny"]])
@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ("bsh", 'no tool is called "bsh": did you mean bash?'),
        ("nosuch", 'no tool is called "nosuch": the tools are bash, edit, '),
        ("re*", 'a call names one tool, and "re*" is a pattern'),
        ("", "a tool name is empty"),
    ],
)
def test_a_tool_that_no_run_has_is_a_usage_error(
    ci_agent: Any, policy: Write, tool: str, problem: str, expected: list[str]
) -> None:
    flags = ("--tool", tool, "--args", "{}", *expected)
    done = ci_agent("policy", "explain", "--policy", policy(RULES), *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Error: Invalid value for --tool: {problem}" in done.stderr


def test_tools_that_are_not_configured_here_are_taken_as_they_are(ci_agent: Any, policy: Write) -> None:
    policy("rules: [{id: issue, allow: github__create_issue, args: {repo: {enum: [acme/site]}}}]\n")
    for repo, effect in (("acme/site", "allow"), ("evil/site", "deny")):
        arguments = json.dumps({"repo": repo})
        assert explain(ci_agent, "--tool", "github__create_issue", "--args", arguments)[1]["effect"] == effect


def test_a_file_of_calls_is_decided_line_by_line(ci_agent: Any, policy: Write, workspace: Path) -> None:
    policy(RULES)
    calls = [{"tool": "read", "args": {"path": "a"}}, {"tool": "bash", "args": {"command": "git push"}}]
    (workspace / "calls.jsonl").write_text("".join(json.dumps(call) + "\n" for call in calls))
    done = ci_agent("policy", "explain", "--policy", "policy.yml", "--calls", "calls.jsonl", "--format", "json")
    assert [(decision["line"], decision["effect"]) for decision in map(json.loads, done.stdout.splitlines())] == [
        (1, "allow"),
        (2, "deny"),
    ]
    first, second = ci_agent(
        "policy", "explain", "--policy", "policy.yml", "--calls", "calls.jsonl"
    ).stdout.splitlines()
    assert first == "1  read  a  allow  Allowed by policy rule look."
    assert second.startswith("2  bash  git push  deny  Blocked: no policy rule allows running `git push`.")


def test_calls_come_from_stdin_too(ci_agent: Any, policy: Write) -> None:
    policy(RULES)
    asked = ("policy", "explain", "--policy", "policy.yml", "--calls", "-")
    done = ci_agent(*asked, stdin=b'{"tool": "read", "args": {"path": "a"}}\n')
    assert (done.returncode, done.stdout) == (0, "1  read  a  allow  Allowed by policy rule look.\n")
    wrong = ci_agent(*asked, stdin=b"\n{}\n")
    assert (wrong.returncode, wrong.stderr) == (
        3,
        'ci-agent: <stdin>:2:1: a call is written {"tool": NAME, "args": {...}}\n',
    )


@pytest.mark.parametrize("said", [("--tool", "read"), ("--args", "{}"), ("--tool", "read", "--args", "{}")])
def test_a_file_of_calls_and_one_call_contradict_each_other(
    ci_agent: Any, policy: Write, workspace: Path, said: tuple[str, ...]
) -> None:
    policy(RULES)
    (workspace / "calls.jsonl").write_text('{"tool": "read", "args": {"path": "a"}}\n')
    done = ci_agent("policy", "explain", "--policy", "policy.yml", "--calls", "calls.jsonl", *said)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Give a command, or --tool and --args for one call, or --calls for a file of them." in done.stderr


def test_a_line_that_is_no_call_is_named(ci_agent: Any, policy: Write, workspace: Path) -> None:
    policy(RULES)
    lines = ['{"tool": "read", "args": {}}', '{"tool": 1}', "", "{", '{"tool": "raed", "args": {}}']
    (workspace / "calls.jsonl").write_text("\n".join([*lines, '{"tool": "read", "args": []}']))
    done = ci_agent("policy", "explain", "--policy", "policy.yml", "--calls", "calls.jsonl")
    first, second, third, fourth = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (3, "")
    assert first == 'ci-agent: calls.jsonl:2:1: a call is written {"tool": NAME, "args": {...}}'
    assert third == 'ci-agent: calls.jsonl:5:1: no tool is called "raed": did you mean read?'
    assert fourth == 'ci-agent: calls.jsonl:6:1: a call is written {"tool": NAME, "args": {...}}'
    assert second.startswith("ci-agent: calls.jsonl:4:1: the line is not JSON: ")
    assert ci_agent("policy", "explain", "--policy", "policy.yml", "--tool", "raed", "--args", "{}").returncode == 2
    told = " ".join(ci_agent("policy", "explain", "--help").stdout.split())
    assert "2 for a tool or arguments that are none: 3 where they stand in a file of calls." in told


@pytest.mark.parametrize("flags", [[], ["--tool", "read"], ["--tool", "read", "--args", "{}", "--calls", "x"]])
def test_explain_wants_one_call_or_a_file_of_them(ci_agent: Any, policy: Write, flags: list[str]) -> None:
    done = ci_agent("policy", "explain", "--policy", policy(RULES), *flags)
    assert (done.returncode, "--tool and --args for one call, or --calls" in done.stderr) == (2, True)


def test_the_schema_takes_a_policy_and_refuses_a_wrong_one(ci_agent: Any) -> None:
    schema = json.loads(ci_agent("policy", "schema").stdout)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"policy": 1, "rules": [{"id": "a", "allow": "read"}]})
    assert not validator.is_valid({"policy": 1, "rules": [{"id": "a", "alow": "read"}]})


@pytest.mark.parametrize("name", COMMANDS)
def test_every_policy_command_has_help_with_an_example(name: str) -> None:
    done = CliRunner().invoke(cli, ["policy", name, "--help"])
    assert (done.exit_code, "Example" in done.stdout) == (0, True)


def test_the_help_of_the_group_lists_them_all() -> None:
    listed = CliRunner().invoke(cli, ["policy", "--help"]).stdout.partition("Commands:")[2]
    assert [line.split()[0] for line in listed.splitlines() if line.strip()] == list(COMMANDS)


@pytest.mark.parametrize("command", ["check", "test"])
def test_an_invalid_policy_does_not_keep_the_others_from_being_looked_at(
    ci_agent: Any, policy: Write, workspace: Path, command: str
) -> None:
    (workspace / "failing.yml").write_text(f"policy: 1\n{RULES}  - allow: {{bash: git push}}\n")
    (workspace / "wrong.yml").write_text("policy: 2\n")
    (workspace / "worse.yml").write_text("policy: 1\nrule: []\n")
    names = ["wrong.yml", "failing.yml", "missing.yml", "worse.yml", policy(RULES)]
    done = ci_agent("policy", command, *names)
    assert done.returncode == 3
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if " failed), " in line] == [
        "failing.yml",
        "policy.yml",
    ]
    assert [name for name in names if f"ci-agent: {name}:" in done.stderr] == ["wrong.yml", "worse.yml"]
    assert "missing.yml" in done.stderr
    listed = json.loads(ci_agent("policy", command, "--format", "json", *names).stdout)
    assert [(one["policy"], one["passed"], bool(one["problems"])) for one in listed] == [
        ("wrong.yml", False, True),
        ("failing.yml", False, False),
        ("missing.yml", False, True),
        ("worse.yml", False, True),
        ("policy.yml", True, False),
    ]


def test_list_and_schema_speak_to_programs_and_to_people(ci_agent: Any) -> None:
    listed = json.loads(ci_agent("policy", "list", "--format", "json").stdout)
    assert {one["name"] for one in listed} >= {"read-only", "review", "deny-all"}
    assert all(set(one) == {"name", "description", "sha256"} for one in listed)
    text = ci_agent("policy", "schema", "--format", "text").stdout
    assert "\n  max_chars       Characters of each body" in text
    assert "\n  max_title_chars Characters of each title" in text
    assert "\n  on_denied      What a denial does to the run" in text


def test_explain_asks_whether_another_tool_was_meant(ci_agent: Any, policy: Write) -> None:
    bare = ci_agent("policy", "explain", "--policy", policy(RULES), "--tool", "bsh", "ls")
    assert (bare.returncode, "and 'bsh' is none; did you mean 'bash'?\n" in bare.stderr) == (2, True)
    other = ci_agent("policy", "explain", "--policy", policy(RULES), "--tool", "x__y", "ls")
    assert (other.returncode, "and 'x__y' is none. Give --args.\n" in other.stderr) == (2, True)


def test_explain_shows_how_arguments_are_written(ci_agent: Any, policy: Write) -> None:
    for given, shown in (("npm test", "npm test"), ("7", "7"), ("", "")):
        done = ci_agent("policy", "explain", "--policy", policy(RULES), "--tool", "bash", "--args", given)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"""--args takes a JSON object, such as '{{"command": "{shown}"}}'\n""" in done.stderr


def test_a_shipped_policy_is_shown_as_it_stands(ci_agent: Any) -> None:
    shown = ci_agent("policy", "show", "review").stdout
    assert shown.startswith("# Review a change:")
    assert "\nextends: read-only\n" in shown
    unknown = ci_agent("policy", "show", "revew")
    assert (unknown.returncode, "did you mean review?" in unknown.stderr) == (3, True)


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["git push"], "  exec  git push  not granted"),
        (["git status"], "  exec  git status  granted by git"),
        (["--tool", "read", ".env"], "forbidden by no-secrets"),
        (["--tool", "bash", "git push"], "  exec  git push  not granted"),
    ],
)
def test_a_bare_value_is_explained_as_in_tests(ci_agent: Any, policy: Write, flags: list[str], line: str) -> None:
    assert line in ci_agent("policy", "explain", "--policy", policy(RULES), *flags).stdout


@pytest.mark.parametrize("flags", [["git push", "--args", "{}"], ["x", "--calls", "y"], ["x", "--tool", "a__b"]])
def test_a_bare_value_beside_other_ways_to_say_the_call_is_refused(
    ci_agent: Any, policy: Write, flags: list[str]
) -> None:
    assert ci_agent("policy", "explain", "--policy", policy(RULES), *flags).returncode == 2
