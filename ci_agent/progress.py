"""The run as it goes on, one line for each thing that happened, for a log that a person reads later."""

from collections.abc import Callable

from ci_agent.events import AgentEvent, MessageEnd, ToolExecutionEnd
from ci_agent.hooks import Decision, ToolCallOutcome
from ci_agent.json_types import JsonObject, parse_json
from ci_agent.messages import AssistantMessage, TextContent, ToolCall
from ci_agent.terminal import printable, shortened

_MAX_SUMMARY_CHARS = 80
_MAX_REASON_CHARS = 120

_TELLING_ARGUMENT = ("command", "path", "url", "pattern")
"""The argument that says most about a call, the first of these that it has."""


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
                event.turn, printable(event.tool_call.name), call_summary(event.tool_call), _ending(event.outcome)
            )
            if self._verbose:
                self._text(_shown_text(event.outcome))
        elif isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
            self._answer(event.message)

    def note(self, text: str) -> None:
        """A line about the run itself."""
        self._write_line(f"{self._elapsed()}  {printable(text)}")

    def _answer(self, message: AssistantMessage) -> None:
        if message.error_message is not None:
            self.note(f"model  {shortened(message.error_message, 400)}")
        elif self._verbose and message.text:
            self._text(message.text)

    def _line(self, turn: int, *columns: str) -> None:
        self._write_line("  ".join([self._elapsed(), f"turn {turn}", *filter(None, columns)]))

    def _text(self, text: str) -> None:
        for line in text.splitlines():
            self._write_line(f"        | {printable(line)}")

    def _elapsed(self) -> str:
        return f"{self._monotonic() - self._started:6.1f}s"


def call_summary(call: ToolCall) -> str:
    """The call in a few words: its most telling argument, or all of them when none of these is there."""
    arguments = _object(call.arguments_json)
    telling = next((arguments[name] for name in _TELLING_ARGUMENT if isinstance(arguments.get(name), str)), None)
    return shortened(printable(call.arguments_json if telling is None else telling), _MAX_SUMMARY_CHARS)


def _object(text: str) -> JsonObject:
    try:
        value = parse_json(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _ending(outcome: ToolCallOutcome) -> str:
    if outcome.status == "denied" and outcome.decision is not None:
        return f"denied {_denied_by(outcome.decision)}"
    if outcome.status == "error":
        first_line = _shown_text(outcome).strip().partition("\n")[0]
        return f"error: {shortened(printable(first_line), _MAX_REASON_CHARS)}"
    return outcome.status


def _denied_by(decision: Decision) -> str:
    return f"by {decision.rule_id}" if decision.rule_id else f"({decision.code})"


def _shown_text(outcome: ToolCallOutcome) -> str:
    return "\n".join(part.text for part in outcome.content if isinstance(part, TextContent))
