"""Forbidden files under other names: hard links, which no path tells apart."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from ci_agent.policy.compiled.match import CompiledRule
from ci_agent.policy.compiled.rule_index import FileDenies
from ci_agent.policy.disk import DiskBudget, walk
from ci_agent.policy.matchers.reach import fold_names, names_of
from ci_agent.policy.shell.program import BoundExceededError

MAX_ENTRIES: Final = 20_000
"""Entries of the workspace among which forbidden files with several names are looked for. Package managers link their
files too, and whoever reads one of those shall not wait; no tool call makes a second name for a forbidden file."""

Inode: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class SecondNames:
    """The files of a workspace that rules forbid and that have several names, looked up when first asked for."""

    root: Path
    budget: DiskBudget | None = None
    """Of the decision that asks; None: it is asked for by itself."""
    _found: dict[int, dict[Inode, CompiledRule]] = field(default_factory=dict)

    def forbidding(self, denies: FileDenies, status: os.stat_result) -> CompiledRule | None:
        """The rule that forbids another name of a file with this status."""
        if not has_several_names(status):
            return None
        return self._looked_up(denies).get((status.st_dev, status.st_ino))

    def are_none(self, denies: FileDenies) -> bool:
        """No file that these rules forbid has several names."""
        return not self._looked_up(denies)

    def _looked_up(self, denies: FileDenies) -> dict[Inode, CompiledRule]:
        if id(denies) not in self._found:
            self._found[id(denies)] = dict(self._linked(denies))
        return self._found[id(denies)]

    def _linked(self, denies: FileDenies) -> Iterator[tuple[Inode, CompiledRule]]:
        whole = self.budget or DiskBudget()
        start, budget = fold_names(names_of(self.root)), whole.part(MAX_ENTRIES)
        try:
            for above, listing in walk(self.root, budget):
                folder = (*start, *fold_names(above))
                if denies.about_any(folder, listing.names) is None:
                    continue
                for entry, name in zip(listing.entries, listing.names, strict=True):
                    rule = denies.about_names((*folder, name))
                    if rule is not None and has_several_names(status := entry.stat(follow_symlinks=False)):
                        yield (status.st_dev, status.st_ino), rule
        except BoundExceededError:
            if whole.left() < 0:
                raise


def has_several_names(status: os.stat_result) -> bool:
    return status.st_nlink > 1 and stat.S_ISREG(status.st_mode)
