from collections.abc import Callable

import pytest

from ci_agent.policy.lint import LintFinding, Witness

Lint = Callable[..., list[LintFinding]]


def overlaps(findings: list[LintFinding]) -> list[tuple[str, str]]:
    return [(finding.code, finding.message) for finding in findings if finding.code in ("redundant", "shadowed")]


@pytest.mark.parametrize(
    ("first", "second", "text", "other"),
    [
        ("allow: bash, command: git log **", "allow: bash, command: git log **", "git log **", "git log **"),
        ("allow: bash, command: git log **", "allow: bash, command: git log -1", "git log -1", "git log **"),
        ("allow: bash, command: 'git {log,diff} **'", "allow: bash, command: git log", "git log", "git {log,diff} **"),
        ("allow: bash, command: npm run *", "allow: bash, command: npm run lint", "npm run lint", "npm run *"),
        ("allow: read", "allow: read, path: src/**", "read src/**", "read"),
        ("allow: read, path: src/**", "allow: read, path: src/a/**", "read src/a/**", "read src/**"),
        ("allow: [read, ls], path: src/**", "allow: ls, path: src/a.py", "ls src/a.py", "ls src/**"),
        ("allow: read, path: '{src,lib}/**'", "allow: read, path: lib/a.py", "read lib/a.py", "read {src,lib}/**"),
        ("allow: fetch, host: [a.org, b.org]", "allow: fetch, host: b.org", "fetch b.org", "fetch b.org"),
        ("allow: 'github__*'", "allow: github__search", "github__search", "github__*"),
    ],
)  # fmt: skip
def test_what_another_pattern_grants_already_is_redundant(
    lint: Lint, first: str, second: str, text: str, other: str
) -> None:
    rules = f"rules:\n  - {{id: a, {first}}}\n  - {{id: b, {second}}}\n"
    assert overlaps(lint(rules)) == [("redundant", f'b: "{text}" is granted by "{other}" of a already')]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("allow: bash, command: git log **", "allow: bash, command: git diff **"),
        ("allow: bash, command: git log", "allow: bash, command: git log **"),
        ("allow: bash, command: git log **", "allow: bash, command: git log --output=x"),
        ("allow: bash, command: git log **, paths: src/**", "allow: bash, command: git log"),
        ("allow: bash, command: npm test", "allow: bash, command: npm test, env: CI"),
        ("allow: bash, command: npm test, max_calls: 2", "allow: bash, command: npm test"),
        ("allow: read, path: src/**", "allow: read"),
        ("allow: read, path: src/**", "allow: ls, path: src/**"),
        ("allow: read, path: '*/a'", "allow: read, path: 'src/*'"),
        ("allow: read", "allow: read, path: /usr/share/**"),
        ("allow: fetch, host: '*.a.org'", "allow: fetch, host: a.org"),
        ("allow: fetch, host: a.org", "allow: fetch, host: a.org, method: HEAD"),
        ("allow: x__y, args: {a: {const: 1}}", "allow: x__y"),
        ("allow: x__y, only: true", "allow: x__y"),
    ],
)
def test_what_reaches_further_is_not(lint: Lint, first: str, second: str) -> None:
    findings = lint(f"rules:\n  - {{id: a, {first}}}\n  - {{id: b, {second}}}\n")
    assert [finding for finding in findings if finding.rule_id == "b" and finding.code == "redundant"] == []


def test_a_wider_rule_further_down_makes_the_narrow_one_redundant(lint: Lint) -> None:
    rules = "rules:\n  - {id: a, allow: read, path: src/x}\n  - {id: b, allow: read, path: src/**}\n"
    assert overlaps(lint(rules)) == [("redundant", 'a: "read src/x" is granted by "read src/**" of b already')]


def test_two_patterns_of_one_rule_are_compared_too(lint: Lint) -> None:
    rules = "rules:\n  - {id: a, allow: read, path: [src/**, src/x]}\n"
    assert overlaps(lint(rules)) == [
        ("redundant", 'a: "read src/x" is granted by "read src/**" of the rule itself already')
    ]


def test_what_a_base_grants_already_is_redundant(lint: Lint) -> None:
    assert lint("extends: read-only\nrules: [{id: a, allow: grep, path: src/**}]") == [
        LintFinding(
            "warning",
            "redundant",
            'a: "grep src/**" is granted by "grep" of read-only/look already',
            "a",
            "<text>:3",
            Witness("grep", {"pattern": "text", "path": "src/x"}),
        )
    ]


@pytest.mark.parametrize(
    ("deny", "allow", "text", "arguments"),
    [
        ("deny: bash, command: git push **", "allow: bash, command: git push", "git push", {"command": "git push"}),
        ("deny: bash", "allow: bash, command: git status", "git status", {"command": "git status"}),
        ("deny: read, path: '**/.env'", "allow: read, path: sub/.env", "read sub/.env", {"path": "sub/.env"}),
        ("deny: read, path: src/**", "allow: read, path: src/a/**", "read src/a/**", {"path": "src/a/x"}),
        ("deny: '*__*'", "allow: x__y", "x__y", {}),
        ("deny: fetch, host: '**'", "allow: fetch, host: a.org", "fetch a.org", {"url": "https://a.org/"}),
    ],
)  # fmt: skip
def test_what_a_deny_rule_forbids_as_a_whole_is_shadowed(
    lint: Lint, deny: str, allow: str, text: str, arguments: dict[str, str]
) -> None:
    findings = lint(f"rules:\n  - {{id: guard, {deny}}}\n  - {{id: a, {allow}}}\n")
    shadowed = [finding for finding in findings if finding.code == "shadowed"]
    assert [finding.message for finding in shadowed] == [f'a: what "{text}" grants is forbidden by guard']
    assert [finding.witness and finding.witness.arguments for finding in shadowed] == [arguments]


@pytest.mark.parametrize(
    ("deny", "allow"),
    [
        ("deny: bash, command: git push **, has: --force", "allow: bash, command: git push **"),
        ("deny: bash, command: git push origin", "allow: bash, command: git push **"),
        ("deny: read, path: '**/.env'", "allow: read, path: sub/**"),
        ("deny: x__y, args: {a: {const: 1}}", "allow: x__y"),
        ("deny: write", "allow: read"),
    ],
)
def test_what_is_forbidden_in_part_is_not(lint: Lint, deny: str, allow: str) -> None:
    assert overlaps(lint(f"rules:\n  - {{id: guard, {deny}}}\n  - {{id: a, {allow}}}\n")) == []


def test_nothing_is_called_redundant_that_is_denied_anyway(lint: Lint) -> None:
    rules = """\
rules:
  - {id: a, allow: read}
  - {id: b, allow: read, path: "{src,lib}/**"}
  - {id: guard, deny: read, path: ["src/**", "lib/x"]}
"""
    assert overlaps(lint(rules)) == []
