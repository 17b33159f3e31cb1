"""The names of tools as an API takes them, made when a request is, and mapped back when the answer comes."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ci_agent.tool import Tool

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_SAFE_START = re.compile(r"[A-Za-z_]")
_DIGEST_LENGTH = 8


@dataclass(frozen=True, slots=True)
class ToolNames:
    to_wire: dict[str, str]
    from_wire: dict[str, str]
    max_length: int

    def wire(self, name: str) -> str:
        """The name to send, also for a call in the history of a tool that is not offered, or that never was."""
        return self.to_wire.get(name) or _safe(name, self.max_length)


def wire_tool_names(tools: Sequence[Tool], pattern: re.Pattern[str], max_length: int) -> ToolNames:
    """Names unlike `pattern` (of a whole name) or too long are rewritten with letters, digits, `_` and `-`, which every
    API takes. The result does not depend on the order of the tools."""
    names = [tool.name for tool in tools]
    kept = {name for name in names if len(name) <= max_length and pattern.fullmatch(name)}
    to_wire = {name: name for name in kept} | _rewritten((name for name in names if name not in kept), kept, max_length)
    return ToolNames(to_wire, {wire: name for name, wire in to_wire.items()}, max_length)


def _rewritten(names: Iterable[str], taken: set[str], max_length: int) -> dict[str, str]:
    """Where two names would become one, each gets a digest of what it was."""
    safe = {name: _safe(name, max_length) for name in names}
    uses = Counter([*safe.values(), *taken])
    return {name: wire if uses[wire] == 1 else _with_digest(name, wire, max_length) for name, wire in safe.items()}


def _safe(name: str, max_length: int) -> str:
    wire = _UNSAFE.sub("_", name)
    if not _SAFE_START.match(wire):
        wire = f"_{wire}"
    return wire if len(wire) <= max_length else _with_digest(name, wire, max_length)


def _with_digest(name: str, wire: str, max_length: int) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{wire[: max_length - _DIGEST_LENGTH - 1]}_{digest}"
