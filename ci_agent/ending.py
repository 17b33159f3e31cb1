"""Why a run ended, and what that makes of its exit code."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_agent.exit_codes import Conclusion, ResultReason, RunFacts, ToolCallCounts, conclude
from ci_agent.hooks import Decision
from ci_agent.messages import AssistantMessage, Message
from ci_agent.policy.rules import PolicySource
from ci_agent.reports.outcome import UNTAKEN
from ci_agent.run_hooks.structured_output import StructuredOutput
from ci_agent.run_settings import RunSettings
from ci_agent.spelling import listed
from ci_agent.transcript.run_facts import RunEnding


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """All that bears on how a run ended; None where nothing of the kind happened. Several can be true at once."""

    messages: Sequence[Message]
    bug: Exception | None
    limit: str | None
    stopped_by: str | None
    timed_out_after_s: float | None
    cancelled: str | None
    signal: int | None
    tool_calls: ToolCallCounts
    denial_fails: bool
    failed_by: Decision | None
    """The first denial with an `on_denied` that makes the run fail."""
    output: StructuredOutput | None
    """None: any answer will do."""
    divergence: str | None
    """Of a replay from its record, where that counts as failed."""
    delivery_problem: str | None

    @property
    def last_answer(self) -> AssistantMessage | None:
        return next((message for message in reversed(self.messages) if isinstance(message, AssistantMessage)), None)


def conclude_run(
    happened: Happened, settings: RunSettings, *, journal_changed: bool = False, files_changed: Sequence[Path] = ()
) -> RunEnding:
    """The reason, the exit code and the line that explains them.

    `journal_changed`: somebody else wrote to the record; `files_changed`: and to files of the policy or the runner.
    """
    reasons = _reasons(happened, settings)
    if journal_changed:
        reasons["tampered"] = "the journal of the run was changed or taken away by somebody else while the run went on"
    elif files_changed:
        files = listed([str(path) for path in files_changed])
        reasons["tampered"] = f"changed while the run went on, which no tool may do: {files}"
    conclusion = conclude(
        RunFacts(
            reasons=frozenset(reasons or {"completed"}),
            signal=happened.signal,
            tool_calls=happened.tool_calls,
            fail_on_denied=settings.fail_on_denied,
            fail_on_error=settings.fail_on_error,
            denial_fails=happened.denial_fails,
            diverged=happened.divergence is not None,
            output_lost=happened.delivery_problem is not None or _lost_proposals(happened, settings) is not None,
        )
    )
    last = happened.last_answer
    return RunEnding(
        reason=conclusion.reason,
        exit_code=conclusion.exit_code,
        structured_output=happened.output.value if happened.output else None,
        error=reasons.get(conclusion.reason) or _of_no_reason(happened, settings, conclusion),
        error_retryable=last.error_retryable if last else None,
    )


def _of_no_reason(happened: Happened, settings: RunSettings, conclusion: Conclusion) -> str | None:
    """Why a run that ended by itself has this exit code; None when it is that of a good end."""
    if conclusion.name == "denied":
        return _what_denials_did(happened, settings)
    return happened.divergence or happened.delivery_problem or _lost_proposals(happened, settings)


def untaken_proposals(settings: RunSettings) -> str | None:
    """A warning when the policy lets things be proposed that would go nowhere; None when they do, or there are none."""
    if settings.propose or not settings.policy.source.proposals.kinds:
        return None
    return f"the policy lets things be proposed, and {UNTAKEN}"


def _lost_proposals(happened: Happened, settings: RunSettings) -> str | None:
    """What the run wanted to be done is lost, whatever else went well."""
    if untaken_proposals(settings) is None:
        return None
    calls = [call for said in happened.messages if isinstance(said, AssistantMessage) for call in said.tool_calls]
    count = sum(call.name == "propose" for call in calls)
    lost = "1 proposal was" if count == 1 else f"{count} proposals were"
    return f"{lost} lost, for {UNTAKEN}" if count else None


def _what_denials_did(happened: Happened, settings: RunSettings) -> str:
    decision, counts = happened.failed_by, happened.tool_calls
    if decision is not None:
        return f"{_said_by(decision, settings.policy.source)}, and this was denied: {decision.reason}"
    were = "call was" if counts.denied == 1 else "calls were"
    none = " and not one succeeded" if settings.fail_on_denied == "all" else ""
    return f"{counts.denied} {were} denied{none}, which --fail-on-denied {settings.fail_on_denied} makes a failure"


def _said_by(decision: Decision, source: PolicySource) -> str:
    """Who asks that a denial makes the run fail: the rule that denied, or else its file for all denials."""
    rule = next((rule for rule in source.rules if rule.id == decision.rule_id and rule.on_denied), None)
    who = f"the policy {source.name}" if rule is None else f"rule {rule.id} ({rule.source})"
    return f"{who} says on_denied: {decision.on_denied}"


def _reasons(happened: Happened, settings: RunSettings) -> dict[ResultReason, str | None]:
    """Each reason that applies, with a line that explains it."""
    found: dict[ResultReason, str | None] = {}
    if happened.cancelled is not None:
        found["cancelled"] = happened.cancelled
    if happened.timed_out_after_s is not None:
        found["timeout"] = f"the run took longer than {happened.timed_out_after_s:g} s{_what_was_waited_for(happened)}"
    if happened.bug is not None:
        found["internal_error"] = f"{type(happened.bug).__name__}: {happened.bug}"
    last = happened.last_answer
    if last is not None and last.stop_reason == "error":
        found["provider_error"] = last.error_message
    if happened.limit is not None:
        found["limit"] = happened.limit
    if happened.stopped_by is not None:
        by = happened.failed_by
        found["stopped"] = happened.stopped_by + (f" ({_said_by(by, settings.policy.source)})" if by else "")
    if not found and last is not None and last.stop_reason == "length" and not _is_whole(happened.output):
        found["limit"] = (
            f"the answer was cut off at its maximum length ({last.usage.output_tokens} tokens): raise "
            "--max-output-tokens, or ask for a shorter answer"
        )
    if not found and happened.output is not None and not happened.output.satisfied:
        found["schema_mismatch"] = f"the answer does not satisfy the output schema: {happened.output.problem}"
    return found


def _what_was_waited_for(happened: Happened) -> str:
    """The model, if the time was up while it was asked; as the end of a sentence."""
    *before, last = happened.messages or (None,)
    if not (before and isinstance(last, AssistantMessage) and last.stop_reason == "aborted"):
        return ""
    waited_s = (last.timestamp - before[-1].timestamp).total_seconds()
    what = "an answer that the model had not finished" if last.content else "the model, which did not answer"
    return f", the last {waited_s:.0f} s of them waiting for {what}"


def _is_whole(output: StructuredOutput | None) -> bool:
    """A JSON value that satisfies its schema lacks nothing, wherever the message ended."""
    return output is not None and output.satisfied
