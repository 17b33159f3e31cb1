"""The `propose` tool: what shall be done outside is written down for a job that may do it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.tool import Tool, ToolResult
from ci_agent.tools.define import closed_object, executing, text_property, text_result

KINDS = ("comment", "label", "issue", "patch")

Propose: TypeAlias = Callable[[JsonObject], tuple[str, JsonObject]]
"""Takes the arguments down; returns what to tell the model, and details for the record. ToolError: not as they are."""


@dataclass(frozen=True, slots=True)
class Proposing:
    """What a run may propose."""

    kinds: Sequence[str]
    bounds: str
    """For the model, in a few sentences."""
    propose: Propose


def _refuse(_arguments: JsonObject) -> tuple[str, JsonObject]:
    raise ToolError("Nothing can be proposed in this run.")


NOTHING_TO_PROPOSE = Proposing(KINDS, "The policy has the bounds.", _refuse)
"""Of a run whose policy lets nothing be proposed, or whose proposals nobody takes."""


def create_propose_tool(proposing: Proposing) -> Tool:
    def run(arguments: JsonObject, cancel: CancelToken) -> ToolResult:
        del cancel
        return text_result(*proposing.propose(arguments))

    return Tool(
        name="propose",
        description=(
            "Propose what shall be done outside of this run: nothing happens now, another job checks it and does it. "
            "comment (body) on the issue or pull request at hand; label (labels) for it; issue (title, body), a new "
            "one; patch (title, body): the files that you have changed, as a pull request, so change them first."
        ),
        parameters=closed_object(
            {
                "kind": {"type": "string", "enum": list(proposing.kinds), "description": proposing.bounds},
                "title": text_property("Of an issue or a patch, on one line."),
                "body": text_property("Of a comment, an issue or a patch, as Markdown; mentions and HTML do nothing."),
                "labels": {"type": "array", "items": {"type": "string"}, "description": "Names of labels to add."},
            },
            required=["kind"],
        ),
        execute=executing(run),
        execution_mode="sequential",
    )
