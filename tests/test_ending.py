"""Why a run ended: several things can be true at once, and one of them counts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ci_agent import RunSettings, load_policy
from ci_agent.ending import Happened, conclude_run
from ci_agent.exit_codes import ToolCallCounts
from ci_agent.messages import AssistantMessage, TextContent, Usage, UserMessage
from ci_agent.run_hooks.structured_output import StructuredOutput
from ci_agent.transcript.run_facts import RunEnding

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANSWER = AssistantMessage((TextContent("Done."),), "stop", "p", "m", "a", NOW)
FAILED = AssistantMessage((), "error", "p", "m", "a", NOW, error_message="overloaded", error_retryable=True)
CUT_OFF = AssistantMessage((TextContent("Do"),), "length", "p", "m", "a", NOW, Usage(output_tokens=7))
ASKED = UserMessage((TextContent("Go."),), NOW - timedelta(seconds=28))
ABORTED = AssistantMessage((), "aborted", "p", "m", "a", NOW)
TIMED_OUT = "the run took longer than 30 s, the last 28 s of them waiting for"
CUT_OFF_ERROR = (
    "the answer was cut off at its maximum length (7 tokens): raise --max-output-tokens, or ask for a shorter answer"
)

FINE = Happened(
    messages=(ANSWER,),
    bug=None,
    limit=None,
    stopped_by=None,
    timed_out_after_s=None,
    cancelled=None,
    signal=None,
    tool_calls=ToolCallCounts(ok=1),
    denial_fails=False,
    failed_by=None,
    output=None,
    divergence=None,
    delivery_problem=None,
)


@pytest.fixture
def settings(tmp_path: Path) -> RunSettings:
    return RunSettings(prompt="p", policy=load_policy("read-only", workspace=tmp_path), model="scripted:x")


@pytest.mark.parametrize(
    ("happened", "ending"),
    [
        (FINE, RunEnding("completed", 0)),
        (replace(FINE, delivery_problem="nobody listens"), RunEnding("completed", 1, error="nobody listens")),
        (
            replace(FINE, messages=(FAILED,)),
            RunEnding("provider_error", 4, error="overloaded", error_retryable=True),
        ),
        (replace(FINE, messages=(CUT_OFF,)), RunEnding("limit", 6, error=CUT_OFF_ERROR)),
        (
            replace(FINE, messages=(CUT_OFF,), delivery_problem="nobody listens", tool_calls=ToolCallCounts(denied=1)),
            RunEnding("limit", 6, error=CUT_OFF_ERROR),
        ),
        (replace(FINE, messages=(CUT_OFF, ANSWER)), RunEnding("completed", 0)),
        (replace(FINE, limit="9 turns"), RunEnding("limit", 6, error="9 turns")),
        (replace(FINE, stopped_by="trap", denial_fails=True), RunEnding("stopped", 5, error="trap")),
        (replace(FINE, timed_out_after_s=2.5), RunEnding("timeout", 124, error="the run took longer than 2.5 s")),
        (
            replace(FINE, messages=(ASKED, ABORTED), timed_out_after_s=30),
            RunEnding("timeout", 124, error=f"{TIMED_OUT} the model, which did not answer"),
        ),
        (
            replace(FINE, messages=(ASKED, replace(ABORTED, content=ANSWER.content)), timed_out_after_s=30),
            RunEnding("timeout", 124, error=f"{TIMED_OUT} an answer that the model had not finished"),
        ),
        (replace(FINE, bug=KeyError("x")), RunEnding("internal_error", 70, error="KeyError: 'x'")),
        (replace(FINE, cancelled="received SIGTERM", signal=15), RunEnding("cancelled", 143, error="received SIGTERM")),
        (replace(FINE, cancelled="enough"), RunEnding("cancelled", 130, error="enough")),
        (
            replace(FINE, cancelled="received SIGINT", signal=2, timed_out_after_s=1, limit="x", bug=KeyError()),
            RunEnding("cancelled", 130, error="received SIGINT"),
        ),
        (
            replace(FINE, tool_calls=ToolCallCounts(denied=2, error=1)),
            RunEnding(
                "denied",
                5,
                error="2 calls were denied and not one succeeded, which --fail-on-denied all makes a failure",
            ),
        ),
    ],
)
def test_the_first_in_the_order_of_precedence_counts(
    settings: RunSettings, happened: Happened, ending: RunEnding
) -> None:
    assert conclude_run(happened, settings) == ending


POLICY = """\
policy: 1
on_denied: fail
rules:
  - {id: no-push, deny: bash, command: git push **, on_denied: stop}
  - {id: no-tags, deny: bash, command: git tag **}
