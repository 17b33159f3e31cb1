"""The values of a policy file: how each may be written, and what to say when it is not written so."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler, PlainValidator, WithJsonSchema
from pydantic_core import CoreSchema

from ci_agent.hooks import DecisionCode
from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.file.calls import WrongTypeError
from ci_agent.policy.matchers.argument_tests import TYPES, parse_argument_selector, parse_argument_test
from ci_agent.policy.matchers.command_patterns import (
    parse_command_pattern,
    parse_env_pattern,
    parse_has_token,
    split_command_pattern,
)
from ci_agent.policy.matchers.hosts import parse_host_pattern, parse_method, parse_port, parse_scheme
from ci_agent.policy.matchers.path_globs import parse_path_glob
from ci_agent.policy.matchers.tool_names import parse_tool_pattern
from ci_agent.strict_yaml import quote

FORMAT_VERSION: Final = 1

MAX_TEXT_CHARACTERS: Final = 500

MAX_LABEL_CHARACTERS: Final = 50
"""GitHub takes no longer name."""

_BRANCH_PREFIX: Final = re.compile(
    r"(?=.{1,100}$)(?!.*(?:\.\.|\.lock/))(?:[A-Za-z0-9][A-Za-z0-9._-]*/)*(?:[A-Za-z0-9][A-Za-z0-9._-]*[/-])?"
)

EMOJI_JOINER: Final = "\u200d"

_LISTED_TOOLS: Final = re.compile(r"\w+(?:\s*,\s*\w+)+")
_PLAIN_COMMAND: Final = re.compile(r"[A-Za-z0-9_./=@%+:][A-Za-z0-9_./=@%+:-]*(?: [A-Za-z0-9_./=@%+:-]+)*(?: \*\*)?")
"""Plain words and perhaps a closing `**`, right as they are. Most patterns of a large policy are such."""

Value = TypeVar("Value")


class _ScalarOrList:
    """In the schema: a list, or one of its items alone."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonObject:
        many = handler(schema)
        return {"anyOf": [many["items"], many]}


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


OneOrMany: TypeAlias = Annotated[list[Value], Field(min_length=1), BeforeValidator(_as_list), _ScalarOrList()]
"""A scalar stands for a list of one; an empty list would match nothing, or everything, and is refused."""


def _checked(parse: Callable[[Any], object]) -> AfterValidator:
    """The value stays as it is written; `parse` raises ValueError when it is wrong."""

    def check(value: Value) -> Value:
        parse(value)
        return value

    return AfterValidator(check)


def _read_command(value: Json) -> tuple[str, ...]:
    if isinstance(value, str) and _PLAIN_COMMAND.fullmatch(value):
        return tuple(value.split(" "))
    if isinstance(value, str):
        words = split_command_pattern(value)
    elif isinstance(value, list):
        words = tuple(_word(word) for word in value)
    else:
        raise WrongTypeError(f"a command is text or a list of words{_as_text(value)}")
    parse_command_pattern(words)
    if words[0].startswith("-"):
        raise ValueError(
            f"{quote(words[0])} is no command but an option: to write one command word by word, "
            "nest the list ([[git, log, --oneline]])"
        )
    return words


def _word(value: Json) -> str:
    if not isinstance(value, str):
        raise WrongTypeError(f"the words of a command are text{_as_text(value)}")
    return value


def _as_text(value: Json) -> str:
    """What to write in place of a value that YAML does not read as text."""
    if isinstance(value, dict):
        return ', and YAML takes ": " for a mapping: put the whole in quotes'
    if isinstance(value, list):
        return ", and this is a list"
    if value is None:
        return ", and YAML takes this for nothing: put it in quotes"
    if isinstance(value, float):  # 3.10 is 3.1 by now
        return ", and YAML takes this for a number: put it in quotes as you wrote it"
    spelled = str(value).lower() if isinstance(value, bool) else str(value)
    kind = "a boolean" if isinstance(value, bool) else "a number"
    return f", and YAML takes {spelled} for {kind}: write {quote(spelled)} in quotes"


@lru_cache(maxsize=1024)
def _check_tool(text: str) -> str:
    if "(" in text:
        raise ValueError(
            f"{quote(text)}: a tool is named alone; what it may be called with stands in matchers "
            "(allow: bash, command: git **)"
        )
    if _LISTED_TOOLS.fullmatch(text):
        raise ValueError(f"{quote(text)}: to name several tools, write a list: [{text}]")
    parse_tool_pattern(text)
    return text


def _check_path_glob(text: str) -> str:
    if text.startswith("!"):
        raise ValueError(f"{quote(text)}: a glob cannot exclude; write a deny rule for what shall not be reached")
    parse_path_glob(text)
    return text


def _check_workspace_glob(text: str) -> str:
    _check_path_glob(text)
    if parse_path_glob(text).anchor != "workspace":
        raise ValueError(f"{quote(text)}: a patch has files of the repository alone; write the glob from its top")
    return text


