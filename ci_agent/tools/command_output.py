"""How a command ended: in words for the model, and in facts for the record."""

import codecs
import re
import signal

from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.process import Output, ProcessResult
from ci_agent.tool import ToolResult
from ci_agent.tools.define import text_result
from ci_agent.tools.truncate import (
    MAX_BYTES,
    MAX_LINES,
    Truncated,
    join_head_and_tail,
    keep_head,
    keep_head_and_tail,
    keep_tail,
)

_SHOWN_BYTES = MAX_BYTES - 1_000
_SHOWN_LINES = MAX_LINES - 10
"""What the words about the ending, and the note about what is missing, leave for the output."""

_BACKGROUND_NOTE = "[It left something running in the background, which has been killed: nothing outlives its call.]"


_REFUSED = re.compile(
    rb"Permission denied|Operation not permitted|Read-only file system|cross-device link|Network is unreachable"
    rb"|\b(?:EACCES|EPERM|EROFS|EXDEV|PermissionError)\b|os error 13\b",
    re.IGNORECASE,
)
"""What programs print when the kernel has refused them something."""

_UNREACHABLE = re.compile(
    rb"could not resolve|couldn't resolve|unable to resolve|failed to resolve|failed to lookup address|no such host"
    rb"|name or service not known|temporary failure in name resolution|nodename nor servname|name does not resolve"
    rb"|dns error|getaddrinfo|\b(?:EAI_AGAIN|ENOTFOUND|ENETUNREACH)\b|network is unreachable"
    rb"|(?:couldn't|could not|failed to|unable to|cannot) (?:establish a new )?connect"
    rb"|\b(?:connect|connection|listen|bind|serve|server)\b[^\n]{0,100}(?:EACCES|permission denied|\nPermissionError)"
    rb"|permission denied[^\n]{0,80}\b(?:bind|connect|listen|socket)\b"
    rb"|\bsocket\b[^\n]{0,100}(?:permission denied|\n?PermissionError)",
    re.IGNORECASE,
)
"""What they print when they reach no server, or may not be one."""


def present_ending(
    result: ProcessResult,
    time_out: str,
    more_details: JsonObject,
    *,
    when_refused: str | None = None,
    when_unreachable: str | None = None,
) -> ToolResult:
    """What the command printed, if it succeeded; if not, a ToolError that says the same and, last, how it ended.

    `time_out` is how a time-out is put into words. `when_refused` is added when the output of a command that failed
    looks as if the kernel had refused it something, `when_unreachable` when it looks as if that was a server. Output
    stays as it came, ANSI sequences and control characters included: escaping them is for whoever shows them to a
    person. Bytes that are not UTF-8 become U+FFFD.
    """
    shown, replaced = _shown(result.output)
    notes = [_BACKGROUND_NOTE] if result.left_background else []
    details = _facts(result, shown, replaced) | more_details
    if result.exit_status == 0 and not result.timed_out and result.killed_because is None:
        return text_result(_with_notes(shown.text, notes), details)
    kept = result.output.head + b"\n" + result.output.tail
    if when_refused and _REFUSED.search(kept):
        notes.append(when_refused)
    if when_unreachable and _UNREACHABLE.search(kept):
        notes.append(when_unreachable)
    raise ToolError(_with_notes(shown.text, [*notes, _ending(result, time_out)]), details)


def present_unfinished(result: ProcessResult, more_details: JsonObject) -> ToolResult:
    """What a command had printed when its call was cancelled."""
    shown, replaced = _shown(result.output)
    return text_result(shown.text, _facts(result, shown, replaced) | more_details)


def _with_notes(text: str, notes: list[str]) -> str:
    text = text or "(no output)"
    line_end = "\n" if notes and not text.endswith("\n") else ""
    return text + line_end + "\n".join(notes)


def _ending(result: ProcessResult, time_out: str) -> str:
    if result.killed_because is not None:
        return f"was killed: {result.killed_because}"
    if result.timed_out:
        return time_out
    if result.signal is not None:
        return f"killed by signal {result.signal}{_signal_name(result.signal)}"
    return f"exit status {result.exit_status}"


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal
        return ""


def _facts(result: ProcessResult, shown: Truncated, replaced: int) -> JsonObject:
    return {
        "exit_status": result.exit_status,
        "signal": result.signal,
        "timed_out": result.timed_out,
        "killed_because": result.killed_because,
        "duration_s": round(result.duration_s, 3),
        "left_background": result.left_background,
        "output_bytes": result.output.total_bytes,
        "truncated": shown.omitted_bytes > 0,
        "omitted_bytes": shown.omitted_bytes,
        "omitted_lines": shown.omitted_lines,
        "replaced": replaced,
    }


def _shown(output: Output) -> tuple[Truncated, int]:
    """The text for the model, and how many U+FFFD stand in for invalid bytes in what was kept."""
    if output.is_complete:
        data = output.head + output.tail
        text = data.decode("utf-8", "replace")
        return keep_head_and_tail(text, _SHOWN_BYTES, _SHOWN_LINES), _replaced(text, data)
    head, tail = _decode_head(output.head), _decode_tail(output.tail)
    replaced = _replaced(head, output.head) + _replaced(tail, output.tail)
    return _shown_ends(head.encode(), tail.encode(), output), replaced


def _shown_ends(head: bytes, tail: bytes, output: Output) -> Truncated:
    head = keep_head(head, _SHOWN_BYTES // 2, _SHOWN_LINES // 2)
    tail = keep_tail(tail, _SHOWN_BYTES // 2, _SHOWN_LINES // 2)
    return join_head_and_tail(
        head.decode(),
        tail.decode(),
        omitted_bytes=output.total_bytes - len(head) - len(tail),
        omitted_lines=output.total_newlines - head.count(b"\n") - tail.count(b"\n"),
    )


def _decode_head(data: bytes) -> str:
    # An incremental decoder keeps a character that is cut in two at the end to itself.
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def _decode_tail(data: bytes) -> str:
    start = next((index for index in range(min(len(data), 4)) if data[index] & 0xC0 != 0x80), 0)
    return data[start:].decode("utf-8", "replace")


def _replaced(text: str, data: bytes) -> int:
    return text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
