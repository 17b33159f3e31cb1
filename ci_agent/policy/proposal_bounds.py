"""What a run may propose to have done outside, kind by kind, and within which bounds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, Final, Literal, TypeAlias, TypeVar

from ci_agent.policy.matchers.path_globs import matches_parts, parse_path_glob

Kind: TypeAlias = Literal["comment", "label", "issue", "patch"]

MAX_BODY_CHARS: Final = 65_000
"""GitHub takes 65,536 characters for the body of a comment, an issue or a pull request."""

MAX_TITLE_CHARS: Final = 250
"""GitHub takes 256 characters for the title of an issue or a pull request."""

MAX_PATCH_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentBounds:
    """Comments on the issue or pull request that the workflow is about."""

    max_count: int = 1
    max_chars: int = 10_000
    prefix: str = ""
    """What every body begins with; added by ci-agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelBounds:
    """Labels that are added to it."""

    names: tuple[str, ...]
    max_count: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueBounds:
    max_count: int = 1
    max_chars: int = 10_000
    max_title_chars: int = 120
    title_prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchBounds:
    """One patch of files of the repository: a new branch and a pull request."""

    paths: tuple[tuple[str, ...], ...]
    """Lists of globs, relative to the repository's top; a path must fit one of each list."""
    max_bytes: int = 100_000
    branch_prefix: str = "ci-agent/"
    max_chars: int = 10_000
    max_title_chars: int = 120
    title_prefix: str = ""

    def covers(self, path: str) -> bool:
        """Whether a file of this path may be in the patch, workflows and git's own files aside."""
        names = path.split("/")
        return all(any(_fits(glob, names) for glob in globs) for globs in self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalBounds:
    """None: nothing of the kind may be proposed."""

    comment: CommentBounds | None = None
    label: LabelBounds | None = None
    issue: IssueBounds | None = None
    patch: PatchBounds | None = None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        kinds: tuple[Kind, ...] = ("comment", "label", "issue", "patch")
        return tuple(kind for kind in kinds if getattr(self, kind) is not None)


NOTHING_TO_PROPOSE: Final = ProposalBounds()

Bounds = TypeVar("Bounds", CommentBounds, LabelBounds, IssueBounds, PatchBounds)


def tightest_proposals(bounds: Iterable[ProposalBounds]) -> ProposalBounds:
    """Every kind that some policy names, within the bounds of all that name it.

    ValueError for prefixes of which none begins with the other.
    """
    every = list(bounds)
    kinds: dict[str, Any] = {}
    for field in fields(ProposalBounds):
        named = [one for policy in every if (one := getattr(policy, field.name)) is not None]
        kinds[field.name] = reduce(_tighter, named) if named else None
    return ProposalBounds(**kinds)


def _fits(glob: str, names: Sequence[str]) -> bool:
    return any(matches_parts(parts, names) for parts in parse_path_glob(glob).alternatives)


def _tighter(one: Bounds, other: Bounds) -> Bounds:
    values = {
        field.name: _tighter_value(field.name, getattr(one, field.name), getattr(other, field.name))
        for field in fields(one)
    }
    return type(one)(**values)


def _tighter_value(name: str, one: Any, other: Any) -> Any:
    if name == "names":
        return tuple(label for label in one if label in other)
    if name == "paths":
        return tuple(dict.fromkeys((*one, *other)))
    return min(one, other) if isinstance(one, int) else _longer(name, one, other)


def _longer(name: str, one: str, other: str) -> str:
    shorter, longer = sorted((one, other), key=len)
    if not longer.startswith(shorter):
        raise ValueError(f"{name} {other!r} does not begin with {one!r}, which a policy that this one extends wants")
    return longer
