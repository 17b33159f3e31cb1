"""Where copies and moves land when another command of the call makes their target a folder, or fills what they take.

The disk shows what was there before the call. What is found here no rule need grant, unless it is protected; but a rule
that forbids it forbids the command.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from ci_agent.policy.disk import MAX_PATHS, DiskBudget
from ci_agent.policy.facts import ExecFact, Fact, FileFact
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.matchers.reach import Names, names_of
from ci_agent.policy.protected import FREE, guard_write, protected_beneath
from ci_agent.policy.shell.program import BoundExceededError

_LANDING: Final = 25
"""To look at one more place takes as long as to see this many entries of a folder."""


def with_landings(site: Site, facts: Sequence[Fact], budget: DiskBudget) -> list[Fact]:
    """The same facts, each copy and move with the further places where it may land."""
    commands = [fact for fact in facts if isinstance(fact, ExecFact)]
    movers = [command for command in commands if command.files and any(file.landing for file in command.files)]
    if not movers or (len(commands) == 1 and not _makes_folders(movers[0])):
        return list(facts)
    found = _landings(site, commands, movers, budget)
    return [_with(fact, found.get(id(fact), {})) if isinstance(fact, ExecFact) else fact for fact in facts]


def _makes_folders(command: ExecFact) -> bool:
    """rsync makes the target a folder by itself, cp and mv do not."""
    return os.path.basename(command.words[0].text) == "rsync"


def _landings(
    site: Site, commands: Sequence[ExecFact], movers: Sequence[ExecFact], budget: DiskBudget
) -> dict[int, dict[Path, FileFact]]:
    """The places that are not among a mover's files, for each mover by its `id`."""
    known = {id(mover): {file.path for file in mover.files} for mover in movers}
    found: dict[int, dict[Path, FileFact]] = {id(mover): {} for mover in movers}
    room = MAX_PATHS
    cargo = _Cargo(_loads(movers))
    arrivals: Iterable[_Arrival] = chain(cargo.unloaded(), cargo.follow(_changed(commands)))
    for _ in movers:  # what one of them moves, each of the others may move on
        moved: list[Names] = []
        for load, path, contents in arrivals:
            if path in known[load.mover]:
                continue
            room -= 1
            budget.spend_entries(_LANDING)
            if room < 0:
                raise BoundExceededError("files are copied and moved on and on; put fewer commands in one call")
            known[load.mover].add(path)
            found[load.mover][path] = _guarded(site, _at(load.file, path, contents), budget)
            moved.append(names_of(path))
        arrivals = cargo.follow(moved)
    return found


def _changed(commands: Sequence[ExecFact]) -> list[Names]:
    """What the commands write, move or delete."""
    files = (file for command in commands for file in command.files)
    return list(dict.fromkeys(names_of(file.path) for file in files if file.effect in ("write", "delete")))


@dataclass(slots=True)
class _Load:
    """One thing that is copied or moved."""

    mover: int
    file: FileFact
    source: Names
    target: Path
    places: list[Path]
    """Where it may arrive."""
    contents: dict[Names, None] = field(default_factory=dict)
    """What the call itself puts into it, relative to it, and so arrives with it."""


class _Arrival(NamedTuple):
    load: _Load
    path: Path
    contents: bool = False
    """It is a part of what the call puts into the load."""


def _loads(movers: Sequence[ExecFact]) -> list[_Load]:
    loads = {}
    for mover in movers:
        for file in mover.files:
            if file.landing is not None:
                source, target = file.landing
                load = _Load(id(mover), file, names_of(source), target, [file.path])
                loads[load.mover, file.path, file.landing] = load
    return list(loads.values())


class _Cargo:
    """All loads of a call, found by what a change means to them."""

    def __init__(self, loads: Sequence[_Load]) -> None:
        self._loads = loads
        self._by_source: dict[Names, list[_Load]] = {}
        self._by_target: dict[Names, list[_Load]] = {}
        for load in loads:
            self._by_source.setdefault(load.source, []).append(load)
            target = names_of(load.target)
            for size in range(1, len(target) + 1):
                self._by_target.setdefault(target[:size], []).append(load)

    def unloaded(self) -> Iterator[_Arrival]:
        """In the target, should another command make it a folder: the mover itself sees to it that it is there."""
        for load in self._loads:
            if load.file.path == load.target:
                yield from _also(load, load.target / load.source[-1])

    def follow(self, changed: Iterable[Names]) -> Iterator[_Arrival]:
        """Where loads arrive besides, now that these are changed."""
        for names in changed:
            for load in self._by_target.get(names, ()):
                # The folder is made anew: the load may take its place, or come into it.
                yield from _also(load, load.target)
                yield from _also(load, load.target / load.source[-1])
            for size in range(1, len(names)):
                for load in self._by_source.get(names[:size], ()):
                    yield from _filled(load, names[size:])


def _also(load: _Load, place: Path) -> Iterator[_Arrival]:
    if place not in load.places:
        load.places.append(place)
        yield _Arrival(load, place)
        yield from (_Arrival(load, place.joinpath(*names), contents=True) for names in load.contents)


def _filled(load: _Load, names: Names) -> Iterator[_Arrival]:
    if names not in load.contents:
        load.contents[names] = None
        yield from (_Arrival(load, place.joinpath(*names), contents=True) for place in load.places)


def _at(file: FileFact, path: Path, contents: bool) -> FileFact:
    landing = None if contents else file.landing
    recursive = landing is not None and os.path.isdir(landing[0])
    return file._replace(path=path, written=path, is_folder=os.path.isdir(path), recursive=recursive, landing=landing)


def _guarded(site: Site, file: FileFact, budget: DiskBudget) -> FileFact:
    root = site.workspace.root
    source = file.landing[0] if file.landing and file.recursive else None
    beneath = None if source is None else list(protected_beneath(source, budget.at(source, root)))
    return file._replace(guarded=guard_write(file.path, root, site.around, beneath=beneath, budget=budget))


def _with(command: ExecFact, more: Mapping[Path, FileFact]) -> ExecFact:
    free = tuple(file for file in more.values() if file.guarded == FREE)
    protected = tuple(file for file in more.values() if file.guarded != FREE)
    return command._replace(files=command.files + protected, perhaps=command.perhaps + free) if more else command
