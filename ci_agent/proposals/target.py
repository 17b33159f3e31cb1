"""Where proposals go: said by the job that applies them, and by nothing that the file says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ci_agent.errors import ConfigurationError
from ci_agent.github_event import read_github_event
from ci_agent.json_types import Json
from ci_agent.proposals.file import ProposalsFile

_REPOSITORY: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
_BRANCH: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+@-]{0,250}")


@dataclass(frozen=True, slots=True)
class Target:
    repository: str
    """`OWNER/NAME`."""
    number: int | None
    """Of the issue or pull request that comments and labels are for; None: no proposal needs it."""
    into: str | None
    """The branch that a pull request asks to be merged into; None as well."""


def find_target(
    file: ProposalsFile,
    environment: Mapping[str, str],
    *,
    repository: str | None = None,
    number: int | None = None,
    into: str | None = None,
) -> Target:
    """What was said, or else what GitHub says of this job; ConfigurationError for what the proposals need and nobody
    says."""
    found = repository or environment.get("GITHUB_REPOSITORY")
    if not found:
        raise ConfigurationError("nothing says which repository: say --repo OWNER/NAME, or set GITHUB_REPOSITORY")
    if not _REPOSITORY.fullmatch(found):
        raise ConfigurationError(f"{found!r} is no repository: say --repo OWNER/NAME")
    kinds = {proposal.kind for proposal in file.proposals}
    if kinds & {"comment", "label"}:
        number = number or _number_of_event(environment)
        if number is None:
            raise ConfigurationError("comments and labels need an issue or a pull request: say --number")
    if "patch" in kinds:
        into = into or _branch_of_job(environment)
        if not into or not _BRANCH.fullmatch(into):
            raise ConfigurationError("a patch needs a branch that it is for: say --into BRANCH")
    return Target(found, number, into)


def _number_of_event(environment: Mapping[str, str]) -> int | None:
    event = read_github_event(environment) or {}
    things = [event.get(name) for name in ("pull_request", "issue")]
    return next((number for thing in things if (number := _number(thing)) is not None), None)


def _number(thing: Json) -> int | None:
    number = thing.get("number") if isinstance(thing, dict) else None
    return number if type(number) is int and number > 0 else None


def _branch_of_job(environment: Mapping[str, str]) -> str | None:
    if environment.get("GITHUB_BASE_REF"):
        return environment["GITHUB_BASE_REF"]
    return environment.get("GITHUB_REF_NAME") if environment.get("GITHUB_REF_TYPE") == "branch" else None
