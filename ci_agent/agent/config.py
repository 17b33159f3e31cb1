"""What a run of the loop is given, beside its conversation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ci_agent.hooks import Hooks
from ci_agent.provider import Model, StreamFn, StreamOptions
from ci_agent.tool import ExecutionMode, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig:
    model: Model
    stream_fn: StreamFn
    tools: Mapping[str, Tool]
    """All tools that exist, by name. `Context.tools` holds those that are offered: the others are denied."""
    now: Callable[[], datetime]
    """Dates the messages that the loop makes."""
    hooks: Hooks = field(default_factory=Hooks)
    options: StreamOptions = field(default_factory=StreamOptions)
    execution_mode: ExecutionMode = "parallel"
    """`sequential`: every batch runs in order, whatever the modes of its tools."""
    max_parallel: int = 8
    """How many calls of one batch run at the same time."""
    abandon_after_s: float = 10.0
    """How long, once cancelled, a running tool is waited for; then its call is reported as cancelled without it."""

    def __post_init__(self) -> None:
        if self.max_parallel < 1:
            raise ValueError(f"max_parallel is {self.max_parallel}; at least one call must be able to run")
