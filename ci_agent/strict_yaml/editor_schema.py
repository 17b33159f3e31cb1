"""The JSON Schema of a file that people write, for the editors that they write it in."""

import ast
import inspect
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pydantic import BaseModel

from ci_agent.json_types import Json, JsonObject


def editor_schema(model: type[BaseModel], parts: Sequence[type[BaseModel]], *, title: str) -> JsonObject:
    """The JSON Schema (2020-12) of a model, the docstrings beneath its keys, and those of its `parts`, as texts."""
    schema = _for_editors(model.model_json_schema())
    definitions = {**schema["$defs"], model.__name__: schema}
    for each in (model, *parts):
        for key, description in _described_keys(each):
            definitions[each.__name__]["properties"][key]["description"] = description
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}


def _described_keys(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """The docstrings beneath the keys of a model. Read from its source when asked for, so that a run does not pay."""
    for key, text in pairwise(ast.walk(ast.parse(inspect.getsource(model)))):
        if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name) and isinstance(text, ast.Expr):
            yield key.target.id, " ".join(str(ast.literal_eval(text.value)).split())


def _for_editors(schema: Json) -> Json:
    """Without what pydantic adds for Python: null for keys that are not written, defaults and titles of its own."""
    if isinstance(schema, list):
        return [_for_editors(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: _for_editors(value) for key, value in schema.items() if not _is_for_python(key, value)}
    options = [option for option in result.pop("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1:
        return {**options[0], **result}
    return {"anyOf": options, **result} if options else result


def _is_for_python(key: str, value: Json) -> bool:
    return (key == "title" and isinstance(value, str)) or (key == "default" and value is None)
