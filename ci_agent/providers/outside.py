"""What a run's models get from the world."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Outside:
    environment: Mapping[str, str] = field(repr=False)
    """Keys, addresses, proxies and certificates are looked up here and nowhere else."""
    now: Callable[[], datetime]
    random: Callable[[], float]
    """From 0 to 1."""
