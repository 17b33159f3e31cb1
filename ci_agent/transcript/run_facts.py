"""What the record says of a run beside its events: how it began, and how it ended."""

from dataclasses import asdict, dataclass, field

from ci_agent.exit_codes import ResultReason
from ci_agent.json_types import Json, JsonObject
from ci_agent.provider import Model


@dataclass(frozen=True, slots=True)
class SandboxFacts:
    kind: str
    """What is in force, `none` included."""
    requested: str
    """What was asked for: auto, required or off."""
    abi: int | None = None
    """Version of the kernel's interface, for kinds that have one."""


@dataclass(frozen=True, slots=True)
class CIFacts:
    provider: str
    repository: str | None = None
    run_url: str | None = None


@dataclass(frozen=True, slots=True)
class CheckoutFacts:
    """What the services that show a run beside the code know of its files."""

    root: str
    """The folder that paths in reports are relative to: the top of the repository, as far as one was found."""
    started_in: str
    """The current folder, which the policy's name is relative to."""


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    name: str
    sha256: str
    rules: int
    limits: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunStart:
    id: str
    version: str
    """Of ci-agent."""
    workspace: str
    model: Model
    options: JsonObject = field(default_factory=dict)
    """What was asked of the model, and the base URL."""
    policy: PolicyFacts | None = None
    """None: an embedding program brought its own hook."""
    sandbox: SandboxFacts | None = None
    ci: CIFacts | None = None
    """None: no CI service was recognised."""
    checkout: CheckoutFacts | None = None
    """None: nobody looked; paths are then relative to the workspace."""

    def as_json(self) -> JsonObject:
        """The facts as the record spells them: `run`, `model`, `policy`."""
        run = {"id": self.id, "version": self.version, "workspace": self.workspace}
        return {
            "run": {
                **run,
                "sandbox": _as_json(self.sandbox),
                "ci": _as_json(self.ci),
                "checkout": _as_json(self.checkout),
            },
            "model": {"provider": self.model.provider, "model": self.model.id, "options": self.options},
            "policy": _as_json(self.policy),
        }


@dataclass(frozen=True, slots=True)
class RunEnding:
    reason: ResultReason
    exit_code: int
    structured_output: Json = None
    error: str | None = None
    """One line for a person; None when nothing went wrong."""
    error_retryable: bool | None = None
    """Whether running again later can help; None: nobody knows, or nothing went wrong."""


def _as_json(facts: SandboxFacts | CIFacts | CheckoutFacts | PolicyFacts | None) -> JsonObject | None:
    return None if facts is None else asdict(facts)
