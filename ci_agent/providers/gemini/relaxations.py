"""What a server of Gemini can do without, once it has refused a request."""

from collections.abc import Callable
from dataclasses import replace

from ci_agent.json_types import Json, JsonObject
from ci_agent.providers.gemini.request import NO_SIGNATURE, openapi_parameters
from ci_agent.providers.gemini.response import SIGNATURE
from ci_agent.providers.wire.api import ApiRequest
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.relaxations import leave_out, relaxation, relaxed
from ci_agent.providers.wire.untrusted_json import object_at, text_at


def relax(request: ApiRequest, error: ApiError) -> ApiRequest | None:
    """The request without what the server complains of; None when that cannot be left out."""
    return relaxed(_RELAXATIONS, request, error)


# Schemas


def _with_openapi_schemas(request: ApiRequest) -> ApiRequest:
    tools = [
        {**tool, "functionDeclarations": [_with_parameters(each) for each in tool["functionDeclarations"]]}
        for tool in request.body.get("tools", [])
    ]
    return replace(request, body={**request.body, "tools": tools}) if tools else request


def _with_parameters(declaration: JsonObject) -> JsonObject:
    schema = declaration.get("parametersJsonSchema")
    if schema is None:
        return declaration
    kept = {key: value for key, value in declaration.items() if key != "parametersJsonSchema"}
    return kept | openapi_parameters(schema)


def _without_answer_schema(request: ApiRequest) -> ApiRequest:
    lesser = leave_out("generationConfig", "responseJsonSchema")(request)
    return leave_out("generationConfig", "responseMimeType")(lesser)


# Thinking


def _with_lesser_thinking(request: ApiRequest) -> ApiRequest:
    """LOW and HIGH are what all models know that know levels."""
    level = {"MINIMAL": "LOW", "MEDIUM": "HIGH"}.get(
        text_at(request.body, "generationConfig", "thinkingConfig", "thinkingLevel")
    )
    if level is None:
        return leave_out("generationConfig", "thinkingConfig")(request)
    config = request.body["generationConfig"]
    thinking = {**config["thinkingConfig"], "thinkingLevel": level}
    return replace(request, body={**request.body, "generationConfig": {**config, "thinkingConfig": thinking}})


def _with_missing_signatures(request: ApiRequest) -> ApiRequest:
    """The first call of each message gets the word for a missing signature, if it has none."""
    return _with_parts(request, lambda part, is_first: {SIGNATURE: NO_SIGNATURE} | part if is_first else part)


def _without_signatures(request: ApiRequest) -> ApiRequest:
    """As if another model had made all calls."""

    def change(part: JsonObject, is_first: bool) -> JsonObject:
        unsigned = {key: value for key, value in part.items() if key != SIGNATURE}
        return unsigned | ({SIGNATURE: NO_SIGNATURE} if is_first else {})

    return _with_parts(request, change)


def _with_parts(request: ApiRequest, change: Callable[[JsonObject, bool], JsonObject]) -> ApiRequest:
    """The request with each part of the model's contents changed, told whether it is the first call of its content."""
    contents = []
    for content in request.body["contents"]:
        first = next((part for part in content["parts"] if "functionCall" in part), None)
        parts = [change(part, part is first) for part in content["parts"]]
        contents.append({**content, "parts": parts} if content["role"] == "model" else content)
    return replace(request, body={**request.body, "contents": contents})


# The prompt


def _with_prompt_in_first_content(request: ApiRequest) -> ApiRequest:
    system: list[Json] = object_at(request.body, "systemInstruction").get("parts", [])
    contents = request.body["contents"]
    if not system or not contents or contents[0]["role"] != "user":
        return request
    first = {**contents[0], "parts": [*system, *contents[0]["parts"]]}
    return leave_out("systemInstruction")(replace(request, body={**request.body, "contents": [first, *contents[1:]]}))


_RELAXATIONS = (
    relaxation(r"thought[_ ]?signature", _with_missing_signatures),
    relaxation(r"thought[_ ]?signature", _without_signatures),
    relaxation(r"response[_ ]?(?:mime[_ ]?type|(?:json[_ ]?)?schema)|json mode", _without_answer_schema),
    relaxation(r"parameters_?json_?schema|function_?declaration", _with_openapi_schemas),
    relaxation(r"thinking|include_?thoughts", _with_lesser_thinking),
    relaxation(r"temperature", leave_out("generationConfig", "temperature")),
    relaxation(r"(?:developer|system)[_ ]?instruction", _with_prompt_in_first_content),
)
