"""What a person may say of a run, and what a run gives back."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ci_agent.events import AgentEvent
from ci_agent.exit_codes import ResultReason, When
from ci_agent.json_types import JsonObject
from ci_agent.policy.decide import Policy
from ci_agent.policy.rules import Limits
from ci_agent.prompts import ContextText
from ci_agent.providers.settings import ModelSettings
from ci_agent.replay import FailOnDivergence
from ci_agent.sandbox.sandbox import Requested


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    prompt: str
    policy: Policy
    model: str
    """`PROVIDER:MODEL`."""
    model_settings: ModelSettings = field(default_factory=ModelSettings)
    """How the model is reached, and what else is asked of it."""
    context: tuple[ContextText, ...] = ()
    """Text that the model shall know, marked as untrusted."""
    system_prompt: str | None = None
    """None: our own."""
    append_system_prompt: str | None = None
    tools: tuple[str, ...] | None = None
    """Names of the tools to offer; None: all that the policy can allow."""
    limits: Limits = field(default_factory=Limits)
    """They tighten the policy's limits and never loosen them."""
    tool_timeout_s: float | None = None
    """For each call, whatever it asks for; None: 120 for bash (up to 600 if it asks), 30 for the others."""
    output_schema: JsonObject | None = None
    """JSON Schema that the final answer must satisfy."""
    transcript: Path | None = None
    """None: the record is in the result alone."""
    keep_journal: bool = False
    lock: Path | None = None
    """A file that at most one run may hold at a time."""
    spill_folder: Path | None = None
    """Where whole outputs of commands go, made when it is missing; None: only what the transcript keeps of them."""
    fail_on_denied: When = "all"
    fail_on_error: When = "never"
    trace: bool = False
    """Send OpenTelemetry spans to where the `OTEL_*` variables say; needs the extra `otel`."""
    replay_tools: bool = False
    """Answer calls out of the record that is played (model `replay:TRANSCRIPT`) instead of executing them."""
    fail_on_divergence: FailOnDivergence = "never"
    """Which ways of parting from the record that is played make the run fail."""
    propose: bool = False
    """Let the model propose what the policy's `proposals` name; they are in the result."""
    sandbox: Requested = "auto"
    state_files: tuple[Path, ...] = ()
    """What runs leave for one another; no tool may write it."""
    secret_files: tuple[Path, ...] = ()
    """Files that no command may read, such as one that holds a key; the sandbox sees to it."""
    secret_env: tuple[str, ...] = ()
    """Names of variables whose values must not be recorded, beside those whose names look secret."""
    pass_env: tuple[str, ...] = ()
    """Names of variables that commands get besides the usual ones."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """What the environment of tools is made of, by an allow-list."""

    def __post_init__(self) -> None:
        given: object = self.policy
        if not isinstance(given, Policy):
            raise TypeError(f"policy is a Policy, such as load_policy({given!r}) returns, not {type(given).__name__}")


@dataclass(frozen=True, slots=True)
class RunResult:
    reason: ResultReason
    exit_code: int
    transcript: JsonObject
    """The document, as it was written; its schema is `ci-agent.transcript/1`."""
    transcript_path: Path | None
    proposals: JsonObject | None = None
    """What shall be done outside; its schema is `ci-agent.proposals/1`. None: nobody asked for it."""

    @property
    def answer(self) -> str:
        """The model's final text; empty when there is none."""
        return str(self.transcript["result"]["final_text"] or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observers:
    """Who watches a run from outside, and what only the outside knows."""

    observe: Callable[[AgentEvent], None] = lambda _event: None
    note: Callable[[str], None] = lambda _line: None
    """Takes one line about the run itself."""
    record: Callable[[str], None] = lambda _line: None
    """Takes each line of the journal, once it has been written."""
    received_signal: Callable[[], int | None] = lambda: None
    """The signal that cancelled the run; None: none did."""
    delivery_problem: Callable[[], str | None] = lambda: None
    """Asked once, when the run has ended: why its result cannot be delivered; None: it can."""
