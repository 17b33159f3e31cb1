from collections.abc import Callable

import pytest

from ci_agent.policy.lint import LintFinding, Witness

Lint = Callable[..., list[LintFinding]]


def write(path: str) -> Witness:
    return Witness("write", {"content": "", "path": path})


@pytest.mark.parametrize(
    ("command", "path", "shown"),
    [
        ("make test", "Makefile", "make test"),
        ("npm test", "package.json", "npm test"),
        ("npm run {lint,build}", "package.json", "npm run lint"),
        ("pytest **", "tests/**", "pytest"),
        ("python -m pytest **", "conftest.py", "python -m pytest"),
        ("go test ./...", "internal/**", "go test ./..."),
        ("cargo build", "build.rs", "cargo build"),
        ("./build.sh *", "build.sh", "./build.sh x"),
        ("python scripts/run.py", "scripts/**", "python scripts/run.py"),
    ],
)
def test_a_file_that_an_allowed_command_runs_and_that_may_be_written_is_named(
    lint: Lint, command: str, path: str, shown: str
) -> None:
    findings = lint(
        f"rules:\n  - {{id: run, allow: bash, command: '{command}'}}\n  - {{id: save, allow: write, path: '{path}'}}\n"
    )
    assert [(finding.severity, finding.code, finding.rule_id) for finding in findings] == [
        ("warning", "edits-what-runs", "run")
    ]
    witness = findings[0].witness
    assert witness
    assert witness.tool == "write"
    assert findings[0].message == (
        f'run: "{shown}", which run grants, runs code from {witness.arguments["path"]}, which save lets '
        "the agent write: together they let it run anything"
    )


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("make test", "docs/**"),
        ("npm test", "README.md"),
        ("git status", "**"),
        ("go build ./...", "internal/**"),
        ("cargo fmt --check", "**"),
        ("pytest", "src/data/*.json"),
        ("/usr/bin/true", "**"),
    ],
)
def test_a_file_that_nothing_runs_is_not(lint: Lint, command: str, path: str) -> None:
    rules = (
        f"rules:\n  - {{id: run, allow: bash, command: '{command}'}}\n  - {{id: save, allow: write, path: '{path}'}}\n"
    )
    assert lint(rules) == []


def test_a_deny_rule_that_keeps_them_apart_is_respected(lint: Lint) -> None:
    rules = """\
rules:
  - {id: run, allow: bash, command: make test}
  - {id: save, allow: [write, edit]}
  - {id: keep, deny: [write, edit], path: "**/{Makefile,makefile,GNUmakefile}"}
"""
    assert lint(rules) == []


def test_a_pair_with_a_base_is_named_at_the_rule_of_the_file_itself(lint: Lint) -> None:
    findings = lint("extends: edit-source\nrules:\n  - {id: run, allow: bash, command: pytest}\n")
    assert [(finding.code, finding.rule_id, finding.witness) for finding in findings] == [
        ("edits-what-runs", "run", write("tests/conftest.py"))
    ]


def test_a_pair_of_two_bases_is_found_where_they_are_joined_and_nowhere_else(lint: Lint) -> None:
    assert lint("extends: test-and-fix\nrules: [{id: a, allow: fetch, host: docs.python.org}]") == []


@pytest.mark.parametrize(
    ("path", "messages", "witness"),
    [
        (".git/**", ["a: grants writing .git/hooks/pre-commit, and git runs it"], ".git/hooks/pre-commit"),
        (".git/config", ["a: grants writing .git/config, and git takes commands from it"], ".git/config"),
        (
            ".github/workflows/*.yml",
            ["a: grants writing .github/workflows/ci.yml, and CI runs it"],
            ".github/workflows/ci.yml",
        ),
    ],
)
def test_writing_to_the_repository_itself_is_named(lint: Lint, path: str, messages: list[str], witness: str) -> None:
    findings = lint(f"rules:\n  - {{id: a, allow: write, path: '{path}'}}\n")
    assert [finding.message for finding in findings] == messages
    assert [(finding.code, finding.witness) for finding in findings] == [("writes-repository", write(witness))]


def test_a_wildcard_does_not_reach_the_repository_itself(lint: Lint) -> None:
    assert lint("rules:\n  - {id: a, allow: [write, edit], path: '**'}\n") == []
