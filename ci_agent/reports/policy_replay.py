"""What `policy replay` found, for a person and for a program."""

from collections import Counter
from collections.abc import Iterator, Sequence

from ci_agent.call_summary import summarise_arguments
from ci_agent.json_types import JsonObject
from ci_agent.policy.checks.recorded import SkippedCall
from ci_agent.policy.checks.replay import ReplayedCall
from ci_agent.spelling import counted
from ci_agent.terminal import printable, shortened
from ci_agent.transcript.as_json import decision_json

_MAX_REASON_CHARS = 160


def render_replay(replayed: Sequence[ReplayedCall], skipped: Sequence[SkippedCall]) -> str:
    """A line for each call that would be decided otherwise, then how many there are, and how many are left out."""
    flips = [call for call in replayed if call.flips]
    lines = list(_table(flips))
    lines.append(f"{counted(len(flips), 'call')} would change, {len(replayed) - len(flips)} unchanged")
    if skipped:
        lines.append(f"left out: {_why(skipped)}")
    return "\n".join(lines)


def replay_json(replayed: Sequence[ReplayedCall], skipped: Sequence[SkippedCall]) -> JsonObject:
    """The same for a program."""
    flips = [call for call in replayed if call.flips]
    return {
        "flips": [_flip_json(flip) for flip in flips],
        "unchanged": len(replayed) - len(flips),
        "skipped": [skipped_json(call) for call in skipped],
    }


def skipped_json(call: SkippedCall) -> JsonObject:
    """A call that could not be decided again."""
    return {"transcript": call.transcript, "seq": call.seq, "tool": call.tool, "why": call.why}


def render_skipped(skipped: Sequence[SkippedCall]) -> str:
    """How many calls are left out, by why: `3 calls (2 arguments, 1 lookup)`."""
    counts = Counter(call.why.replace("_", " ") for call in skipped)
    return f"{counted(len(skipped), 'call')} ({', '.join(f'{count} {why}' for why, count in sorted(counts.items()))})"


def _why(skipped: Sequence[SkippedCall]) -> str:
    return f"{render_skipped(skipped)}, which no policy decided or which are not on record as they were"


def _table(flips: Sequence[ReplayedCall]) -> Iterator[str]:
    rows = [_row(flip) for flip in flips]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(flip: ReplayedCall) -> tuple[str, ...]:
    call, decision = flip.call, flip.decision
    by = decision.rule_id or decision.code
    return (
        printable(call.transcript),
        f"#{call.seq}",
        printable(call.tool),
        summarise_arguments(call.arguments, ""),
        f"{call.answer.effect} -> {decision.effect}",
        f"{by}: {shortened(printable(decision.reason), _MAX_REASON_CHARS)}",
    )


def _flip_json(flip: ReplayedCall) -> JsonObject:
    call, before = flip.call, flip.call.answer
    return {
        "transcript": call.transcript,
        "seq": call.seq,
        "tool": call.tool,
        "args": call.arguments,
        "before": {
            "effect": before.effect,
            "code": before.code,
            "rule_id": before.rule_id,
            "reason": before.reason,
        },
        "after": decision_json(flip.decision),
    }
