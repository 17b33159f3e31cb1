"""Whether a deny rule forbids a fact, or a part of it."""

import os
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from ci_agent.policy.compiled.coverage import may_mean
from ci_agent.policy.compiled.given_words import GivenWords
from ci_agent.policy.compiled.match import CompiledRule
from ci_agent.policy.compiled.net import forbids_request
from ci_agent.policy.compiled.reaching import forbids_path
from ci_agent.policy.compiled.rule_index import SHARED_DENIES, FileDenies, RuleIndex, in_order, strictest_first
from ci_agent.policy.disk import DiskBudget, Entry, Listing, walk
from ci_agent.policy.effects import FileEffect
from ci_agent.policy.facts import ExecFact, Fact, FileFact, NetFact, ToolFact, UnknownFact
from ci_agent.policy.gathering.indexed_files import indexed_beneath, is_picked, picking_cost
from ci_agent.policy.gathering.repositories import is_unchanged, top_of, tracked_names
from ci_agent.policy.gathering.second_names import SecondNames
from ci_agent.policy.gathering.sent_files import only_sent, sent_beneath
from ci_agent.policy.gathering.stored_content import STEERING
from ci_agent.policy.gathering.tool_facts import FILE_TOOLS
from ci_agent.policy.gathering.unhidden_files import unhidden_beneath
from ci_agent.policy.gathering.untracked_files import untracked_beneath
from ci_agent.policy.judging.judge_arguments import CallArguments, arguments_may_match, named_files
from ci_agent.policy.matchers.reach import Names, fold, fold_all, fold_names, names_of
from ci_agent.policy.words import EVERYTHING
from ci_agent.workspace import lies_in

_Found: TypeAlias = tuple[CompiledRule, Path, bool]
"""The rule that forbids a file, the file, and whether it is a folder."""

_MANY: Final = 200
"""Of so many entries each is asked for its other names; for more it is first found out whether there are any."""

_WALK: Final = 40
_STATUS: Final = 2
_CONTENT: Final = 200
_LINK: Final = 20
"""To begin at a folder, to ask for a file's status, or to follow a link, takes as long as to see so many more entries
of a folder."""


class Forbidden(NamedTuple):
    rule: CompiledRule
    about: ExecFact | ToolFact | FileFact | NetFact
    among: FileFact | None = None
    """What was asked for, where the file that is forbidden is only one of those that it means."""


