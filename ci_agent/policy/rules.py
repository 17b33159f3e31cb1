"""What a policy file says once it has been read: rules in plain data, each with its place in a file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from ci_agent.hooks import Effect, OnDenied
from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.proposal_bounds import NOTHING_TO_PROPOSE, ProposalBounds


@dataclass(frozen=True, slots=True)
class Examples:
    match: tuple[str | JsonObject, ...] = ()
    no_match: tuple[str | JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. A matcher that is None was not written; its default is the policy language's, not this class's."""

    id: str
    """Unique in the whole policy: rules that came by `extends` carry their file's name, `read-only/inspect`."""
    effect: Effect
    tools: tuple[str, ...]
    """Tool name patterns."""
    source: str
    """`file:line` of the rule."""
    command: tuple[tuple[str, ...], ...] | None = None
    """Patterns, each a list of token patterns; a pattern written as one string is already split into words."""
    paths: tuple[str, ...] | None = None
    env: tuple[str, ...] | None = None
    has: tuple[str, ...] | None = None
    path: tuple[str, ...] | None = None
    host: tuple[str, ...] | None = None
    scheme: tuple[str, ...] | None = None
    port: tuple[int, ...] | None = None
    method: tuple[str, ...] | None = None
    args: Mapping[str, Mapping[str, Json]] | None = None
    """Selector to its tests: `{"labels[]": {"enum": ["bug"]}}`."""
    only: bool = False
    max_calls: int | None = None
    because: str | None = None
    instead: str | None = None
    on_denied: OnDenied | None = None
    examples: Examples = Examples()


@dataclass(frozen=True, slots=True)
class Limits:
    """None: the policy does not say."""

    max_turns: int | None = None
    max_tool_calls: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    timeout_s: float | None = None


def tightest_limits(limits: Iterable[Limits]) -> Limits:
    """For each limit the smallest that any of them says."""
    every = list(limits)
    tightest = {}
    for limit in fields(Limits):
        said = [value for one in every if (value := getattr(one, limit.name)) is not None]
        tightest[limit.name] = min(said, default=None)
    return Limits(**tightest)


@dataclass(frozen=True, slots=True)
class PolicyTest:
    """A call and the answer that the file's author expects."""

    effect: Effect
    tool: str
    arguments: JsonObject
    by: str | None
    """Rule id or decision code that must have decided; None: any."""
    source: str
    """`file:line` of the test."""


@dataclass(frozen=True, slots=True)
class PolicySource:
    """A policy file with all that it extends, resolved."""

    name: str
    """A shipped policy's name, or the path as it was given."""
    sha256: str
    """Of the resolved form: the same rules give the same digest, comments and layout aside."""
    description: str | None
    rules: tuple[Rule, ...]
    limits: Limits = Limits()
    proposals: ProposalBounds = NOTHING_TO_PROPOSE
    on_denied: OnDenied = "record"
    tests: tuple[PolicyTest, ...] = ()
    files: tuple[str, ...] = ()
    """Absolute paths of the files it was read from; never writable during a run."""
    links: tuple[str, ...] = ()
    """Those on the way to these files, by their own paths."""
