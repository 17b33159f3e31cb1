"""What a run's models get from the world."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ci_agent.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Outside:
    environment: Mapping[str, str] = field(repr=False)
    """Keys, addresses, proxies and certificates are looked up here and nowhere else."""
    now: Callable[[], datetime]
    random: Callable[[], float]
    """From 0 to 1."""
    read_record: Callable[[Path], JsonObject]
    """The transcript document at a path; ConfigurationError when there is none."""
