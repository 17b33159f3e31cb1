"""What a tool is, and what it returns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from ci_agent.cancellation import CancelToken
from ci_agent.json_types import Json, JsonObject
from ci_agent.messages import ToolResultContent

ExecutionMode: TypeAlias = Literal["parallel", "sequential"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    content: tuple[ToolResultContent, ...]
    """What the model reads."""
    details: JsonObject | None = None
    """Structured facts for the record (a diff, an exit status, what was cut); never sent to the model."""
    terminate: bool = False
    """A hint that the run may stop; it stops only if every result of the batch says so."""


OnUpdate: TypeAlias = Callable[[ToolResult], None]
"""Takes a partial result while the tool runs; may be called from any thread."""


class Execute(Protocol):
    """Do the work.

    `arguments` satisfy the tool's schema and belong to this call alone. Raise `ToolError` (or any exception)
    on failure: a failure is never encoded in the content. Blocking work watches `cancel` and raises
    `Cancelled` when it fires. Called from a thread other than the loop's, several at a time unless the
    tool is sequential.
    """

    def __call__(self, call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    parameters: JsonObject
    """JSON Schema 2020-12 of the arguments; type object."""
    execute: Execute
    execution_mode: ExecutionMode = "parallel"
    """`sequential`: whenever the model calls it, its whole batch runs in order."""
    prepare_arguments: Callable[[Json], Json] | None = None
    """Repairs raw arguments known to come malformed, before they are validated. Gets parsed JSON of any type."""
