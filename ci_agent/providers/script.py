"""The file that a scripted model plays: a list of assistant turns, checked before the run begins."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from ci_agent.errors import ConfigurationError, InvalidFileError
from ci_agent.json_types import Json, JsonObject
from ci_agent.strict_yaml import FileModel, YamlDocument, read_yaml, validate

REFERENCE = re.compile(r"\{\{\s*result\.(?P<id>[^\s{}]+)\s*\}\}")
"""`{{ result.ID }}`: the text of the result of the call ID."""


class ScriptedCall(FileModel):
    """One tool call, with its arguments as an object or as the raw text that a broken model would send."""

    id: str | None = None
    name: str
    arguments: JsonObject | None = None
    arguments_json: str | None = None


class ScriptedUsage(FileModel):
    input_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0
    cache_read_tokens: Annotated[int, Field(ge=0)] = 0
    cache_write_tokens: Annotated[int, Field(ge=0)] = 0


class ScriptedError(FileModel):
    message: str
    retryable: bool = False


class ScriptedTurn(FileModel):
    """An assistant message, or the failure to give one."""

    expect: dict[str, str] = Field(default_factory=dict)
    """Call id to a text that its result must contain."""
    thinking: str | None = None
    text: str | None = None
    tool_calls: list[ScriptedCall] = Field(default_factory=list)
    stop_reason: Literal["stop", "length", "tool_use"] | None = None
    usage: ScriptedUsage = ScriptedUsage()
    delay_s: Annotated[float, Field(ge=0, le=3600, strict=False)] = 0.0
    error: ScriptedError | None = None


class Script(FileModel):
    turns: Annotated[list[ScriptedTurn], Field(min_length=1)]


def read_script(path: str | Path) -> tuple[Script, YamlDocument]:
    """The script, and the document that knows where each part of it stands.

    InvalidFileError with its place for anything that cannot be played.
    """
    try:
        document = read_yaml(path, "script", model=Script)
    except ConfigurationError as error:
        if isinstance(error, InvalidFileError) or Path(path).is_absolute() or os.path.lexists(path):
            raise
        raise ConfigurationError(f"{error}; it is named from the current folder, {os.getcwd()!r}") from error
    script = validate(document, Script)
    _check_calls(script, document)
    _check_references(script, document)
    return script, document


def call_id(call: ScriptedCall, turn: int, index: int) -> str:
    """The id as written, or one made of the call's place, counted from 1."""
    return f"call_{turn + 1}_{index + 1}" if call.id is None else call.id


def strings_in(value: Json) -> Iterator[str]:
    """Every string value inside a JSON value; keys are not looked at."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_in(item)


def _check_calls(script: Script, document: YamlDocument) -> None:
    for turn, scripted in enumerate(script.turns):
        for index, call in enumerate(scripted.tool_calls):
            if (call.arguments is None) == (call.arguments_json is None):
                raise document.error(
                    ("turns", turn, "tool_calls", index), "give arguments or arguments_json, one of them"
                )
        if scripted.error and (scripted.text or scripted.thinking or scripted.tool_calls or scripted.stop_reason):
            raise document.error(("turns", turn), "a turn with an error says nothing else than expect and delay_s")


def _check_references(script: Script, document: YamlDocument) -> None:
    known: set[str] = set()
    for turn, scripted in enumerate(script.turns):
        for name in (*scripted.expect, *_referenced(scripted)):
            if name not in known:
                problem = f"no earlier turn has a tool call with the id {name!r}"
                raise document.error(("turns", turn), f"{problem} (known: {', '.join(sorted(known)) or 'none'})")
        known.update(call_id(call, turn, index) for index, call in enumerate(scripted.tool_calls))


def _referenced(turn: ScriptedTurn) -> Iterator[str]:
    texts = [turn.text or "", turn.thinking or ""]
    for call in turn.tool_calls:
        texts += [call.arguments_json or "", *strings_in(call.arguments)]
    for text in texts:
        yield from (match["id"] for match in REFERENCE.finditer(text))
