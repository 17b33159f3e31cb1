"""Arguments of any tool, tested value by value."""

import pytest
from policy_calls import MakePolicy, Put


def test_arguments_are_tested_value_by_value(policy: MakePolicy) -> None:
    decided = policy(
        """
        - id: issue
          allow: github__create_issue
          args: {repo: {enum: [acme/site]}, "labels[]": {enum: [bug, docs]}}
          only: true
        """
    )
    calls: list[dict[str, object]] = [
        {"repo": "acme/site", "labels": ["bug"]},
        {"repo": "acme/site", "labels": []},
        {"repo": "acme/site"},
        {"repo": "acme/other", "labels": []},
        {"repo": "acme/site", "labels": ["bug", "x"]},
        {"repo": "acme/site", "labels": [], "assignee": "me"},
    ]
    effects = [decided.decide("github__create_issue", arguments).effect for arguments in calls]
    assert effects == ["allow", "allow", "deny", "deny", "deny", "deny"]


def test_too_many_values_are_a_limit(policy: MakePolicy) -> None:
    decided = policy('- {id: files, allow: fs__write, args: {"paths[]": {path: "**"}}}\n')
    assert decided.decide("fs__write", {"paths": ["a"] * 1_000}).effect == "allow"
    assert decided.decide("fs__write", {"paths": ["a"] * 1_001}).code == "limit"


def test_a_path_argument_obeys_what_files_obey(policy: MakePolicy, put: Put) -> None:
    put(".git/config")
    decided = policy(
        """
        - {id: files, allow: "fs__*", args: {path: {path: ["**"]}}}
        - {id: secret, deny: read, path: "**/.env"}
        """
    )
    answers = {
        path: decided.decide("fs__read", {"path": path}).effect
        for path in (
            "src/a",
            "src",
            ".",
            "../x",
            "/etc/passwd",
            ".git/config",
            ".env",
            "/proc/self/environ",
            "",
            "a\u202eb",
        )
    }
    assert list(answers.values()) == ["allow"] * 3 + ["deny"] * 7


def test_a_command_argument_is_read_like_bash(policy: MakePolicy) -> None:
    decided = policy(
        """
        - {id: run, allow: ci__run, args: {cmd: {command: ["npm test", "ls **"]}}}
        - {id: denied, deny: ci__run, args: {cmd: {command: ["ls secret **"]}}}
        """
    )
    answers = {
        command: decided.decide("ci__run", {"cmd": command}).effect
        for command in (
            "npm test",
            "npm test && ls src",
            "npm test; id",
            "ls > x",
            "A=1 ls",
            "ls 'x",
            "",
            "ls secret",
            "ls $(id)",
        )
    }
    assert list(answers.values()) == ["allow", "allow"] + ["deny"] * 7


@pytest.mark.parametrize(
    ("arguments", "denied"),
    [
        ({"value": "x"}, True),
        ({"value": "y"}, False),
        ({"value": ["x"]}, True),
        ({"value": 1}, True),
        ({}, False),
        ({"value": None}, True),
    ],
)
def test_a_deny_on_an_argument_fails_closed(policy: MakePolicy, arguments: dict[str, object], denied: bool) -> None:
    decided = policy('- {id: all, allow: "flag__*"}\n- {id: denied, deny: "flag__*", args: {value: {enum: [x]}}}\n')
    assert (decided.decide("flag__set", arguments).rule_id == "denied") is denied


def test_a_deny_may_require_an_argument(policy: MakePolicy) -> None:
    decided = policy(
        '- {id: all, allow: "flag__*"}\n- {id: denied, deny: "flag__*", args: {dry_run: {absent: true}}}\n'
    )
    assert decided.decide("flag__set", {}).rule_id == "denied"
    assert decided.decide("flag__set", {"dry_run": True}).effect == "allow"