def _check_label(text: str) -> str:
    if "," in text or not 0 < len(text) <= MAX_LABEL_CHARACTERS or text != _one_line(text):
        raise ValueError(f"{quote(text)} is no label: up to {MAX_LABEL_CHARACTERS} characters on one line, no comma")
    return text


def _check_branch_prefix(text: str) -> str:
    if not _BRANCH_PREFIX.fullmatch(text):
        raise ValueError(f"{quote(text)} begins no name of a branch: write one that ends in / or -, such as ci-agent/")
    return text


def _check_id(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", text):
        raise ValueError(f"{quote(text)} is no rule id: use letters, digits, '.', '_' and '-', such as run-tests")
    if text in get_args(DecisionCode):
        raise ValueError(f"{quote(text)} means something else in tests (by: {text}): choose another id")
    return text


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    if not line.replace(EMOJI_JOINER, "").isprintable():
        raise ValueError("control characters cannot be shown where this text is shown: leave them out")
    if not line:
        raise ValueError("must not be empty: write a value, or delete the key")
    return line


def _check_test(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise WrongTypeError(f"a test of an argument is a mapping such as {{enum: [{_shown(value)}]}}")
    parse_argument_test(value)
    return value


def _shown(value: Json) -> str:
    return value if isinstance(value, str) and len(value) <= 40 else "VALUE"


def _check_version(value: Json) -> int:
    if value != FORMAT_VERSION or not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(
            f"this version of ci-agent reads format {FORMAT_VERSION} alone: write policy: {FORMAT_VERSION}"
        )
    return FORMAT_VERSION


def _check_call(value: Json) -> JsonObject:
    if isinstance(value, dict) and len(value) > 1 and None in value.values():
        raise ValueError("inside {} a comma ends a text: put the text in quotes")
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError("a call is written as one tool and its arguments, such as {bash: git push}")
    return value


def _check_example(value: Json) -> str | JsonObject:
    if not isinstance(value, str | dict):
        raise WrongTypeError("an example is a text such as a command or a path, or a mapping of arguments")
    return value


_TEXTS_SCHEMA: Final = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
_CALL_SCHEMA: Final = {"type": "object", "minProperties": 1, "maxProperties": 1}
_EXAMPLE_SCHEMA: Final = {"type": ["string", "object"]}
_TEST_SCHEMA: Final = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {
        "enum": {"description": "The value is one of these."},
        "const": {"description": "The value is this, of the same type."},
        "regex": {"type": "string", "description": "An RE2 expression that the whole value matches."},
        "min": {"type": "number", "description": "A number, at least this."},
        "max": {"type": "number", "description": "A number, at most this."},
        "type": {**_TEXTS_SCHEMA, "description": f"The JSON type, or a list of them: {', '.join(TYPES)}."},
        "path": {**_TEXTS_SCHEMA, "description": "Globs that the path, once resolved, matches."},
        "host": {**_TEXTS_SCHEMA, "description": "Hosts that the URL leads to."},
        "command": {"description": "Command patterns that cover every command in the value."},
        "absent": {"const": True, "description": "The argument is not given."},
    },
}

ToolPattern: TypeAlias = Annotated[str, AfterValidator(_check_tool)]
CommandWords: TypeAlias = Annotated[tuple[str, ...], PlainValidator(_read_command), WithJsonSchema(_TEXTS_SCHEMA)]
PathGlobText: TypeAlias = Annotated[str, AfterValidator(_check_path_glob)]
WorkspaceGlobText: TypeAlias = Annotated[str, AfterValidator(_check_workspace_glob)]
LabelName: TypeAlias = Annotated[str, AfterValidator(_check_label)]
BranchPrefix: TypeAlias = Annotated[str, AfterValidator(_check_branch_prefix)]
EnvPattern: TypeAlias = Annotated[str, _checked(parse_env_pattern)]
HasToken: TypeAlias = Annotated[str, _checked(parse_has_token)]
HostPatternText: TypeAlias = Annotated[str, _checked(parse_host_pattern)]
Scheme: TypeAlias = Annotated[str, AfterValidator(parse_scheme)]
Port: TypeAlias = Annotated[int, _checked(parse_port)]
Method: TypeAlias = Annotated[str, AfterValidator(parse_method)]
RuleId: TypeAlias = Annotated[str, AfterValidator(_check_id)]
SelectorText: TypeAlias = Annotated[str, _checked(parse_argument_selector)]
TestOfArgument: TypeAlias = Annotated[Any, PlainValidator(_check_test), WithJsonSchema(_TEST_SCHEMA)]
Line: TypeAlias = Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS), AfterValidator(_one_line)]
Call: TypeAlias = Annotated[Any, PlainValidator(_check_call), WithJsonSchema(_CALL_SCHEMA)]
Example: TypeAlias = Annotated[Any, PlainValidator(_check_example), WithJsonSchema(_EXAMPLE_SCHEMA)]
Version: TypeAlias = Annotated[
    Literal[1], PlainValidator(_check_version), WithJsonSchema({"const": FORMAT_VERSION, "type": "integer"})
]
