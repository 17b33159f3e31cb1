"""Requests that were too long for the model without the server saying so. What it counted gives it away."""

from ci_agent.messages import ImageContent, Usage
from ci_agent.provider import Context
from ci_agent.providers.model_facts import ModelFacts
from ci_agent.providers.request_size import estimate_tokens
from ci_agent.providers.wire.failures import ApiError

_FULL = 0.99
_MUCH_LESS = 0.5
"""Counts of one text differ between models, but not by that much."""
_COMPARED_FROM_TOKENS = 4_000


def raise_if_nothing_fits(facts: ModelFacts, usage: Usage | None) -> None:
    """Some servers cut the answer to nothing when the request alone fills the context: ApiError if that is so. To be
    asked of an answer that was cut before it said anything."""
    if usage and facts.context_tokens and _counted(usage) >= _FULL * facts.context_tokens:
        problem = f"the request fills the model's context of {facts.context_tokens:,} tokens: no answer fits in"
        raise ApiError("overflow", problem, retryable=False)


def sign_of_dropped_text(context: Context, usage: Usage, facts: ModelFacts) -> str | None:
    """Why the model may not have seen the beginning of what it was sent; None: nothing speaks for it."""
    counted, window = _counted(usage), facts.context_tokens
    if usage.estimated or not counted:
        return None
    if window is not None and counted > window:
        return (
            f"the server took {counted:,} tokens, and the model's context is {window:,}: it may have seen only a part"
        )
    sent = estimate_tokens(context)
    if sent < _COMPARED_FROM_TOKENS or counted > _MUCH_LESS * sent or _holds_images(context):
        return None
    return (
        f"the server counted {counted:,} tokens of about {sent:,} that were sent: it may have dropped the beginning; "
        "a server of your own may need a longer context (Ollama: OLLAMA_CONTEXT_LENGTH)"
    )


def _counted(usage: Usage) -> int:
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens


def _holds_images(context: Context) -> bool:
    """What those cost is no matter of their length."""
    return any(isinstance(part, ImageContent) for message in context.messages for part in message.content)
