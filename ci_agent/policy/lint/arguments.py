"""Rules held against the tools as they are: names that nobody knows, tests that no argument can pass."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.lint.finding import LintFinding, Subject, warning
from ci_agent.policy.lint.samples import tool_pattern
from ci_agent.policy.matchers.argument_tests import Step, parse_argument_selector
from ci_agent.policy.rules import Rule
from ci_agent.spelling import nearest
from ci_agent.strict_yaml import quote

_TYPES_OF_TESTS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("regex", "path", "host", "command"), frozenset({"string"})),
    **dict.fromkeys(("min", "max"), frozenset({"number", "integer"})),
}
"""Values of which types a test can judge; the others judge any."""


def find_useless_rules(subject: Subject) -> Iterator[LintFinding]:
    for rule in subject.own_rules:
        yield from _unknown_tools(subject, rule)
        for tool in _known_tools(subject, rule):
            for selector, tests in (rule.args or {}).items():
                problem = _problem(selector, tests, subject.schemas[tool])
                if problem:
                    message = f"{rule.id}: {problem} of {tool}"
                    yield LintFinding("error", "matches-nothing", message, rule.id, rule.source)


def _unknown_tools(subject: Subject, rule: Rule) -> Iterator[LintFinding]:
    """A deny rule may forbid what does not exist yet, as long as it does so by a pattern."""
    for text in rule.tools:
        is_guard = rule.effect == "deny" and "*" in text
        if "__" in text and not is_guard and not any("__" in name for name in subject.schemas):
            message = f"whether {quote(text)} exists is not known: no server is configured here"
            yield warning("unknown-tool", rule, message)


def _known_tools(subject: Subject, rule: Rule) -> list[str]:
    patterns = [tool_pattern(text) for text in rule.tools]
    return [name for name in subject.schemas if any(pattern.covers(name) for pattern in patterns)]


def _problem(selector: str, tests: Mapping[str, Json], schema: JsonObject) -> str | None:
    """Why no argument can pass, without the tool's name at its end; None when some can, as far as the schema shows."""
    if "absent" in tests:
        return None
    value: JsonObject = schema
    for step in parse_argument_selector(selector).steps:
        inner = _step(step, value)
        if isinstance(inner, str):
            return f"{quote(selector)} selects nothing: {inner} among the arguments"
        if inner is None:
            return None
        value = inner
    return _unpassable(selector, tests, value)


def _step(step: Step, schema: JsonObject) -> JsonObject | str | None:
    """The schema of what is selected; text: why it does not exist; None: the schema does not say."""
    if step.key is None:
        if _types(schema) and "array" not in _types(schema):
            return "there is no list"
        items = schema.get("items")
        return items if isinstance(items, dict) else None
    properties = schema.get("properties")
    known: JsonObject = properties if isinstance(properties, dict) else {}
    if isinstance(known.get(step.key), dict):
        found: JsonObject = known[step.key]
        return found
    if schema.get("additionalProperties") is False and "patternProperties" not in schema:
        close = nearest(step.key, known)
        return f"there is no {quote(step.key)}" + (f" (did you mean {close}?)" if close else "")
    return None


def _unpassable(selector: str, tests: Mapping[str, Json], schema: JsonObject) -> str | None:
    types = _types(schema)
    for name, judged in _TYPES_OF_TESTS.items():
        if name in tests and types and not types & judged:
            return f"{name} cannot judge {quote(selector)}, which is {_listed(types)} among the arguments"
    options = _options(tests)
    allowed = schema.get("enum")
    if options is not None and isinstance(allowed, list) and not any(option in allowed for option in options):
        shown = ", ".join(map(str, allowed[:8]))
        return f"no value of {quote(selector)} passes: it is one of {shown} among the arguments"
    return None


def _options(tests: Mapping[str, Json]) -> Sequence[Json] | None:
    if "const" in tests:
        return [tests["const"]]
    options = tests.get("enum")
    return options if isinstance(options, list) else None


def _types(schema: JsonObject) -> frozenset[str]:
    """Empty when the schema does not say."""
    types = schema.get("type")
    return frozenset(name for name in (types if isinstance(types, list) else [types]) if isinstance(name, str))


def _listed(words: frozenset[str]) -> str:
    return " or ".join(sorted(words))
