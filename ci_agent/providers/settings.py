"""How models are reached and asked, as a person may say it."""

from dataclasses import dataclass, field
from pathlib import Path

from ci_agent.provider import ThinkingLevel
from ci_agent.providers.shrinking import ShrinkMode


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    base_url: str | None = None
    """Of the run's model alone, not of its fallbacks; None: the provider's own."""
    api_key: str | None = field(default=None, repr=False)
    """Of the run's model alone; None: from the provider's usual variable."""
    fallbacks: tuple[str, ...] = ()
    """`PROVIDER:MODEL`, asked in this order when the one before gave up."""
    thinking: ThinkingLevel | None = None
    """None, as in all of these: the provider's default."""
    temperature: float | None = None
    max_output_tokens: int | None = None
    shrink: ShrinkMode = "results"
    models_file: Path | None = None
    """Limits and prices of the person's own, before those shipped."""
    ca_file: Path | None = None
    """Certificates to trust in place of the usual ones."""
    allow_http: bool = False
    """Whether a key may travel unencrypted to another machine."""
    connect_timeout_s: float = 10.0
    first_byte_timeout_s: float = 120.0
    """Until an answer begins, and not its headers alone."""
    idle_timeout_s: float = 60.0
    """Longest silence once it has begun."""
    request_timeout_s: float = 600.0
    attempts: int = 5
    """For each request, the first included."""
