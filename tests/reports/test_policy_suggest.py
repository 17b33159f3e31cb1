"""Suggested rules as YAML with comments."""

from ci_agent.policy.checks.recorded import RecordedAnswer, RecordedCall, SkippedCall
from ci_agent.policy.lint.finding import LintFinding, Witness
from ci_agent.policy.rules import Rule
from ci_agent.policy.suggest import Extension, NotSuggested, Suggestion, Suggestions
from ci_agent.reports.policy_suggest import render_suggestions, suggestions_json

NO = RecordedAnswer("deny", "default", None, "No.")


def call(seq: int, **arguments: str) -> RecordedCall:
    return RecordedCall("t.json", seq, "read", arguments, NO)


def test_every_line_beside_the_rules_is_a_comment() -> None:
    rule = Rule(id="x", effect="allow", tools=("read",), source="", path=("/etc/hostname",))
    finding = LintFinding(
        "warning", "edits-what-runs", "x: both\ntogether", "x", "p.yml:1", Witness("read", {"path": "a"})
    )
    suggestion = Suggestion(
        rule=rule,
        yaml="  - id: x\n    allow: read",
        calls=tuple(call(seq) for seq in range(1, 13)),
        also_allows=(Witness("bash", {"command": "a\nb"}),),
        findings=(finding,),
    )
    found = Suggestions((suggestion,), (NotSuggested(call(13, path="a\nb"), "rule", "no\nway"),), (call(14),))
    text = render_suggestions("p.yml", found, [SkippedCall("t.json", 15, "ls", "run_limit")], ["decided here"])
    evidence = ", ".join(f"t.json #{seq}" for seq in range(1, 11))
    headline = (
        "# 1 rule for 12 denied calls, as narrow as they can be: what you want of them goes beneath `rules:` in p.yml"
    )
    assert text.splitlines() == [
        *(headline, ""),
        f"  # denied: {evidence} and 2 more",
        "  # outside the workspace: /etc/hostname",
        r'''  # also allows: bash: "a\nb"''',
        r"  # warning: x: both\ntogether (for example read: a) [edits-what-runs]",
        *("  - id: x", "    allow: read", ""),
        "# not suggested:",
        r"#   t.json #13  read  a\nb  rule: no\nway",
        "# allowed by the policy already: t.json #14",
        "# left out: 1 call (1 run limit)",
        "# decided here",
    ]


def test_a_policy_to_extend_is_told_in_comments_and_to_programs() -> None:
    found = Suggestions((), (), (), Extension("read-only", (call(1), call(2), call(3))))
    assert render_suggestions("p.yml", found, []).splitlines()[1:3] == [
        "# or, wider: `extends: [read-only]` allows 3 of these calls (t.json #1, t.json #2, t.json #3)",
        "#   with all that it allows and forbids besides: ci-agent policy show read-only",
    ]
    told = suggestions_json(found, [])["extends"]
    assert (told["policy"], [each["seq"] for each in told["evidence"]]) == ("read-only", [1, 2, 3])
    assert suggestions_json(Suggestions((), (), ()), [])["extends"] is None