"""


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (
            "git push",
            "rule no-push (<text>:4) says on_denied: stop, and this was denied: Blocked by policy rule no-push: ",
        ),
        ("git tag x", "the policy <text> says on_denied: fail, and this was denied: Blocked by policy rule no-tags: "),
        ("ls", "the policy <text> says on_denied: fail, and this was denied: Blocked: no policy rule allows "),
    ],
)
def test_what_makes_denials_a_failure_is_named(settings: RunSettings, command: str, error: str) -> None:
    policy = load_policy(text=POLICY, workspace=settings.policy.site.workspace.root)
    decision = policy.decide("bash", {"command": command})
    happened = replace(FINE, denial_fails=True, failed_by=decision, tool_calls=ToolCallCounts(ok=1, denied=1))
    ending = conclude_run(happened, replace(settings, policy=policy))
    assert (ending.reason, ending.exit_code) == ("denied", 5)
    assert (ending.error or "").startswith(error)
    stopped = conclude_run(replace(happened, stopped_by="stopped"), replace(settings, policy=policy))
    assert stopped.error == f"stopped ({error.partition(', and')[0]})"


def test_one_denial_is_enough_when_the_flag_says_so(settings: RunSettings) -> None:
    happened = replace(FINE, tool_calls=ToolCallCounts(ok=3, denied=1))
    assert conclude_run(happened, replace(settings, fail_on_denied="any")) == RunEnding(
        "denied", 5, error="1 call was denied, which --fail-on-denied any makes a failure"
    )


def test_a_record_that_somebody_changed_outweighs_a_good_end(settings: RunSettings) -> None:
    assert conclude_run(FINE, settings, journal_changed=True) == RunEnding(
        "tampered", 9, error="the journal of the run was changed or taken away by somebody else while the run went on"
    )


def test_files_that_somebody_changed_are_named(settings: RunSettings) -> None:
    files = [Path(f"/runner/{name}") for name in "abcd"]
    assert conclude_run(FINE, settings, files_changed=files) == RunEnding(
        "tampered",
        9,
        error="changed while the run went on, which no tool may do: /runner/a, /runner/b, /runner/c and 1 more",
    )


def test_an_answer_without_the_schema_is_a_mismatch_only_when_nothing_worse_happened(settings: RunSettings) -> None:
    output = StructuredOutput({"type": "object"}, lambda: NOW)
    output.problem = "it is not JSON"
    missed = conclude_run(replace(FINE, output=output), settings)
    assert (missed.reason, missed.exit_code) == ("schema_mismatch", 7)
    assert missed.error == "the answer does not satisfy the output schema: it is not JSON"
    failed = conclude_run(replace(FINE, output=output, messages=(FAILED,)), settings)
    assert (failed.reason, failed.exit_code) == ("provider_error", 4)


@pytest.mark.parametrize(("satisfied", "reason"), [(True, "completed"), (False, "limit")])
def test_json_that_satisfies_its_schema_is_whole_wherever_the_message_ended(
    settings: RunSettings, satisfied: bool, reason: str
) -> None:
    output = StructuredOutput({}, lambda: NOW, satisfied=satisfied)
    happened = replace(FINE, messages=(CUT_OFF,), output=output)
    assert conclude_run(happened, settings).reason == reason
