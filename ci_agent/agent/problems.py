"""One line for one way in which arguments break a schema: which field, what was expected, what came."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ci_agent.agent.wording import show_name, show_names, show_value
from ci_agent.spelling import nearest

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MAX_FORMS = 5

_EXPECTED = {
    "const": "{}",
    "exclusiveMaximum": "less than {}",
    "exclusiveMinimum": "more than {}",
    "maxItems": "a length of at most {}",
    "maxLength": "a length of at most {}",
    "maxProperties": "at most {} fields",
    "maximum": "at most {}",
    "minItems": "a length of at least {}",
    "minLength": "a length of at least {}",
    "minProperties": "at least {} fields",
    "minimum": "at least {}",
    "multipleOf": "a multiple of {}",
    "pattern": "text that matches {}",
    "uniqueItems": "items that all differ",
}


def describe_problem(error: "ValidationError", whole: str = "the arguments") -> str:
    """The line for an error of the validator, the field named as a path: `edits[0].old: missing`."""
    return f"{show_path(error.absolute_path) or whole}: {_complaint(error)}"


def show_path(parts: Iterable[str | int]) -> str:
    """`edits[0].old`; empty for the whole."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{show_name(part)}" for part in parts).removeprefix(".")


def _complaint(error: "ValidationError") -> str:
    match error.validator:
        case "required":
            return "missing, and required"
        case "additionalProperties":
            return _unknown_field(error)
        case "properties":
            return "must not be given"
        case "anyOf" | "oneOf" if error.context:
            return _no_form_fits(error)
        case _:
            return f"expected {_expectation(error)}, got {show_value(error.instance)}"


def _unknown_field(error: "ValidationError") -> str:
    known = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
    close = nearest(str(error.path[-1]), known)
    if close is not None:
        return f"unknown field; did you mean {show_name(close)}?"
    return f"unknown field; known are {show_names(known)}" if known else "unknown field; there are none here"


def _no_form_fits(error: "ValidationError") -> str:
    """`expected string or null, got 5` where the forms differ in the value itself, otherwise each form's complaint."""
    if any(part.path or part.context for part in error.context):
        complaints = [f"{show_path(part.path)}: {_complaint(part)}".removeprefix(": ") for part in error.context]
        return f"fits none of the allowed forms ({_either(complaints, '; or ')})"
    return f"expected {_either([_expectation(part) for part in error.context])}, got {show_value(error.instance)}"


def _either(alternatives: list[str], between: str = " or ") -> str:
    return between.join(list(dict.fromkeys(alternatives))[:MAX_FORMS])


def _expectation(error: "ValidationError") -> str:
    keyword: Any = error.validator
    wanted: Any = error.validator_value
    match keyword:
        case None:
            return "nothing"
        case "type":
            return wanted if isinstance(wanted, str) else _either(wanted)
        case "enum":
            return "one of " + ", ".join(show_value(choice) for choice in wanted)
        case "oneOf":
            return "exactly one of the allowed forms to fit"
        case _:
            return _EXPECTED.get(keyword, f"{keyword} {{}}").format(show_value(wanted))
