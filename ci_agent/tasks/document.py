"""The models of a task file."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from ci_agent.json_types import Json, JsonObject
from ci_agent.strict_yaml import FileModel

Count: TypeAlias = Annotated[int, Field(ge=1)]
Amount: TypeAlias = Annotated[float, Field(gt=0, le=1e9, strict=False)]
"""As large as the same limit may be on the command line."""

Word: TypeAlias = Annotated[str, Field(min_length=1)]
When: TypeAlias = Literal["never", "all", "any"]

InputType: TypeAlias = Literal["string", "integer", "number", "boolean", "choice", "text", "revision"]


class InputModel(FileModel):
    type: InputType = "string"
    """string: one line; choice: one of the words in `of`; revision: what git knows as a commit in the workspace; text:
    any text, which is shown to the model as untrusted data and can not stand in the prompt."""
    description: str | None = None
    default: Json = None
    """Without one the input must be given."""
    pattern: str | None = None
    """RE2 that a whole string must match."""
    min: float | None = None
    max: float | None = None
    """Of a number: the smallest and the largest; of a string: `max` characters."""
    state: Literal["revision", "started_at"] | None = None
    """Of a string or a revision: with --state-dir, the commit that the last good run saw, or when it began, beats the
    default."""
    of: list[str] | None = None
    """The words of a choice."""


class TaskLimits(FileModel):
    max_turns: Count | None = None
    max_tool_calls: Count | None = None
    max_tokens: Count | None = None
    max_cost_usd: Amount | None = None
    timeout_s: Amount | None = None
    """Seconds for the whole run."""


class TaskDocument(FileModel):
    task: Literal[1]
    """Version of the format."""
    description: str | None = None
    prompt: str
    """What is to be done. `{{ files }}` and `{{ INPUT }}` stand for the files and the inputs of the run."""
    inputs: dict[str, InputModel] = Field(default_factory=dict)
    """Values that a run gives with --input NAME=VALUE."""
    policy: Word
    """A shipped policy's name, or a file, relative to this one."""
    model: Word | None = None
    """PROVIDER:MODEL."""
    fallback_models: list[Word] | None = None
    thinking: Literal["off", "minimal", "low", "medium", "high"] | None = None
    tools: Annotated[list[str], Field(min_length=1)] | None = None
    """The tools to offer; without it all that the policy can allow."""
    limits: TaskLimits = TaskLimits()
    context_files: list[Word] | None = None
    """Text that the model shall know, marked as untrusted; relative to this file."""
    output_schema: Word | JsonObject | None = None
    """JSON Schema that the answer must satisfy: a file, relative to this one, or the schema itself."""
    append_system_file: Word | None = None
    fail_on_denied: When | None = None
    fail_on_error: When | None = None
    sandbox: Literal["auto", "required", "off"] | None = None
    transcript: Word | None = None
    """Where the record goes, relative to the current folder."""
    answer_file: Word | None = None
    reports: dict[str, Word] | None = None
    """Format to file, relative to the current folder, such as `junit: out/junit.xml`."""
