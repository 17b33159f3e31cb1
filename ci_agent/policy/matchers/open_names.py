"""Names of files that are known but for their digits: `app-` and a commit, `log-` and a date.

In such a name OPEN stands for one or more digits, or for the beginning of a commit's name. No glob spells OPEN, so that
it covers an open name only where a wildcard does, and then it covers whatever the name becomes. Whether a rule may be
about one of the names is another question: `may_cover`.
"""

import re
from collections.abc import Sequence
from typing import Final

from ci_agent.policy.matchers.path_globs import Part
from ci_agent.policy.matchers.reach import AnchoredGlob, Names
from ci_agent.policy.matchers.wildcards import Wildcard

OPEN: Final = "\ue000"
"""A character that no path of a call may hold."""

_VALUE: Final = frozenset("0123456789abcdef")
_VARIES: Final = re.compile(r"0{40}|[0-9]+")


def opened(stand_ins: Sequence[str]) -> tuple[str, ...]:
    """The paths of which each is one that a word may become, for the texts that stand for its values.

    A name on the way that is the same in all of them, one of which has nothing where the others vary, does not vary.
    """
    paths = [text.split("/") for text in stand_ins]
    same = len(set(map(len, paths))) == 1 and len(paths) > 1
    fixed = [same and len(set(names)) == 1 and "0" * 40 not in names[0] for names in zip(*paths, strict=False)]
    return tuple(
        dict.fromkeys(
            "/".join(
                name if at < len(fixed) and fixed[at] else _VARIES.sub(OPEN, name) for at, name in enumerate(names)
            )
            for names in paths
        )
    )


def may_become(open_name: str, name: str) -> bool:
    """Whether an open name may turn out to be this one; both folded."""
    return open_name == name or (OPEN in open_name and len(open_name) in _reached(open_name, name))


def may_cover(glob: AnchoredGlob, names: Names) -> bool:
    """Whether the glob of a deny rule may cover one of the paths that an open one may become; both folded."""
    size = len(glob.prefix)
    above = len(names) >= size and all(map(may_become, names[:size], glob.prefix))
    return above and _may_match(glob.tail, names[size:])


def _may_match(parts: Sequence[Part], names: Sequence[str]) -> bool:
    reached = {0}
    for part in parts:
        if part is None:
            reached = set(range(min(reached), len(names) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(names) and _may_fit(part, names[at])}
    return len(names) in reached


def _may_fit(part: Wildcard, open_name: str) -> bool:
    """In which order the texts of the wildcard stand is left out of account."""
    if OPEN not in open_name:
        return part.matches(open_name)
    if part.literal is not None:
        return may_become(open_name, part.literal)
    first, *middle, last = part.chunks
    held = all(any(_reached(open_name[at:], chunk) for at in range(len(open_name))) for chunk in middle)
    return held and bool(_reached(open_name, first)) and bool(_reached(open_name[::-1], last[::-1]))


def _reached(open_name: str, text: str) -> set[int]:
    """How much of the name may have been read when it begins with the text; nothing when it cannot."""
    reached = {0}
    for char in text:
        following = {at + 1 for at in reached if open_name[at : at + 1] == char}
        if char in _VALUE:
            values = {at for at in reached if open_name[at : at + 1] == OPEN}
            following |= values | {at + 1 for at in values}
        reached = following
    return reached
