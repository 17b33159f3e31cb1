"""How servers that speak Chat Completions differ: a row of values, no code."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ci_agent.providers.wire.history import IdRule

ThinkingStyle: TypeAlias = Literal["effort", "reasoning_object", "switch", "chat_template", "groq", "none"]
"""Where a thinking level goes. `effort`: `reasoning_effort`. `reasoning_object`: `reasoning.effort`. `switch`:
`thinking.type`, and an effort. `chat_template`: arguments of the model's template, and an effort. `groq`: by model."""

SchemaUse: TypeAlias = Literal["always", "without_tools", "never"]
"""When `response_format` may carry a schema; many servers hold the whole answer to it, so that no tool is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTraits:
    """The defaults are what most servers take."""

    key_header: Literal["authorization", "api-key"] = "authorization"
    output_limit: Literal["max_tokens", "max_completion_tokens", "by_model"] = "max_tokens"
    """`by_model`: OpenAI's thinking models take no `max_tokens`, which is all that other servers know."""
    thinking: ThinkingStyle = "effort"
    thinks_in_every_message: bool = False
    """The server wants `reasoning_content` in all assistant messages of a conversation that has it in one."""
    schema_use: SchemaUse = "without_tools"
    stream_options: bool = True
    """Whether usage has to be asked for, and may be."""
    prompt_cache_key: bool = False
    marks_cache_of_claude: bool = False
    """Models of Anthropic get the marks of their own API."""
    affinity_header: str | None = None
    """The header by which requests of one conversation find the same cache."""
    rich_results: bool = False
    """Tool results take images and want the tool's name."""
    ids: IdRule | None = None
    empty_tools: bool = False
    """A history with calls needs `tools`, be it empty."""
    query: str = ""
    """Belongs to every request, without its question mark."""
