"""How one command is confined: by a Landlock ruleset that it takes upon itself, or by a program that starts it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from ci_agent.json_types import JsonObject
from ci_agent.sandbox.landlock import Ruleset, ruleset_as_json, ruleset_from_json


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The command's words go behind these: bubblewrap with its options, then `--`."""

    argv: tuple[str, ...]


Confinement: TypeAlias = Ruleset | Wrapper
"""A Ruleset is entered in the child, right before its exec; a Wrapper before the command's words."""


def confinement_as_json(confinement: Confinement | None) -> JsonObject | None:
    """For sending it to another process. Paths that are no UTF-8 are in it as lone surrogates."""
    if confinement is None:
        return None
    if isinstance(confinement, Ruleset):
        return {"landlock": ruleset_as_json(confinement)}
    if isinstance(confinement, Wrapper):
        return {"wrapper": list(confinement.argv)}
    assert_never(confinement)


def confinement_from_json(value: JsonObject | None) -> Confinement | None:
    """The confinement that `confinement_as_json` wrote."""
    if value is None:
        return None
    if "landlock" in value:
        return ruleset_from_json(value["landlock"])
    return Wrapper(tuple(value["wrapper"]))


@dataclass(frozen=True, slots=True)
class Confined:
    """How the commands of one call are started."""

    confinement: Confinement | None = None
    """None: there is no sandbox, and the call was meant to run without."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """More variables for them."""
    explanation: str | None = None
    """What they may do, in a line for a model whose command was refused something."""
    explanation_of_network: str | None = None
    """The same for a command that reached no server; None: nothing keeps it from the network."""


Confine: TypeAlias = Callable[[JsonObject], Confined]
"""From the arguments of a call. Raises ToolError when the call cannot be confined as promised, and so must not run."""


ConfineReader: TypeAlias = Callable[[], Confinement | None]
"""For a program that a file tool starts to read what the tool may read: it writes nothing and has no network."""


def leave_reader_unconfined() -> None:
    """As `leave_unconfined`."""


def leave_unconfined(arguments: JsonObject) -> Confined:
    """For an embedding program that keeps commands in by other means."""
    del arguments
    return Confined()
