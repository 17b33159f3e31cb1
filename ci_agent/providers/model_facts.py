"""What is known about a model before it is asked, and what its tokens cost."""

from dataclasses import dataclass

from ci_agent.messages import Usage


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    """None: not listed. Such tokens count as fresh input, which says too much rather than too little."""
    cache_write: float | None = None


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """None: not known, which is neither yes nor no."""

    context_tokens: int | None = None
    """How long a request may be; with some providers the answer counts too."""
    max_output_tokens: int | None = None
    price: Price | None = None
    long_context_tokens: int | None = None
    """Requests whose input is longer cost `long_context_price`; None: there is one price for all."""
    long_context_price: Price | None = None
    thinks: bool | None = None
    adaptive_thinking: bool | None = None
    """Whether the model takes an effort in place of a budget of tokens (Anthropic)."""
    sees_images: bool | None = None
    takes_temperature: bool | None = None
    enforces_schema: bool | None = None
    """Whether the API holds the model's answer to a JSON Schema."""


UNKNOWN_MODEL = ModelFacts()


def cost_usd(facts: ModelFacts, usage: Usage) -> float | None:
    """What the tokens of one request cost; None when the price is not known."""
    price = facts.price
    sent = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    if facts.long_context_tokens is not None and sent > facts.long_context_tokens:
        price = facts.long_context_price
    if price is None:
        return None
    cache_read = price.input if price.cache_read is None else price.cache_read
    cache_write = price.input if price.cache_write is None else price.cache_write
    millionths = (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cache_read_tokens * cache_read
        + usage.cache_write_tokens * cache_write
    )
    return millionths / 1_000_000
