"""How long a request is, roughly: exact counts are the server's, and come only with its answer."""

import json
from collections.abc import Sequence
from typing import assert_never

from ci_agent.messages import AssistantContent, ImageContent, Message, TextContent, ThinkingContent, ToolCall
from ci_agent.provider import Context

CHARACTERS_PER_TOKEN = 4
"""Of English and of code, for all tokenisers there are, give or take a third."""
TOKENS_PER_IMAGE = 1_600
"""What the largest picture costs that the usual APIs do not scale down."""


def estimate_tokens(context: Context) -> int:
    """Tokens of all that a request with this context holds."""
    tools = sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters)) for tool in context.tools)
    fixed = (len(context.system_prompt) + tools) // CHARACTERS_PER_TOKEN
    return fixed + estimate_message_tokens(context.messages)


def estimate_message_tokens(messages: Sequence[Message]) -> int:
    return sum(_part_tokens(part) for message in messages for part in message.content)


def output_tokens_of_parts(content: Sequence[AssistantContent]) -> int:
    """Tokens that a model's message cost to make, when the server did not count them."""
    return sum(_part_tokens(part) for part in content)


def _part_tokens(part: TextContent | ImageContent | ThinkingContent | ToolCall) -> int:
    match part:
        case TextContent() | ThinkingContent():
            return -(-len(part.text) // CHARACTERS_PER_TOKEN)
        case ToolCall():
            return -(-(len(part.name) + len(part.arguments_json)) // CHARACTERS_PER_TOKEN)
        case ImageContent():
            return TOKENS_PER_IMAGE
    assert_never(part)
