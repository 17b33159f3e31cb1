"""Makes a Chat Completions request out of a conversation."""

import re

from ci_agent.json_types import JsonObject
from ci_agent.messages import AssistantMessage
from ci_agent.provider import Context, StreamOptions
from ci_agent.providers.openai_chat.messages import chat_messages
from ci_agent.providers.openai_chat.thinking import thinking_fields
from ci_agent.providers.openai_chat.traits import ChatTraits
from ci_agent.providers.wire.api import ApiRequest, Target
from ci_agent.providers.wire.history import cleaned
from ci_agent.providers.wire.tool_names import ToolNames, wire_tool_names
from ci_agent.providers.wire.tool_schemas import is_strict, without_top_level_alternatives

PATH = "/chat/completions"

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MAX_TOOL_NAME = 64
_THINKING_MODEL_OF_OPENAI = re.compile(r"(?:^|/)(?:gpt-(?:[5-9]|\d\d)|o\d)")
_CLAUDE = re.compile(r"^~?anthropic/")
_MARK: JsonObject = {"type": "ephemeral"}


def build_chat_request(traits: ChatTraits, target: Target, context: Context, options: StreamOptions) -> ApiRequest:
    """A BuildRequest, for a server with these traits."""
    names = wire_tool_names(context.tools, _TOOL_NAME, _MAX_TOOL_NAME)
    body: JsonObject = {
        "model": target.model.id,
        "messages": chat_messages(traits, target, context, options, names),
        "stream": True,
        **({"stream_options": {"include_usage": True}} if traits.stream_options else {}),
        **_tools(traits, context, names),
        **_sampling(traits, target, options),
        **thinking_fields(traits.thinking, target, options),
        **_response_format(traits, target, context, options),
    }
    if traits.prompt_cache_key and options.conversation_id is not None:
        body["prompt_cache_key"] = options.conversation_id
    if traits.marks_cache_of_claude and _CLAUDE.match(target.model.id):
        _mark_cached(body)
    path = f"{PATH}?{traits.query}" if traits.query else PATH
    return ApiRequest(path, body, _headers(traits, options), names.from_wire)


def _headers(traits: ChatTraits, options: StreamOptions) -> dict[str, str]:
    if traits.affinity_header is None or options.conversation_id is None:
        return {}
    return {traits.affinity_header: options.conversation_id}


def _tools(traits: ChatTraits, context: Context, names: ToolNames) -> JsonObject:
    """`strict` is left out: few schemas of tools are inside its subset, and every call is checked anyway."""
    tools = [
        {
            "type": "function",
            "function": {
                "name": names.wire(tool.name),
                "description": tool.description,
                "parameters": without_top_level_alternatives(tool.parameters),
            },
        }
        for tool in context.tools
    ]
    has_calls = any(isinstance(message, AssistantMessage) and message.tool_calls for message in context.messages)
    return {"tools": cleaned(tools)} if tools or (traits.empty_tools and has_calls) else {}


def _sampling(traits: ChatTraits, target: Target, options: StreamOptions) -> JsonObject:
    fields: JsonObject = {}
    if options.temperature is not None and target.facts.takes_temperature is not False:
        fields["temperature"] = options.temperature
    if options.max_output_tokens is not None:
        fields[_limit_field(traits, target)] = options.max_output_tokens
    return fields


def _limit_field(traits: ChatTraits, target: Target) -> str:
    if traits.output_limit != "by_model":
        return traits.output_limit
    return "max_completion_tokens" if _THINKING_MODEL_OF_OPENAI.search(target.model.id) else "max_tokens"


def _response_format(traits: ChatTraits, target: Target, context: Context, options: StreamOptions) -> JsonObject:
    schema = options.output_schema
    usable = traits.schema_use == "always" or (traits.schema_use == "without_tools" and not context.tools)
    if schema is None or not usable or target.facts.enforces_schema is False:
        return {}
    named = {"name": "answer", "schema": cleaned(schema), "strict": is_strict(schema)}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _mark_cached(body: JsonObject) -> None:
    """Three marks of the four there may be: the system prompt, the tools, and the latest text of the conversation."""
    if body.get("tools"):
        body["tools"][-1]["cache_control"] = _MARK
    messages = body["messages"]
    system = [message for message in messages[:1] if message["role"] == "system"]
    latest = [message for message in messages if message["role"] in ("user", "assistant") and message["content"]]
    for message in (*system, *latest[-1:]):
        _mark_last_text(message)


def _mark_last_text(message: JsonObject) -> None:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
    for index in reversed(range(len(parts))):
        if parts[index].get("type") == "text":
            parts[index] = {**parts[index], "cache_control": _MARK}
            break
    message["content"] = parts
