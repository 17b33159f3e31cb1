"""The final answer as JSON that satisfies a schema, and asking again when it does not."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ci_agent.errors import ConfigurationError
from ci_agent.hooks import FinishedTurn
from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.messages import TextContent, UserMessage

MAX_CORRECTIONS = 3
"""How often the model is asked to correct its answer before the run gives up."""

_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(?P<json>.*)\n\s*```\s*\Z", re.DOTALL)
_MAX_PROBLEMS = 10


@dataclass(slots=True)
class StructuredOutput:
    """A `get_follow_up_messages` hook that remembers the answer: None until one satisfied the schema."""

    schema: JsonObject
    now: Callable[[], datetime]
    value: Json = None
    satisfied: bool = False
    problem: str | None = None
    """What is wrong with the latest answer."""
    _validator: Any = field(init=False, repr=False)
    _corrections: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._validator = build_validator(self.schema)

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
        fenced = _FENCED.match(answer)
        try:
            value = parse_json(fenced["json"] if fenced else answer)
        except ValueError as error:
            return f"it is not JSON: {error}"
        problems = sorted(self._validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
        if problems:
            return "\n".join(f"- {problem.json_path}: {problem.message}" for problem in problems[:_MAX_PROBLEMS])
        self.value = value
        return None


def build_validator(schema: JsonObject) -> Any:
    """A validator for JSON Schema 2020-12 that never fetches a `$ref`; ConfigurationError for a broken schema."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 143 ms that most runs do not need
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ConfigurationError(f"output schema is wrong at {error.json_path}: {error.message}") from error
    return Draft202012Validator(schema, registry=Registry())
