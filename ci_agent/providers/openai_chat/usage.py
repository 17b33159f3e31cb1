"""What Chat Completions servers say about tokens, in all the places where they say it."""

from ci_agent.json_types import JsonObject
from ci_agent.messages import Usage
from ci_agent.providers.wire.untrusted_json import object_at
from ci_agent.providers.wire.usage_counts import count_at, first_count

_MAX_COST_USD = 1e6
"""More than any request costs: then it is another currency, or none."""

_SENT = (("prompt_tokens",), ("input_tokens",))
_SAID = (("completion_tokens",), ("output_tokens",))
_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("prompt_token_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),
    ("num_cached_tokens",),
    ("cached_tokens",),
)
_WRITTEN = (("prompt_tokens_details", "cache_write_tokens"), ("cache_creation_input_tokens",))


def usage_in(chunk: JsonObject, choice: JsonObject) -> Usage | None:
    """The usage that a chunk or a whole answer tells; None when it tells none."""
    for source in (chunk.get("usage"), choice.get("usage"), object_at(chunk, "x_groq").get("usage")):
        usage = _usage(source) if isinstance(source, dict) else None
        if usage is not None:
            return usage
    return None


def _usage(source: JsonObject) -> Usage | None:
    """Cached tokens are part of those sent, unless there are more of them. The total knows of thinking that some
    servers leave out of what was said."""
    sent, said, total = first_count(source, *_SENT), first_count(source, *_SAID), count_at(source, "total_tokens")
    if sent is None and said is None:
        return None
    written = first_count(source, *_WRITTEN) or 0
    cached = first_count(source, *_CACHED) or 0
    read = max(0, cached - written)
    if sent is None:
        sent = max(0, (total or 0) - (said or 0))
    if read + written > sent:
        sent += read + written
    return Usage(
        input_tokens=sent - read - written,
        output_tokens=max(said or 0, (total or 0) - sent),
        cache_read_tokens=read,
        cache_write_tokens=written,
        cost_usd=_cost_usd(source),
    )


def _cost_usd(source: JsonObject) -> float | None:
    """What OpenRouter says the request cost; with the person's own key at the real server it knows only its share."""
    cost = source.get("cost")
    if not isinstance(cost, int | float) or isinstance(cost, bool) or source.get("is_byok") is True:
        return None
    return float(cost) if 0 <= cost < _MAX_COST_USD else None
