"""Typed tests on the arguments of any tool: selectors pick values, tests judge them. Nothing looks at JSON as text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.matchers.command_patterns import CommandPattern, parse_command_pattern, split_command_pattern
from ci_agent.policy.matchers.hosts import HostPattern, parse_host_pattern
from ci_agent.policy.matchers.path_globs import PathGlob, parse_path_glob
from ci_agent.policy.matchers.regexes import Regex, parse_regex

TESTS: Final = ("enum", "const", "regex", "min", "max", "type", "path", "host", "command", "absent")

TYPES: Final = ("string", "number", "integer", "boolean", "object", "array", "null")

Verdict: TypeAlias = Literal["passes", "fails", "cannot_judge"]
"""`cannot_judge`: the value has a type that the test is not about. An allow rule takes it for a failure, a deny rule
for a match."""


@dataclass(frozen=True, slots=True)
class Step:
    key: str | None
    """A key of an object; None: each item of an array."""


@dataclass(frozen=True, slots=True)
class Selector:
    text: str
    steps: tuple[Step, ...]

    @property
    def argument(self) -> str:
        """The top-level argument that it begins with."""
        return self.steps[0].key or ""


@dataclass(frozen=True, slots=True)
class Missing:
    """A selected value that is not there."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The selector stands before a value of a type in which it cannot go on."""


MISSING: Final = Missing()
MISMATCH: Final = Mismatch()


@dataclass(frozen=True, slots=True)
class ArgumentTest:
    """What was written for one selector; all of it must pass. A field that is None was not written."""

    enum: tuple[Json, ...] | None = None
    """`const` is an enum of one."""
    regex: Regex | None = None
    min: float | None = None
    max: float | None = None
    types: tuple[str, ...] | None = None
    path: tuple[PathGlob, ...] | None = None
    host: tuple[HostPattern, ...] | None = None
    command: tuple[CommandPattern, ...] | None = None
    absent: bool = False

    @property
    def is_plain(self) -> bool:
        """It has tests that need no knowledge of folders or shells."""
        return any(part is not None for part in (self.enum, self.regex, self.min, self.max, self.types))


def parse_argument_selector(text: str) -> Selector:
    """Read `title`, `spec.image`, `files[].path` or `labels[]`; a backslash makes a dot part of a key."""
    keys = re.split(r"(?<!\\)\.", text)
    steps = [step for key in keys for step in _steps(key.replace("\\.", "."), text)]
    return Selector(text, tuple(steps))


def parse_argument_test(tests: Mapping[str, Json]) -> ArgumentTest:
    """Compile the tests of one selector; ValueError names the test that is wrong, and why."""
    unknown = [name for name in tests if name not in TESTS]
    if unknown or not tests:
        raise ValueError(f"unknown test {unknown[0]!r}; known: {', '.join(TESTS)}" if unknown else "no test is given")
    if "absent" in tests and (tests["absent"] is not True or len(tests) > 1):
        raise ValueError(
            "`absent` is written `absent: true`, and alone: a value that is not there passes no other test"
        )
    if "enum" in tests and "const" in tests:
        raise ValueError("`enum` and `const` say the same thing; keep one of them")
    readings = [name for name in ("path", "host", "command") if name in tests]
    if len(readings) > 1:
        raise ValueError(f"a value is read in one way: keep either `{readings[0]}` or `{readings[1]}`")
    return ArgumentTest(
        enum=_enum(tests),
        regex=parse_regex(_text(tests["regex"], "regex")) if "regex" in tests else None,
        min=_bound(tests, "min"),
        max=_bound(tests, "max"),
        types=_types(tests["type"]) if "type" in tests else None,
        path=tuple(parse_path_glob(text) for text in _texts(tests["path"], "path")) if "path" in tests else None,
        host=tuple(parse_host_pattern(text) for text in _texts(tests["host"], "host")) if "host" in tests else None,
        command=_commands(tests["command"]) if "command" in tests else None,
        absent="absent" in tests,
    )


def select(selector: Selector, arguments: JsonObject) -> Iterator[Json | Missing | Mismatch]:
    """Every value that a selector picks; MISSING and MISMATCH for what it cannot pick."""
    return _select(selector.steps, arguments)


