"""Patterns that are about less than they seem to be."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.policy.lint import LintFinding, Witness

Lint = Callable[..., list[LintFinding]]


def found(findings: list[LintFinding], code: str) -> list[tuple[str, str, Witness | None]]:
    return [(each.severity, each.message, each.witness) for each in findings if each.code == code]


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("git push:*", "git push **"),
        ("git:*", "git **"),
        ("ls -l:*", "ls -l **"),
        ("/git .*/", "git **"),
    ],
)
@pytest.mark.parametrize("effect", ["allow", "deny"])
def test_a_pattern_in_the_style_of_another_tool_is_an_error_with_the_right_spelling(
    lint: Lint, effect: str, pattern: str, meant: str
) -> None:
    findings = lint(f'rules: [{{id: a, {effect}: bash, command: ["{pattern}"]}}]')
    message = f'a: "{pattern}" is about no command that anybody types: write "{meant}"'
    assert found(findings, "matches-nothing") == [("error", message, None)]


@pytest.mark.parametrize(
    "pattern", ["npm run test:*", "yarn test:*", "docker pull alpine:*", "rsync -a host:*", "/bin/ls /"]
)
def test_colons_and_slashes_that_belong_to_a_command_are_fine(lint: Lint, pattern: str) -> None:
    assert found(lint(f'rules: [{{id: a, allow: bash, command: ["{pattern}"]}}]'), "matches-nothing") == []


@pytest.mark.parametrize(
    ("commands", "word", "meant"),
    [("[git, status]", "status", "git status"), ("[npm, node, publish]", "publish", "npm publish")],
)
@pytest.mark.parametrize("effect", ["allow", "deny"])
def test_words_of_one_command_that_stand_as_commands_are_shown(
    lint: Lint, effect: str, commands: str, word: str, meant: str
) -> None:
    findings = lint(f"rules: [{{id: a, {effect}: bash, command: {commands}}}]")
    message = (
        f'a: "{word}" stands as a command of its own: write "{meant}" if it belongs to {meant.split(maxsplit=1)[0]}'
    )
    assert found(findings, "matches-nothing") == [("warning", message, None)]


@pytest.mark.parametrize(
    "commands", ["[ls, cat, wc]", "[[git, status]]", '["git status", status2]', '["git log", "ls"]', "[git, make]"]
)
def test_commands_that_stand_beside_each_other_are_fine(lint: Lint, commands: str) -> None:
    assert found(lint(f"rules: [{{id: a, allow: bash, command: {commands}}}]"), "matches-nothing") == []


@pytest.mark.parametrize(
    ("pattern", "longer", "call"),
    [
        ("git push", "git push **", "git push x"),
        ("git push*", "git push **", "git push x"),
        ("git push *", "git push **", "git push x x"),
    ],
)
def test_a_deny_rule_that_ends_too_early_shows_what_it_leaves_open(
    lint: Lint, pattern: str, longer: str, call: str
) -> None:
    findings = lint(f'rules: [{{id: a, allow: bash, command: "git **"}}, {{id: b, deny: bash, command: "{pattern}"}}]')
    message = f'b: "{pattern}" forbids no command with further words: write "{longer}"'
    assert found(findings, "narrow-deny") == [("warning", message, Witness("bash", {"command": call}))]


@pytest.mark.parametrize("deny", ["command: git push **", "command: git push **, has: -f"])
def test_a_deny_rule_with_any_further_words_is_fine(lint: Lint, deny: str) -> None:
    findings = lint(f"rules: [{{id: a, allow: bash, command: 'git **'}}, {{id: b, deny: bash, {deny}}}]")
    assert found(findings, "narrow-deny") == []


def test_where_nothing_longer_is_allowed_a_short_deny_leaves_nothing_open(lint: Lint) -> None:
    findings = lint("rules: [{id: a, allow: bash, command: git log}, {id: b, deny: bash, command: git push}]")
    assert found(findings, "narrow-deny") == []


def test_a_deny_of_a_folder_that_leaves_its_content_open_is_shown(lint: Lint, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    rules = "rules: [{id: a, allow: read}, {id: b, deny: read, path: [logs, notes, 'src/**']}]"
    message = 'b: "logs" is a folder, and what is in it is not forbidden: write ["logs", "logs/**"]'
    assert found(lint(rules), "narrow-deny") == [("warning", message, Witness("read", {"path": "logs/x"}))]


@pytest.mark.parametrize("paths", ["[logs, 'logs/**']", "'logs/**'", "notes"])
def test_a_deny_of_a_folder_with_its_content_and_of_a_file_is_fine(lint: Lint, tmp_path: Path, paths: str) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "notes").write_text("")
    findings = lint(f"rules: [{{id: a, allow: read}}, {{id: b, deny: read, path: {paths}}}]")
    assert found(findings, "narrow-deny") == []
