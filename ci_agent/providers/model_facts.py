"""What is known about a model before it is asked."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens; None: not known."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """None: not known, which is neither yes nor no."""

    context_tokens: int | None = None
    """Input and output together, or what the provider calls the window."""
    max_output_tokens: int | None = None
    price: Price | None = None
    long_context_price: Price | None = None
    """For requests whose input is past `long_context_tokens`; None: there is one price."""
    long_context_tokens: int | None = None
    thinks: bool | None = None
    sees_images: bool | None = None


UNKNOWN_MODEL = ModelFacts()
