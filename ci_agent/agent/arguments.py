"""The second and the third gate: the model's raw text becomes arguments that satisfy the tool's schema, or a message
that says what to correct. Nothing is coerced, guessed or completed."""

import itertools
import json

from ci_agent.agent.problems import describe_problem
from ci_agent.agent.wording import show_exception, show_name, show_text, show_value
from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.tool import Tool

MAX_PROBLEMS = 10

_NOTHING_DONE = "Nothing was executed."


class InvalidArgumentsError(Exception):
    """For the model: what is wrong with the arguments, field by field."""


def read_arguments(tool: Tool, raw: str) -> JsonObject:
    """What the tool may be called with: a fresh object that nobody else holds.

    In this order: strict JSON (blank text counts as `{}`), the tool's own repair, one object, the schema.
    """
    arguments = _repair(tool, _parse(tool, raw))
    if not isinstance(arguments, dict):
        raise InvalidArgumentsError(
            f"The arguments of {show_name(tool.name)} must be one JSON object; {show_value(arguments)} came instead. "
            f"{_NOTHING_DONE}"
        )
    _validate(tool, arguments)
    return arguments


def _parse(tool: Tool, raw: str) -> Json:
    if not raw.strip():
        return {}
    try:
        return parse_json(raw)
    except ValueError as error:
        raise InvalidArgumentsError(
            f"The arguments of {show_name(tool.name)} are not valid JSON: {show_text(str(error), 200)}. "
            f"{_NOTHING_DONE} Send the call again with one complete JSON object."
        ) from error


def _repair(tool: Tool, arguments: Json) -> Json:
    if tool.prepare_arguments is None:
        return arguments
    try:
        # Through JSON and back: what the repair returns may be shared with somebody, or be no JSON at all.
        return json.loads(json.dumps(tool.prepare_arguments(arguments), allow_nan=False))
    except Exception as error:  # the tool's own code: whatever goes wrong in it is for the model
        raise InvalidArgumentsError(
            f"The arguments of {show_name(tool.name)} could not be understood: {show_exception(error)}. {_NOTHING_DONE}"
        ) from error


def _validate(tool: Tool, arguments: JsonObject) -> None:
    try:
        problems = find_problems(tool.parameters, arguments)
    except Exception as error:  # a broken schema may raise anything, and preparing a call does not raise
        reason = show_text(show_exception(error).partition("\n")[0], 300)
        raise InvalidArgumentsError(
            f"The arguments of {show_name(tool.name)} could not be checked against its schema ({reason}). "
            f"{_NOTHING_DONE} Do without this tool."
        ) from error
    if problems:
        raise InvalidArgumentsError(
            "\n".join(
                [
                    f"The arguments of {show_name(tool.name)} do not satisfy its schema. {_NOTHING_DONE}",
                    *(f"- {problem}" for problem in problems),
                    "Correct these fields and send the call again.",
                ]
            )
        )


def find_problems(schema: JsonObject, value: Json, whole: str = "the arguments") -> list[str]:
    """One line for each field that breaks the schema, the first few of them; `whole` names the value itself.
    Raises when the schema is none, or when to check it takes too long."""
    from ci_agent.agent.schema import errors_of  # noqa: PLC0415  jsonschema takes 90 ms to import: on first use

    errors = errors_of(schema, value)
    problems = [describe_problem(error, whole) for error in itertools.islice(errors, MAX_PROBLEMS)]
    return [*problems, "and more"] if next(errors, None) is not None else problems
