"""The run as it goes on, one line for each thing that happened, for a log that a person reads later."""

from collections.abc import Callable, Iterable

from ci_agent.call_summary import summarise_arguments, summarise_failure
from ci_agent.events import AgentEvent, MessageEnd, MessageUpdate, ToolExecutionEnd
from ci_agent.hooks import Decision, ToolCallOutcome
from ci_agent.json_types import parse_json
from ci_agent.messages import AssistantMessage, TextContent, ThinkingContent, ToolCall
from ci_agent.provider import StreamNotice
from ci_agent.terminal import printable, shortened

_MAX_TOOL_CHARS = 40
_MAX_SHOWN_LINES = 6
"""Of each result, with `verbose`: the first, of a failed call the last; the record has all of it."""


class ProgressLines:
    """Turns events into lines such as `12.3s  turn 4  bash  git push  denied by no-push`."""

    def __init__(self, write_line: Callable[[str], None], monotonic: Callable[[], float], *, verbose: bool) -> None:
        self._write_line = write_line
        self._monotonic = monotonic
        self._verbose = verbose
        self._started = monotonic()

    def __call__(self, event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd):
            self._line(
                event.turn,
                shortened(printable(event.tool_call.name[:_MAX_TOOL_CHARS]), _MAX_TOOL_CHARS) or '""',
                call_summary(event.tool_call),
                _ending(event.outcome),
            )
            if self._verbose:
                self._result(event.outcome)
        elif isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
            self._answer(event.message)
        elif isinstance(event, MessageUpdate) and isinstance(event.event, StreamNotice):
            self.note(f"{event.event.about}  {event.event.text}")

    def note(self, text: str) -> None:
        """A line about the run itself."""
        self._write_line(f"{self._elapsed()}  {printable(text)}")

    def _answer(self, message: AssistantMessage) -> None:
        if message.error_message is not None:
            self.note(f"model  {shortened(message.error_message, 400)}")
        elif self._verbose:
            for part in message.content:
                if isinstance(part, TextContent | ThinkingContent):
                    self._text(part.text.splitlines())

    def _line(self, turn: int, *columns: str) -> None:
        self._write_line("  ".join([self._elapsed(), f"turn {turn}", *columns]))

    def _result(self, outcome: ToolCallOutcome) -> None:
        lines = _text_of(outcome).splitlines()
        more = len(lines) - _MAX_SHOWN_LINES
        told = f"{more + _omitted_lines(outcome):,}"
        if more <= 1:
            self._text(lines)
        elif outcome.status == "error":
            self._text([f"{told} lines …", *lines[-_MAX_SHOWN_LINES:]])
        else:
            self._text([*lines[:_MAX_SHOWN_LINES], f"… and {told} more lines"])

    def _text(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._write_line(f"        | {printable(line)}")

    def _elapsed(self) -> str:
        return f"{self._monotonic() - self._started:6.1f}s"


def call_summary(call: ToolCall) -> str:
    """The call in a few words: its most telling argument, or all of them when none of these is there."""
    try:
        arguments = parse_json(call.arguments_json)
    except ValueError:
        arguments = None
    return summarise_arguments(arguments, call.arguments_json)


def _ending(outcome: ToolCallOutcome) -> str:
    if outcome.status == "denied" and outcome.decision is not None:
        return f"denied {_denied_by(outcome.decision)}"
    if outcome.status == "error":
        return f"error: {summarise_failure(_text_of(outcome), outcome.details)}"
    return outcome.status


def _omitted_lines(outcome: ToolCallOutcome) -> int:
    """How many lines the result would have more if all of it had been given to the model."""
    omitted = (outcome.details or {}).get("omitted_lines", 0)
    return omitted - 1 if isinstance(omitted, int) and omitted > 0 else 0  # a line stands in their place


def _denied_by(decision: Decision) -> str:
    return f"by {decision.rule_id}" if decision.rule_id else f"({decision.code})"


def _text_of(outcome: ToolCallOutcome) -> str:
    return "\n".join(part.text for part in outcome.content if isinstance(part, TextContent))
