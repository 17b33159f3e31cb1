"""A decision for a person: what the call would do, which rule says what, and the rule that came closest."""

from ci_agent.hooks import Decision, FactVerdict, NearestRule
from ci_agent.reports.decision import render_decision


def test_an_allowed_call_shows_the_rule_behind_each_effect() -> None:
    facts = (FactVerdict("exec", "wc -l a", granted_by="count"), FactVerdict("write", "/ws/x", granted_by="out"))
    decision = Decision("allow", "rule", "Allowed", rule_id="count", source="p.yml:3", facts=facts)
    assert render_decision(decision) == (
        "allow  (rule count, p.yml:3)\n  exec   wc -l a  granted by count\n  write  /ws/x  granted by out"
    )


def test_a_denied_call_shows_the_reason_and_the_nearest_rule() -> None:
    facts = (FactVerdict("exec", "git push"), FactVerdict("read", "/ws/.env", forbidden_by="secrets"))
    nearest = NearestRule("git", "p.yml:4", "git status: push is not status")
    decision = Decision("deny", "default", "Blocked: no rule", facts=facts, nearest=nearest)
    assert render_decision(decision) == (
        "deny  (default)\n"
        "  exec  git push  not granted\n"
        "  read  /ws/.env  forbidden by secrets\n"
        "  Blocked: no rule\n"
        "  nearest rule: git (p.yml:4): git status: push is not status"
    )


def test_hostile_values_stay_harmless_lines() -> None:
    decision = Decision("deny", "default", "a\n\x1b[31m##[error]", facts=(FactVerdict("exec", "x\n::error::y"),))
    assert render_decision(decision) == (
        "deny  (default)\n  exec  x\\n::error::y  not granted\n  a\n  \\x1b[31m##\\[error]"
    )


def test_why_the_nearest_rule_does_not_fit_is_said_once() -> None:
    nearest = NearestRule("git", "p.yml:4", "`push` is not `status`")
    decision = Decision("deny", "default", "Blocked. The nearest, git: `push` is not `status`", nearest=nearest)
    assert render_decision(decision).splitlines()[-1] == "  nearest rule: git (p.yml:4)"


def test_a_program_that_no_rule_is_about_comes_with_what_to_write() -> None:
    fact = FactVerdict("exec", "'my tool' -x")
    decision = Decision("deny", "default", "Blocked: no rule", facts=(fact,), fact=fact)
    assert render_decision(decision).splitlines()[-1] == (
        "  to allow it: add `'my tool' **` to the commands of a rule that allows bash"
    )
