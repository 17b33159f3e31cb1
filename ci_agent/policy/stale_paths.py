"""What the disk will not show before the call runs: links and names that the call makes and then uses itself."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from ci_agent.policy.disk import DiskBudget, walk
from ci_agent.policy.facts import ExecFact, Fact, FileFact, UnknownFact
from ci_agent.policy.reach import fold_names, names_of

_LINKERS: Final = frozenset({"ln", "link"})
_MOVERS: Final = frozenset({"cp", "mv", "rsync", "install"})
_LINK_OPTION: Final = re.compile(r"-[A-Za-z]*[ls]|--(link|symbolic-link|links)")


def stale_paths(facts: Sequence[Fact], budget: DiskBudget) -> Iterator[UnknownFact]:
    """A doubt for each file that is reached through a link of the call's own, and for each glob that may find a name
    of its own that looks like an option."""
    for maker in facts:
        if isinstance(maker, ExecFact) and _base_name(maker) in _LINKERS | _MOVERS:
            yield from _through_links(maker, facts, budget)
    if any(file.path.name.startswith("-") for fact in facts for file in _files(fact) if file.effect == "write"):
        for fact in facts:
            if isinstance(fact, ExecFact) and fact.has_open_glob:
                yield UnknownFact(
                    "a glob may become a name with a dash that is made here", argument="command", span=fact.span
                )


def _through_links(maker: ExecFact, facts: Sequence[Fact], budget: DiskBudget) -> Iterator[UnknownFact]:
    made = [fold_names(names_of(file.written)) for file in maker.files if file.effect == "write"]
    for fact in facts:
        for file in _files(fact) if fact is not maker else ():
            names = fold_names(names_of(file.written))
            if any(names[: len(link)] == link for link in made) and _may_make_links(maker, budget):
                why = f"{file.written} may be made a link in the same call; use it in a call of its own"
                yield UnknownFact(why, argument=file.argument, span=file.span)


def _may_make_links(command: ExecFact, budget: DiskBudget) -> bool:
    """`ln` does; copies and moves do when they are told so, or when there is a link in what they take."""
    if _base_name(command) in _LINKERS or any(_LINK_OPTION.match(word.text) for word in command.words[1:]):
        return True
    sources = [file.written for file in command.files if file.effect != "write"]
    return any(
        os.path.islink(source) or any(entry.is_symlink() for _, entries in walk(source, budget) for entry in entries)
        for source in sources
    )


def _base_name(command: ExecFact) -> str:
    return os.path.basename(command.words[0].text)


def _files(fact: Fact) -> tuple[FileFact, ...]:
    if isinstance(fact, ExecFact):
        return fact.files + fact.perhaps
    return (fact,) if isinstance(fact, FileFact) else ()
