"""What the disk will not show before the call runs: links and names that the call makes and then uses itself."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ci_agent.policy.facts import ExecFact, Fact, FileFact, UnknownFact

_LINKERS = frozenset({"ln", "link"})
_MOVERS = frozenset({"cp", "mv", "rsync"})


def stale_paths(facts: Sequence[Fact]) -> Iterator[UnknownFact]:
    """A doubt for each file that is reached through a link of the call's own, and for each glob that may find a name
    of its own that looks like an option."""
    commands = [fact for fact in facts if isinstance(fact, ExecFact)]
    links = [(command, path) for command in commands for path in _links_made(command)]
    if links:
        for fact in facts:
            yield from _through_links(fact, [path for command, path in links if command is not fact])
    if any(file.path.name.startswith("-") for fact in facts for file in _files(fact) if file.effect == "write"):
        for command in commands:
            if command.has_open_glob:
                yield UnknownFact(
                    "a glob may become the name with a dash that is made here", "unparsable", "command", command.span
                )


def _through_links(fact: Fact, links: Sequence[Path]) -> Iterator[UnknownFact]:
    for file in _files(fact):
        if any(link == file.written or link in file.written.parents for link in links):
            why = f"{file.written} is made a link in the same call; use it in a call of its own"
            yield UnknownFact(why, argument=file.argument, span=file.span)


def _links_made(command: ExecFact) -> Iterator[Path]:
    name = os.path.basename(command.words[0].text)
    moves_link = name in _MOVERS and any(
        os.path.islink(file.written) for file in command.files if file.effect != "write"
    )
    if name in _LINKERS or moves_link:
        yield from (file.written for file in command.files if file.effect == "write")


def _files(fact: Fact) -> tuple[FileFact, ...]:
    if isinstance(fact, ExecFact):
        return fact.files
    return (fact,) if isinstance(fact, FileFact) else ()
