"""The effects of several commands of which nobody knows which one runs."""

from collections.abc import Iterable
from itertools import chain
from typing import TypeVar

from ci_agent.policy.effects import Effects

_T = TypeVar("_T")


def together(all_effects: list[Effects]) -> Effects:
    """What any of them may do. Only one folder, and one set of words to look through, can be had."""
    first = all_effects[0]
    problem = next((effects.problem for effects in all_effects if effects.problem), None)
    if any((effects.looked_through, effects.folder) != (first.looked_through, first.folder) for effects in all_effects):
        problem = problem or "in which folder it works is not certain"
    return Effects(
        files=_union(effects.files for effects in all_effects),
        urls=_union(effects.urls for effects in all_effects),
        commands=_union(effects.commands for effects in all_effects),
        scripts=_union(effects.scripts for effects in all_effects),
        hazards=_union(effects.hazards for effects in all_effects),
        looked_through=first.looked_through,
        transparent=all(effects.transparent for effects in all_effects),
        folder=first.folder,
        may_be_options=_union(effects.may_be_options for effects in all_effects),
        code=_union(effects.code for effects in all_effects),
        anything=_union(effects.anything for effects in all_effects),
        elsewhere=_union(effects.elsewhere for effects in all_effects),
        tracked=_union(effects.tracked for effects in all_effects),
        untracked=_union(effects.untracked for effects in all_effects),
        known=all(effects.known for effects in all_effects),
        tried=len(all_effects),
        problem=problem,
    )


def _union(parts: Iterable[tuple[_T, ...]]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(parts)))
