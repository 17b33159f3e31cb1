"""Where copies and moves land when another command of the call makes their target a folder, or fills what they take.

The disk shows what was there before the call. What is found here no rule need grant, unless it is protected; but a rule
that forbids it forbids the command.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ci_agent.policy.disk import MAX_PATHS, DiskBudget
from ci_agent.policy.facts import ExecFact, Fact, FileFact
from ci_agent.policy.protected import FREE, guard_write, protected_beneath
from ci_agent.policy.reach import Names, names_of
from ci_agent.policy.shell.program import BoundExceededError
from ci_agent.policy.site import Site


def with_landings(site: Site, facts: Sequence[Fact], budget: DiskBudget) -> list[Fact]:
    """The same facts, each copy and move with the further places where it may land."""
    commands = [fact for fact in facts if isinstance(fact, ExecFact)]
    movers = [command for command in commands if any(file.landing for file in command.files)]
    if not movers or (len(commands) == 1 and not _makes_folders(movers[0])):
        return list(facts)
    changed = _Changed()
    for file in (file for command in commands for file in command.files if file.effect in ("write", "delete")):
        changed.add(names_of(file.path))
    found: dict[int, dict[Path, FileFact]] = {id(mover): {} for mover in movers}
    for _ in movers:  # what one of them moves, each of the others may move on
        new = [(id(mover), file) for mover in movers for file in _landings(mover, changed, found[id(mover)])]
        if not new:
            break
        for mover, file in new:
            changed.add(names_of(file.path))
            found[mover][file.path] = _guarded(site, file, budget)
        if sum(map(len, found.values())) > MAX_PATHS:
            raise BoundExceededError("files are copied and moved on and on; put fewer commands in one call")
    return [_with(fact, found.get(id(fact), {})) if isinstance(fact, ExecFact) else fact for fact in facts]


@dataclass(frozen=True, slots=True)
class _Changed:
    """What the commands of a call write, move or delete."""

    paths: set[Names] = field(default_factory=set)
    above: set[Names] = field(default_factory=set)
    """The same, and every folder above."""

    def add(self, names: Names) -> None:
        self.paths.add(names)
        self.above.update(names[:size] for size in range(1, len(names) + 1))

    def at_or_above(self, names: Names) -> bool:
        return any(names[:size] in self.paths for size in range(1, len(names) + 1))

    def beneath(self, names: Names) -> list[Names]:
        """Relative to it."""
        if names not in self.above:
            return []
        return [each[len(names) :] for each in self.paths if each[: len(names)] == names and each != names]


def _makes_folders(command: ExecFact) -> bool:
    """rsync makes the target a folder by itself, cp and mv do not."""
    return os.path.basename(command.words[0].text) == "rsync"


def _landings(command: ExecFact, changed: _Changed, known: Mapping[Path, FileFact]) -> Iterator[FileFact]:
    seen = {*known, *(file.path for file in command.files)}
    for file in (*command.files, *known.values()):
        places = (*_other_places(command, file, changed), *_filled(file, changed))
        yield from (place for place in places if place.path not in seen)


def _other_places(command: ExecFact, file: FileFact, changed: _Changed) -> Iterator[FileFact]:
    """In the target where it is no folder now, in its place where it is one."""
    if file.landing is None:
        return
    source, target = file.landing
    names = names_of(target)
    if file.path != target:
        if changed.at_or_above(names):
            yield _at(file, target)
    elif _makes_folders(command) or names in changed.above:
        yield _at(file, target / source.name)


def _filled(file: FileFact, changed: _Changed) -> Iterator[FileFact]:
    """What the call itself puts beneath that which is copied or moved, and so arrives with it."""
    if file.landing is None:
        return
    for names in changed.beneath(names_of(file.landing[0])):
        yield _at(file, file.path.joinpath(*names))._replace(landing=None, recursive=False)


def _at(file: FileFact, path: Path) -> FileFact:
    recursive = file.landing is not None and os.path.isdir(file.landing[0])
    return file._replace(path=path, written=path, is_folder=os.path.isdir(path), recursive=recursive)


def _guarded(site: Site, file: FileFact, budget: DiskBudget) -> FileFact:
    root = site.workspace.root
    source = file.landing[0] if file.landing and file.recursive else None
    beneath = None if source is None else list(protected_beneath(source, budget.at(source, root)))
    return file._replace(guarded=guard_write(file.path, root, site.around, beneath=beneath, budget=budget))


def _with(command: ExecFact, more: Mapping[Path, FileFact]) -> ExecFact:
    free = tuple(file for file in more.values() if file.guarded == FREE)
    protected = tuple(file for file in more.values() if file.guarded != FREE)
    return command._replace(files=command.files + protected, perhaps=command.perhaps + free) if more else command
