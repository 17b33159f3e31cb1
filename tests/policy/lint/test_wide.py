from collections.abc import Callable

import pytest

from ci_agent.policy.lint import LintFinding, Witness

Lint = Callable[..., list[LintFinding]]


def bash(command: str) -> Witness:
    return Witness("bash", {"command": command})


def rule(matchers: str) -> str:
    return f"rules:\n  - {{id: a, {matchers}}}\n"


@pytest.mark.parametrize(
    ("matchers", "message", "witness"),
    [
        ("allow: bash, command: '**'", "a: grants every command", bash("some-program")),
        ("allow: '*__*'", "a: grants every tool of every server", Witness("x__x", {})),
        (
            "allow: fetch",
            "a: grants every public host, also to send things to",
            Witness("fetch", {"url": "https://example.com/?q=what-was-read"}),
        ),
        (
            "allow: fetch, host: '**'",
            "a: grants every public host, also to send things to",
            Witness("fetch", {"url": "https://example.com/?q=what-was-read"}),
        ),
    ],
)
def test_a_grant_of_everything_is_named(lint: Lint, matchers: str, message: str, witness: Witness) -> None:
    findings = [finding for finding in lint(rule(matchers)) if finding.code == "grants-everything"]
    assert findings == [LintFinding("warning", "grants-everything", message, "a", "<text>:3", witness)]


@pytest.mark.parametrize(
    "matchers",
    [
        "allow: bash, command: git status **",
        "allow: fetch, host: docs.python.org",
        "allow: 'github__*'",
        "allow: '*__search', args: {q: {type: string}}",
        "deny: '*__*'",
        "deny: bash, command: '**'",
    ],
)
def test_what_is_narrower_than_everything_is_not(lint: Lint, matchers: str) -> None:
    assert [finding.code for finding in lint(rule(matchers)) if finding.code == "grants-everything"] == []


@pytest.mark.parametrize(
    ("command", "witness"),
    [
        ("python **", "python x.py"),
        ("python3 *", "python3 x.py"),
        ("node **", "node x.js"),
        ("perl **", "perl x"),
    ],
)
def test_a_wildcard_on_an_interpreter_runs_any_code(lint: Lint, command: str, witness: str) -> None:
    assert lint(rule(f"allow: bash, command: '{command}'")) == [
        LintFinding(
            "warning",
            "runs-any-code",
            f'a: "{command}" lets {command.split(maxsplit=1)[0]} run anything',
            "a",
            "<text>:3",
            bash(witness),
        )
    ]


def test_a_shell_runs_what_another_rule_grants(lint: Lint) -> None:
    findings = lint("rules:\n  - {id: a, allow: bash, command: ['sh -c *', 'env **', 'xargs **', id **]}\n")
    assert [(finding.code, finding.witness) for finding in findings] == [
        ("runs-any-code", bash("sh -c id")),
        ("runs-any-code", bash("env id")),
        ("runs-any-code", bash("xargs id")),
    ]


@pytest.mark.parametrize(
    "command", ["python -m pytest **", "node --version", "python setup.py *", "bash -n x.sh", "find . -name *", "env"]
)
def test_an_interpreter_that_is_held_to_one_thing_does_not(lint: Lint, command: str) -> None:
    assert [finding.code for finding in lint(rule(f"allow: bash, command: '{command}'"))] == []


@pytest.mark.parametrize(
    ("command", "word", "witness"),
    [
        ("git*", 'git*" is about every word that begins with "git"', "gitx"),
        ("npm run test*", 'test*" is about every word that begins with "test"', "npm run testx"),
        ("npm run {lint,build*}", '{lint,build*}" is about every word that begins with "build"', "npm run buildx"),
    ],
)
def test_a_prefix_without_a_word_boundary_is_named(lint: Lint, command: str, word: str, witness: str) -> None:
    assert lint(rule(f"allow: bash, command: '{command}'")) == [
        LintFinding("warning", "no-word-boundary", f'a: "{word}', "a", "<text>:3", bash(witness))
    ]


@pytest.mark.parametrize(
    "command", ["git log --format=*", "npm run test:*", "head src/*", "npm run *", "cat *", "git-*", "head *.txt"]
)
def test_a_prefix_that_ends_at_a_boundary_is_not(lint: Lint, command: str) -> None:
    assert [finding.code for finding in lint(rule(f"allow: bash, command: '{command}'"))] == []


def test_a_variable_that_changes_what_runs_is_named(lint: Lint) -> None:
    findings = lint(rule("allow: bash, command: npm test, env: [CI, 'LD_*', PATH, NODE_OPTIONS, FORCE_COLOR]"))
    assert [(finding.code, finding.message, finding.witness) for finding in findings] == [
        ("environment", "a: PATH makes programs run something else", bash("PATH=x npm test")),
        ("environment", "a: NODE_OPTIONS makes programs run something else", bash("NODE_OPTIONS=x npm test")),
    ]
