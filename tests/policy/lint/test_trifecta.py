"""Text that anybody may have written, secrets, and a way out: all three in one policy are pointed out."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from ci_agent.policy.lint import LintFinding, Witness

Lint = Callable[..., list[LintFinding]]

TEXT = '{id: text, allow: read, path: ["src/**"]}'
SECRET = '{id: secret, allow: bash, command: "cat .env"}'
WAY_OUT = "{id: out, allow: bash, command: git push}"


def trifecta(findings: list[LintFinding]) -> list[LintFinding]:
    return [finding for finding in findings if finding.code == "trifecta"]


@pytest.mark.parametrize("chosen", [*product((False, True), repeat=3)], ids=str)
def test_all_three_together_are_named_and_no_two_of_them(lint: Lint, chosen: tuple[bool, bool, bool]) -> None:
    rules = [rule for rule, wanted in zip((TEXT, SECRET, WAY_OUT), chosen, strict=True) if wanted]
    findings = trifecta(lint(f"rules: [{', '.join(rules)}]") if rules else [])
    assert [(each.severity, each.rule_id, each.witness) for each in findings] == (
        [("warning", "out", Witness("bash", {"command": "git push"}))] if all(chosen) else []
    )


def test_the_message_shows_each_part_and_what_to_do(lint: Lint) -> None:
    (finding,) = trifecta(lint(f"rules: [{TEXT}, {SECRET}, {WAY_OUT}]"))
    assert finding.message == (
        'out: takes part in a way out for secrets: whoever can write what "read src/x.py" shows may make the run do '
        '"cat .env" and then "git push"; deny the secrets (as read-only does), or the way out'
    )


@pytest.mark.parametrize(
    "way_out",
    [
        "allow: fetch",
        'allow: fetch, host: [docs.python.org, "**"]',
        'allow: bash, command: "curl **"',
        'allow: bash, command: "gh {issue,pr} comment **"',
        "allow: github__create_issue",
        'allow: "*__*"',
    ],
)
def test_every_way_out_counts(lint: Lint, way_out: str) -> None:
    findings = lint(
        f"rules: [{{id: r, allow: [read, grep]}}, {{id: w, {way_out}}}]", github__create_issue={"type": "object"}
    )
    assert [each.rule_id for each in trifecta(findings)] == ["w"]


def test_pages_are_text_that_anybody_may_have_written(lint: Lint) -> None:
    rules = '{id: w, allow: fetch}, {id: s, allow: read, path: "/home/*/.ssh/**"}'
    assert [each.rule_id for each in trifecta(lint(f"rules: [{rules}]"))] == ["w"]


@pytest.mark.parametrize(
    "rules",
    [
        "extends: read-only\nrules: [{id: w, allow: fetch}]",
        "rules: [{id: r, allow: read}, {id: w, allow: fetch, host: [docs.python.org, '*.readthedocs.io']}]",
        "rules: [{id: r, allow: read}, {id: w, allow: fetch}, {id: d, deny: fetch}]",
        "rules: [{id: r, allow: [ls, find]}, {id: w, allow: bash, command: git push}]",
        "rules: [{id: r, allow: read, path: 'src/**'}, {id: w, allow: bash, command: git push}]",
    ],
)
def test_where_one_part_is_missing_or_denied_nothing_is_said(lint: Lint, rules: str) -> None:
    assert trifecta(lint(rules)) == []


def test_a_part_that_comes_from_a_base_counts(lint: Lint, tmp_path: Path) -> None:
    (tmp_path / "base.yml").write_text(f"policy: 1\nrules: [{TEXT}, {WAY_OUT}]\n")
    findings = trifecta(lint(f"extends: {tmp_path}/base.yml\nrules: [{SECRET}]"))
    assert [each.rule_id for each in findings] == ["secret"]


@pytest.mark.parametrize(
    ("kinds", "found"), [("{comment: {}}", 1), ("{patch: {paths: x}}", 1), ("{label: {names: bug}}", 0)]
)
def test_what_is_proposed_is_a_way_out_but_for_labels(lint: Lint, kinds: str, found: int) -> None:
    """A comment can say what it holds in words that no redaction knows."""
    rules = f"rules: [{TEXT}, {SECRET}, {{id: say, allow: propose}}]\nproposals: {kinds}"
    assert len(trifecta(lint(rules))) == found