def type_name(value: Json) -> str:
    """The JSON type; `integer` for numbers without a fraction, as in JSON Schema."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if value == int(value) else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def judge_plainly(test: ArgumentTest, value: Json) -> Verdict:
    """Everything that needs no knowledge of folders or shells: `enum`, `regex`, `min`, `max`, `type`.

    One failure fails, else one that cannot be judged leaves it open.
    """
    seen = set(_plain_verdicts(test, value))
    if "fails" in seen:
        return "fails"
    return "cannot_judge" if "cannot_judge" in seen else "passes"


def _plain_verdicts(test: ArgumentTest, value: Json) -> Iterator[Verdict]:
    if test.enum is not None:
        yield _judge_enum(test.enum, value)
    if test.regex is not None:
        yield _said(test.regex.matches(value)) if _is_text(value) else "cannot_judge"
    for bound, sign in ((test.min, 1), (test.max, -1)):
        if bound is not None:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            yield _said(sign * value >= sign * bound) if is_number else "cannot_judge"
    if test.types is not None:
        name = type_name(value)
        yield _said(name in test.types or (name == "integer" and "number" in test.types))


def _is_text(value: Json) -> bool:
    """Lone surrogates, which JSON lets through, are no text that RE2 could read."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _said(passes: bool) -> Verdict:
    return "passes" if passes else "fails"


def _judge_enum(options: Sequence[Json], value: Json) -> Verdict:
    if isinstance(value, str):
        # The most usual values, of which a call may hold many.
        is_about = any(isinstance(option, str) for option in options)
        return "passes" if value in options else "fails" if is_about else "cannot_judge"
    if any(_same(option, value) for option in options):
        return "passes"
    return "fails" if any(_kind(option) == _kind(value) for option in options) else "cannot_judge"


def _kind(value: Json) -> str:
    name = type_name(value)
    return "number" if name == "integer" else name


def _same(left: Json, right: Json) -> bool:
    """Equal as JSON: 1 and 1.0 are one number, 1 and true are not."""
    if _kind(left) != _kind(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


def _select(steps: Sequence[Step], value: Json) -> Iterator[Json | Missing | Mismatch]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if step.key is None:
        if not isinstance(value, list):
            yield MISMATCH
            return
        for item in value:
            yield from _select(rest, item)
    elif not isinstance(value, dict):
        yield MISMATCH
    elif step.key not in value:
        yield MISSING
    else:
        yield from _select(rest, value[step.key])


def _steps(key: str, text: str) -> list[Step]:
    name = key
    arrays = 0
    while name.endswith("[]"):
        name, arrays = name.removesuffix("[]"), arrays + 1
    if not name or "[" in name or "]" in name:
        raise ValueError(f"{text!r} is no selector; write keys with dots and [] for each item, such as files[].path")
    return [Step(name), *[Step(None)] * arrays]


def _enum(tests: Mapping[str, Json]) -> tuple[Json, ...] | None:
    if "const" in tests:
        return (tests["const"],)
    if "enum" not in tests:
        return None
    options = tests["enum"] if isinstance(tests["enum"], list) else [tests["enum"]]
    if not options:
        raise ValueError("`enum` is empty; no value could pass")
    return tuple(options)


def _bound(tests: Mapping[str, Json], name: str) -> float | None:
    value = tests.get(name)
    if name in tests and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ValueError(f"`{name}` must be a number, not {value!r}")
    return value


def _types(value: Json) -> tuple[str, ...]:
    names = tuple(_texts(value, "type"))
    wrong = [name for name in names if name not in TYPES]
    if wrong:
        raise ValueError(f"unknown type {wrong[0]!r}; known: {', '.join(TYPES)}")
    return names


def _commands(value: Json) -> tuple[CommandPattern, ...]:
    """A list of patterns: each a string of shell words, or a list of token patterns."""
    patterns = value if isinstance(value, list) else [value]
    if not patterns:
        raise ValueError("`command` is empty; no command could pass")
    return tuple(_command(pattern) for pattern in patterns)


def _command(pattern: Json) -> CommandPattern:
    if isinstance(pattern, str):
        return parse_command_pattern(split_command_pattern(pattern))
    return parse_command_pattern(_texts(pattern, "command"))


def _text(value: Json, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"`{name}` must be text, not {value!r}")  # noqa: TRY004  # one exception for all that is wrong
    return value


def _texts(value: Json, name: str) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    if not texts:
        raise ValueError(f"`{name}` is empty; nothing could pass")
    return [_text(text, name) for text in texts]
