"""The final answer as JSON that satisfies a schema, and asking again when it does not."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ci_agent.agent.arguments import find_problems
from ci_agent.hooks import FinishedTurn
from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.messages import TextContent, UserMessage
from ci_agent.output_schema import check_output_schema

MAX_CORRECTIONS = 3
"""How often the model is asked to correct its answer before the run gives up."""

_FENCE = "```"


@dataclass(slots=True)
class StructuredOutput:
    """A `get_follow_up_messages` hook that remembers the answer: None until one satisfied the schema."""

    schema: JsonObject
    now: Callable[[], datetime]
    value: Json = None
    satisfied: bool = False
    problem: str | None = None
    """What is wrong with the latest answer."""
    _corrections: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        check_output_schema(self.schema)

    def instruction(self) -> str:
        """What the model must be told before it begins."""
        return (
            "Your final answer must be one JSON value, with nothing before or after it, "
            f"that satisfies this JSON Schema:\n{json.dumps(self.schema, ensure_ascii=False)}"
        )

    def __call__(self, turn: FinishedTurn, /) -> Sequence[UserMessage]:
        self.problem = self._examine(turn.message.text)
        self.satisfied = self.problem is None
        if self.satisfied or self._corrections >= MAX_CORRECTIONS:
            return ()
        self._corrections += 1
        text = (
            f"Your answer does not satisfy the output schema: {self.problem}\nAnswer again with the JSON value alone."
        )
        return (UserMessage((TextContent(text),), self.now()),)

    def _examine(self, answer: str) -> str | None:
        try:
            value = parse_json(_without_fence(answer))
        except ValueError as error:
            return f"it is not JSON: {error}"
        problems = self._find_problems(value)
        if problems:
            return "\n".join(f"- {problem}" for problem in problems)
        self.value = value
        return None

    def _find_problems(self, value: Json) -> list[str]:
        try:
            return find_problems(self.schema, value, "the answer")
        except Exception as error:  # noqa: BLE001 - an answer that cannot be checked is none; it may be too large
            return [f"it could not be checked ({type(error).__name__}: {str(error)[:200]}): make it smaller"]


def _without_fence(answer: str) -> str:
    """The answer without the Markdown fence that models like to put around JSON."""
    text = answer.strip()
    if not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return answer
    first_line, line_end, rest = text.removeprefix(_FENCE).removesuffix(_FENCE).partition("\n")
    return rest if line_end and first_line.strip() in ("", "json") else answer
