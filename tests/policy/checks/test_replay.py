"""Recorded calls under another policy."""

from pathlib import Path

from ci_agent.hooks import DecisionCode, Effect
from ci_agent.policy.checks.recorded import RecordedAnswer, RecordedCall, RecordedRun
from ci_agent.policy.checks.replay import replay_run
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.workspace import open_workspace


def policy(rules: str, workspace: Path) -> Policy:
    return compile_policy(load_policy_source(text=f"policy: 1\nrules: {rules}"), open_workspace(workspace))


def recorded(*answers: tuple[str, Effect, DecisionCode]) -> RecordedRun:
    calls = [
        RecordedCall("t.json", seq, "read", {"path": path}, RecordedAnswer(effect, code, None, "Because."))
        for seq, (path, effect, code) in enumerate(answers, 1)
    ]
    return RecordedRun("t.json", None, tuple(calls), ())


def test_a_call_flips_when_another_answer_comes_and_not_when_another_reason_comes(tmp_path: Path) -> None:
    run = recorded(("a", "allow", "rule"), ("b", "deny", "default"), ("c", "deny", "rule"), ("d", "allow", "rule"))
    replayed = replay_run(run, policy("[{id: x, allow: read, path: [b, d]}]", tmp_path))
    assert [(each.call.seq, each.decision.effect, each.flips) for each in replayed] == [
        *((1, "deny", True), (2, "allow", True), (3, "deny", False), (4, "allow", False)),
    ]


def test_calls_that_a_rule_counts_are_counted_as_in_a_run(tmp_path: Path) -> None:
    run = recorded(("a", "allow", "rule"), ("b", "allow", "rule"), ("c", "deny", "limit"))
    counting = "[{id: x, allow: read, max_calls: %d}]"
    for max_calls, flips in ((1, [2]), (2, []), (3, [3])):
        replayed = replay_run(run, policy(counting % max_calls, tmp_path))
        assert [each.call.seq for each in replayed if each.flips] == flips


def test_each_run_counts_for_itself(tmp_path: Path) -> None:
    run = recorded(("a", "allow", "rule"))
    once = policy("[{id: x, allow: read, max_calls: 1}]", tmp_path)
    assert [each.flips for _ in range(2) for each in replay_run(run, once)] == [False, False]
