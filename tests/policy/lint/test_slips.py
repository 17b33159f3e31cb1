"""Patterns that nobody's command fits because of a slip of the pen."""

from collections.abc import Callable

import pytest

from ci_agent.policy.lint import LintFinding, Witness

Lint = Callable[..., list[LintFinding]]


def found(findings: list[LintFinding]) -> list[tuple[str, str, Witness | None]]:
    return [(each.severity, each.message, each.witness) for each in findings if each.code == "matches-nothing"]


def bash(command: str) -> Witness:
    return Witness("bash", {"command": command})


@pytest.mark.parametrize(
    ("pattern", "command", "names"),
    [("CI=1 pytest", "pytest", "CI"), ("A=1 B=* npm test **", "npm test **", "A, B"), ("CI=1", "COMMAND", "CI")],
)
def test_a_variable_is_no_word_of_a_command(lint: Lint, pattern: str, command: str, names: str) -> None:
    is_about = f'a: "{pattern}" is about no command, for a variable is none of its words: write "{command}" and '
    allowed = found(lint(f'rules: [{{id: a, allow: bash, command: ["{pattern}"]}}]'))
    assert [(severity, message) for severity, message, _ in allowed] == [("warning", f"{is_about}env: [{names}]")]
    denied = found(lint(f'rules: [{{id: a, deny: bash, command: ["{pattern}"]}}]'))
    assert [message for _, message, _ in denied] == [f"{is_about}no variable: the rule holds with any"]


@pytest.mark.parametrize(
    ("pattern", "written", "meant"),
    [
        ("git statuss", "git statuss", "git status"),
        ("git dif **", "git dif", "git diff"),
        ("npm rn test", "npm rn", "npm run"),
        ("npm tets", "npm tets", "npm test"),
        ("git {log,statsu} **", "git statsu", "git status"),
    ],
)
def test_a_misspelled_subcommand_comes_with_the_right_one(lint: Lint, pattern: str, written: str, meant: str) -> None:
    program = written.partition(" ")[0]
    (finding,) = found(lint(f'rules: [{{id: a, allow: bash, command: ["{pattern}"]}}]'))
    text = f'a: "{pattern}" is about "{written}", which {program} does not know: did you mean "{meant}"?'
    assert finding[:2] == ("warning", text)
    if "{" not in pattern:
        assert finding[2] == bash(pattern.removesuffix(" **"))


@pytest.mark.parametrize(
    "pattern",
    [
        *("git lfs pull", "git flow **", "git co *", "cargo watch **", "make tset", "yarn tset", "env CI=1 make"),
        *("git -C x log", "git {status,log} **", "docker ps", "npm t", "git **", "echo a, b"),
    ],
)
def test_what_may_be_an_extension_or_a_script_is_fine(lint: Lint, pattern: str) -> None:
    assert found(lint(f'rules: [{{id: a, allow: bash, command: ["{pattern}"]}}]')) == []


def test_several_commands_in_one_text_are_shown_as_a_list(lint: Lint) -> None:
    (finding,) = found(lint('rules: [{id: a, allow: bash, command: "git status, git diff **"}]'))
    wanted = 'write a list, ["git status", "git diff **"]'
    assert finding[1] == f'a: "git status, git diff **" is one command with a comma in it: {wanted}'