@dataclass(frozen=True, slots=True)
class Denials:
    """What one call is held against."""

    index: RuleIndex
    arguments: CallArguments
    budget: DiskBudget
    second_names: SecondNames
    answers: dict[Hashable, _Found | None] = field(default_factory=dict)
    """What has been found beneath folders, for each question that was asked."""
    about_files: dict[FileEffect, list[FileDenies]] = field(default_factory=dict)
    """The rules about files, by what is done to them."""

    @property
    def tool(self) -> str:
        return self.arguments.tool

    @property
    def root(self) -> Path:
        return self.arguments.site.workspace.root

    def of(self, fact: Fact) -> list[Forbidden]:
        """Every deny rule that forbids the fact, in order of its parts."""
        if isinstance(fact, UnknownFact):
            return []
        # One without any matcher forbids the call, whatever it would do.
        forbidden = [Forbidden(rule, fact) for rule in self.index.for_tool(self.arguments.tool).denies.everywhere]
        if isinstance(fact, ExecFact):
            forbidden += self._of_command(fact)
        elif isinstance(fact, ToolFact):
            forbidden += self._of_tool(fact)
        else:
            forbidden += self._of_file(fact)
        return forbidden

    def of_path(self, fact: FileFact) -> CompiledRule | None:
        """The first rule that forbids the file itself, whatever lies beneath it."""
        found = (denies.about(fact) or self._by_second_name(denies, fact) for denies in self._file_denies(fact))
        return next((rule for rule in found if rule is not None), None)

    def _by_second_name(self, denies: FileDenies, fact: FileFact) -> CompiledRule | None:
        """The rule that forbids another name of the very file."""
        if fact.effect not in ("read", "write") or fact.is_folder:
            return None
        try:
            return self.second_names.forbidding(denies, os.lstat(fact.path))
        except OSError:
            return None

    def _of_command(self, command: ExecFact) -> Iterator[Forbidden]:
        given = GivenWords(command.words)
        for rule in self._about_commands(command, given):
            if _is_about_command(rule, command, given) and arguments_may_match(rule, self.arguments):
                yield Forbidden(rule, command)
        for file in command.files + command.perhaps:
            yield from self._of_file(file)
        for request in command.requests:
            yield from self._of_request(request, "fetch")

    def _about_commands(self, command: ExecFact, given: GivenWords) -> list[CompiledRule]:
        rules = self.index.for_tool("bash")
        found = rules.denied_words.candidates(command.words, given)
        if not found:
            return rules.denied_programs.candidates(command)
        return in_order([*rules.denied_programs.near(command), *found])

    def _of_tool(self, fact: ToolFact) -> Iterator[Forbidden]:
        for rule in self._rules_for(fact):
            if _is_about_tool(rule, fact) and arguments_may_match(rule, self.arguments):
                yield Forbidden(rule, fact)
        files = fact.files if fact.name in FILE_TOOLS else tuple(self._named_files(fact))
        for file in files:
            yield from self._of_file(file)

    def _rules_for(self, fact: ToolFact) -> list[CompiledRule]:
        """Rules about the call. Those about files alone bind its files, whatever tool they come by."""
        rules = self.index.for_tool(fact.name)
        if fact.name in FILE_TOOLS:
            return rules.deny_by_arguments
        return rules.denied_hosts.candidates(fact.requests[0].url) if fact.requests else rules.deny

    def _named_files(self, fact: ToolFact) -> Iterator[FileFact]:
        for rule in self.index.for_tool(fact.name).testing_paths:
            yield from named_files(rule, self.arguments)

    def _of_request(self, request: NetFact, tool: str) -> Iterator[Forbidden]:
        for rule in self.index.for_tool(tool).denied_hosts.candidates(request.url):
            if not rule.args and forbids_request(rule.net, request):
                yield Forbidden(rule, request)

    def _of_file(self, fact: FileFact) -> Iterator[Forbidden]:
        if fact.is_open:
            yield from self._of_open(fact)
            return
        for denies in self._file_denies(fact):
            rule = denies.about(fact) or self._by_second_name(denies, fact)
            if rule is not None:
                yield Forbidden(rule, fact)
            elif (fact.tracked or fact.recursive) and not self._spares(denies, fact):
                yield from self._among(denies, fact)
            if rule is None and fact.landing is not None:
                yield from self._brought(denies, fact, fact.landing[0])

    def _of_open(self, fact: FileFact) -> Iterator[Forbidden]:
        """Nothing is there yet; a folder that is copied there brings what it holds."""
        paths = list(fact.denied_names)
        if fact.landing is not None:
            source = fact.landing[0]
            for above, listing in walk(source, self.budget.at(source, self.root)):
                paths += [(*fold_names(fact.names), *fold_names(above), name) for name in listing.names]
        found = (denies.about_open(paths, self.budget.spend_entries) for denies in self._file_denies(fact))
        yield from (Forbidden(rule, fact) for rule in found if rule is not None)

    @staticmethod
    def _spares(denies: FileDenies, fact: FileFact) -> bool:
        """No rule is about anything beneath a folder that is deleted, where links are taken as they are."""
        return fact.effect == "delete" and not denies.may_reach_into(fact.denied_names)

    def _brought(self, denies: FileDenies, fact: FileFact, source: Path) -> Iterator[Forbidden]:
        """The first file that a rule forbids, of those that a folder brings to where it is copied or moved."""
        target = fold_names(fact.names)
        for above, listing in walk(source, self.budget.at(source, self.root)):
            start = (*target, *fold_names(above))
            rule = denies.about_any(start, listing.names)
            if rule is not None:
                names = zip(listing.entries, listing.names, strict=True)
                last = next((entry.name for entry, name in names if denies.about_names((*start, name)) is rule), "")
                path = fact.path.joinpath(*above, last)
                yield Forbidden(rule, fact._replace(path=path, written=path, recursive=False))
                return

    def _among(self, denies: FileDenies, fact: FileFact) -> Iterator[Forbidden]:
        """The first file that a rule forbids, of those that a repository tracks, or of all beneath a folder."""
        question = (denies.plain, fact.path, fact.written, fact.effect, fact.selection, fact.tracked, fact.touched)
        if question not in self.answers:
            top = top_of(fact.path) if fact.tracked else None
            tracked = None if top is None else tracked_names(top)
            found = self._beneath(denies, fact) if tracked is None else self._of_tracked(denies, fact, tracked)
            if top is not None and tracked is not None and self._may_have_other_names(denies, fact, top, tracked):
                found = chain(found, self._beneath(denies, fact))
            self.answers[question] = next(found, None)
        answer = self.answers[question]
        if answer is not None:
            rule, path, is_folder = answer
            about = fact._replace(path=path, written=path, is_folder=is_folder, recursive=False, tracked=False)
            yield Forbidden(rule, about, among=fact)

    def _of_tracked(self, denies: FileDenies, fact: FileFact, names: tuple[str, ...]) -> Iterator[_Found]:
        self.budget.spend_entries(len(names))
        top = top_of(fact.path) or fact.path
        within = "" if fact.path == top else f"{fact.path.relative_to(top)}/"
        folders: dict[str, list[str]] = {}
        for name in names:
            if f"{name}/".startswith(within):
                folder, _, last = name.rpartition("/")
                folders.setdefault(folder, []).append(last)
        for folder, lasts in folders.items():
            path = top / folder
            above = fold_names(names_of(path))
            if denies.about_any(above, fold_all(lasts)) is not None:
                for last in lasts:
                    rule = denies.about_names((*above, fold(last)))
                    if rule is not None and self._is_meant(fact, top, path / last):
                        yield rule, path / last, False

    def _may_have_other_names(self, denies: FileDenies, fact: FileFact, top: Path, names: tuple[str, ...]) -> bool:
        """Of what git reads by its index, a file may be another name of a forbidden one."""
        if not (fact.selection.stored and fact.selection.indexed):
            return fact.selection.stored
        within = "" if fact.path == top else f"{fact.path.relative_to(top)}/"
        few = len([name for name in names if name.startswith(within)]) <= _MANY
        return few or not self.second_names.are_none(denies)

    def _is_meant(self, fact: FileFact, top: Path, path: Path) -> bool:
        """Whether a tracked file is among those that are selected, and differs where only that matters."""
        self.budget.spend_entries(picking_cost(fact.selection))
        return is_picked(top, str(path.relative_to(top)), fact.selection) and not self._is_as_it_was(fact, path)

    def _is_as_it_was(self, fact: FileFact, path: Path) -> bool:
        """Nothing is printed of a file that is as the index has it, and that the call leaves alone."""
        if fact.touched is None or any(lies_in(path, each) for each in fact.touched):
            return False
        self.budget.spend_entries(_CONTENT)
        top, around = top_of(fact.path) or fact.path, self.arguments.site.around
        told = any(".git" in each.parts or fold(each.name) == ".gitattributes" for each in fact.touched)
        home = None if told or not STEERING.isdisjoint(around.exported) else around.home
        return is_unchanged(top, str(path.relative_to(top)), home)

    def _file_denies(self, fact: FileFact) -> list[FileDenies]:
        found = self.about_files.get(fact.effect)
        if found is None:
            own = () if self.tool == "bash" else (self.tool,)
            names = dict.fromkeys((*SHARED_DENIES[fact.effect], *own))
            found = [denies for name in names if (denies := self.index.for_tool(name).denies)]
            self.about_files[fact.effect] = found
        return found

    def _beneath(self, denies: FileDenies, fact: FileFact) -> Iterator[_Found]:
        """Also where a link there leads, and by other names of files."""
        self.budget.spend_entries(_WALK)
        root = self.root
        # Where the whole workspace is meant, each other name of what is in it comes by itself.
        by_inode = fact.effect in ("read", "write") and not (fact.selection == EVERYTHING and fact.path == root)
        looked_at = 0
        denied_names = fact.denied_names
        for above, listing in self._listings(fact):
            starts = [(*start, *fold_names(above)) for start in denied_names]
            looked_at += len(listing.entries)
            if by_inode and looked_at > _MANY:
                by_inode = not self.second_names.are_none(denies)
            follows = not (fact.selection.stored and fact.selection.indexed)
            rules = self._forbidding(denies, starts, listing, by_inode, follows=follows)
            if rules and fact.selection.sent is not None:
                listing = only_sent(fact.path, above, listing, fact.selection, self.budget)  # noqa: PLW2901 - what counts
                rules = self._forbidding(denies, starts, listing, by_inode, follows=follows)
            if rules:
                yield self._meant(denies, min(rules, key=strictest_first), starts, listing, by_inode)
                return

    def _forbidding(
        self, denies: FileDenies, starts: Sequence[Names], listing: Listing, by_inode: bool, *, follows: bool
    ) -> list[CompiledRule]:
        """The rules that forbid an entry of a folder, by its name or by another."""
        found = [denies.about_any(start, listing.names) for start in starts]
        found += [self._by_link(denies, entry) for entry in listing.links if follows]
        if by_inode:
            self.budget.spend_entries(_STATUS * len(listing.entries))
            found += [self._by_inode(denies, entry) for entry in listing.entries]
        return [rule for rule in found if rule is not None]

    def _listings(self, fact: FileFact) -> Iterable[tuple[Names, Listing]]:
        indexed = indexed_beneath(fact.path, fact.selection, self.budget)
        sent = sent_beneath(fact.path, fact.selection, self.budget) if indexed is None else None
        if indexed is not None or sent is not None:
            return indexed or sent or ()
        untracked = untracked_beneath(fact.path, fact.selection, self.budget)
        if untracked is not None:
            return untracked
        home = self.arguments.site.around.home
        unhidden = unhidden_beneath(fact.path, fact.selection, self.budget, home)
        return walk(fact.path, self.budget.at(fact.path, self.root), fact.selection) if unhidden is None else unhidden

    def _by_link(self, denies: FileDenies, entry: Entry) -> CompiledRule | None:
        """The rule that forbids where a link leads."""
        self.budget.spend_entries(_LINK)
        return denies.about_names(fold_names(names_of(Path(self.budget.target_of(entry)))))

    def _by_inode(self, denies: FileDenies, entry: Entry) -> CompiledRule | None:
        """The rule that forbids another name of a file."""
        status = _status(entry)
        return None if status is None else self.second_names.forbidding(denies, status)

    def _meant(
        self, denies: FileDenies, rule: CompiledRule, starts: Sequence[Names], listing: Listing, by_inode: bool
    ) -> _Found:
        """The first of a folder's entries that the rule forbids."""
        for entry, name in zip(listing.entries, listing.names, strict=True):
            if (
                any(denies.about_names((*start, name)) is rule for start in starts)
                or (entry.is_symlink() and self._by_link(denies, entry) is rule)
                or (by_inode and self._by_inode(denies, entry) is rule)
            ):
                return rule, Path(entry.path), entry.is_dir(follow_symlinks=False)
        return rule, Path(listing.entries[0].path).parent, True


def _status(entry: Entry) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _is_about_command(rule: CompiledRule, command: ExecFact, given: GivenWords) -> bool:
    patterns = rule.commands
    return (
        (rule.has is None or any(map(given.has, rule.has)))
        and (patterns is None or any(may_mean(each, command.words, command.looked_through) for each in patterns))
        and (rule.env is None or any(name.matches(each) for name in rule.env for each in command.assignments))
        and (
            rule.reach is None
            or any(forbids_path(rule.reach, file, file.denied_names) for file in (*command.files, *command.perhaps))
        )
        and (not rule.net.is_written or any(forbids_request(rule.net, each) for each in command.requests))
    )


def _is_about_tool(rule: CompiledRule, fact: ToolFact) -> bool:
    if rule.commands is not None and rule.reach is None:
        return False
    files_fit = rule.reach is None or any(forbids_path(rule.reach, file, file.denied_names) for file in fact.files)
    requests_fit = not rule.net.is_written or any(forbids_request(rule.net, each) for each in fact.requests)
    return files_fit and requests_fit
