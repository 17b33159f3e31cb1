"""How one command is confined: by a Landlock ruleset that it takes upon itself, or by a program that starts it."""

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from ci_agent.json_types import JsonObject
from ci_agent.sandbox.landlock import Ruleset, ruleset_as_json, ruleset_from_json


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The command's words go behind these: bubblewrap with its options, then `--`."""

    argv: tuple[str, ...]


Confinement: TypeAlias = Ruleset | Wrapper
"""A Ruleset goes to `landlock.restrict` in the child, right before its exec; a Wrapper before the command's words."""


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
