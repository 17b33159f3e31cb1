"""What the disk will not show before the call runs: links and names that the call makes and then uses itself."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ci_agent.policy.disk import DiskBudget, walk
from ci_agent.policy.facts import ExecFact, Fact, FileFact, UnknownFact, possible_files_of
from ci_agent.policy.gathering.followed_links import follows_links
from ci_agent.policy.matchers.open_names import OPEN
from ci_agent.policy.matchers.reach import Names, fold_names, names_of
from ci_agent.policy.words import Word

_LINKERS: Final = frozenset({"ln", "link"})
_MOVERS: Final = frozenset({"cp", "mv", "rsync", "install", "git mv"})
_MAKERS: Final = _LINKERS | _MOVERS
_UNPACKERS_HERE: Final = frozenset({"bsdtar", "cpio", "pax", "7z", "7za", "7zr", "7zz", "unar", "unrar", "unsquashfs"})
"""Nothing tells where they write."""
_UNPACKERS: Final = _UNPACKERS_HERE | {
    *("tar", "unzip", "rsync", "scp", "patch", "docker", "podman", "kubectl", "gh", "helm")
}
_CHECKS_OUT: Final = frozenset({"checkout", "co", "develop", "switch", "up", "update"})
_OTHERS_CHECK_OUT: Final = frozenset({"gh", "hub", "glab", "hg", "svn"})
"""They do with git, or with repositories of their own, what git does when it checks out a commit."""
_MAY_UNPACK: Final = _UNPACKERS | _OTHERS_CHECK_OUT
"""Git's commands may too."""
_GIT_UNPACKS: Final = frozenset(
    {"am", "apply", "bisect", "checkout", "checkout-index", "cherry-pick", "merge", "pull", "read-tree", "rebase"}
    | {"reset", "restore", "revert", "sparse-checkout", "stash", "submodule", "switch"}
)
"""Its commands that change files of the working tree, and so may put a link in the place of any."""
_GIT_ONLY_SHOWS: Final = frozenset({"stash list", "stash show", "submodule foreach", "submodule status"})
_ONLY_SHOWING: Final = frozenset({"--check", "--stat", "--numstat", "--summary", "--cached"})
_GIT_TAKES_VALUE: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"})
_ODD: Final = re.compile(r"""[^!-~]|['"\\*?\[\]]""")
_LINK_OPTION: Final = re.compile(r"-[A-Za-z]*[ls]|--(link|symbolic-link|links)")


def stale_paths(facts: Sequence[Fact], files: Sequence[FileFact], budget: DiskBudget) -> Iterator[UnknownFact]:
    """A doubt for each file that is reached through a link of the call's own, and for each glob that may find a name
    of its own that looks like an option. `files`: all that the facts may name."""
    named = [(base_name(fact), fact) for fact in facts if isinstance(fact, ExecFact)]
    made = [file.path for file in files if file.effect == "write"]
    makers = [fact for name, fact in named if name in _MAKERS] if made else []
    if makers:
        yield from _through_links(makers, facts, budget)
    unpackers = [(name, fact) for name, fact in named if name.startswith("git ") or name in _MAY_UNPACK]
    if unpackers:
        yield from _through_unpacked(unpackers, facts)
    if made:
        yield from _by_made_names([fact for _, fact in named], made)


def _by_made_names(commands: Sequence[ExecFact], made: Sequence[Path]) -> Iterator[UnknownFact]:
    """A doubt for each command that may be given a name which the call makes, and take it for something else."""
    has_dash = any(path.name.startswith("-") for path in made)
    odd = {beginning for path in made if (beginning := _odd_beginning(path))}
    yield from _listed_anew(commands, made)
    for command in commands if has_dash or odd else ():
        takes_names = _takes_names(command)
        if has_dash and (command.has_open_glob or takes_names):
            why = "a glob or a list may hold a name with a dash that is made here"
            yield UnknownFact(why, argument="command", span=command.span)
        elif takes_names and any(command.folder.parts[: len(each)] != each for each in odd):
            why = "a name with blanks or special characters that is made here may be among the names, and be cut"
            yield UnknownFact(why, argument="command", span=command.span)


def _listed_anew(commands: Sequence[ExecFact], made: Sequence[Path]) -> Iterator[UnknownFact]:
    """A doubt for what `ls` prints, when another command makes something: of a folder it would print what is in it."""
    for command in commands:
        listed = any(base.selection.listed for word in command.words for base in word.beneath)
        own = {file.path for file in command.files}
        if listed and any(path not in own for path in made):
            why = "what ls prints may be what is in a folder that is made here"
            yield UnknownFact(why, argument="command", span=command.span)


def _is_open(names: Names) -> bool:
    return OPEN in "/".join(names)


def _odd_beginning(path: Path) -> tuple[str, ...]:
    """The parts of a path up to the last that is odd; none when none is. Beneath there its names are plain."""
    odd = [at for at, part in enumerate(path.parts, start=1) if _ODD.search(part.replace(OPEN, ""))]
    return path.parts[: odd[-1]] if odd else ()


def _through_links(makers: Sequence[ExecFact], facts: Sequence[Fact], budget: DiskBudget) -> Iterator[UnknownFact]:
    made: dict[Names, dict[int, ExecFact]] = {}
    for maker in makers:
        for file in maker.files:
            if file.effect == "write":
                made.setdefault(fold_names(names_of(file.written)), {})[id(maker)] = maker
    sizes = sorted({len(names) for names in made})
    unsure = [makers for names, makers in made.items() if _is_open(names)]
    links: dict[int, bool] = {}
    yield from _found_links(made, links, budget)
    for fact in facts:
        for file in possible_files_of(fact):
            names = fold_names(names_of(file.written))
            above = [made[names[:size]] for size in sizes if names[:size] in made]
            above += made.values() if file.is_open else unsure
            if _takes_names(fact):
                above += [maker for each, maker in made.items() if each[: len(names)] == names]
            if any(_makes_links(maker, links, budget) for each in above for maker in _without(each, fact)):
                why = f"{file.shown_as_written} may be made a link in the same call; use it in a call of its own"
                yield UnknownFact(why, argument=file.argument, span=file.span)


def _found_links(
    made: Mapping[Names, Mapping[int, ExecFact]], links: dict[int, bool], budget: DiskBudget
) -> Iterator[UnknownFact]:
    """A doubt for a link that is made where a glob, or another command, finds names."""
    places = [fold_names(names_of(Path(os.path.normpath(folder)))) for folder in budget.found_in]
    for names, makers in made.items():
        for maker in makers.values():
            here = _is_open(names) or any(names[: len(place)] == place for place in places)
            if here and _makes_links(maker, links, budget):
                why = "a link that is made here may be among the names that a glob or another command finds"
                yield UnknownFact(why, argument="command", span=maker.span)
                return


def _takes_names(fact: Fact) -> bool:
    """Whether it is given names of files that are found while the call runs."""
    return isinstance(fact, ExecFact) and any(word.beneath for word in fact.words)


def _without(makers: Mapping[int, ExecFact], fact: Fact) -> Iterator[ExecFact]:
    return (maker for maker in makers.values() if maker is not fact)


def _makes_links(maker: ExecFact, known: dict[int, bool], budget: DiskBudget) -> bool:
    if id(maker) not in known:
        known[id(maker)] = _may_make_links(maker, budget)
    return known[id(maker)]


def _may_make_links(command: ExecFact, budget: DiskBudget) -> bool:
    """`ln` does; copies and moves do when they are told so, or when there is a link in what they take."""
    if base_name(command) in _LINKERS or any(_LINK_OPTION.match(word.text) for word in command.words[1:]):
        return True
    sources = [file.written for file in command.files if file.effect != "write"]
    return any(
        os.path.islink(source) or any(listing.links for _, listing in walk(source, budget)) for source in sources
    )


def _through_unpacked(named: Sequence[tuple[str, ExecFact]], facts: Sequence[Fact]) -> Iterator[UnknownFact]:
    """A doubt for each file beneath a folder into which nobody knows what is put."""
    everywhere = any(changes_working_tree(name, command) for name, command in named)
    makers: dict[Names, set[int]] = {}
    for name, command in named:
        for folder in unpacked_into(name, command):
            makers.setdefault(fold_names(names_of(folder)), set()).add(id(command))
    unsure = any(map(_is_open, makers))
    for fact in facts if everywhere or makers else ():
        # Git itself follows no link of a working tree.
        if isinstance(fact, ExecFact) and _is_git(fact):
            continue
        for file in possible_files_of(fact):
            if (everywhere and _may_move(file, fact)) or _is_beneath(file, fact, makers, unsure):
                why = f"{file.shown_as_written} may become a link in the same call; use it in a call of its own"
                yield UnknownFact(why, argument=file.argument, span=file.span)


def unpacked_into(name: str, maker: ExecFact) -> list[Path]:
    clones = name in ("git clone", "git worktree") or (name == "gh" and any(w.text == "clone" for w in maker.words))
    if name not in _UNPACKERS and not clones:
        return []
    written = [file for file in maker.files if file.effect == "write"]
    # A new archive, or a patched file that is named, is no folder.
    made = [file.written for file in written if file.recursive or file.is_folder or _is_git(maker) or clones]
    return made or ([maker.folder] if name in _UNPACKERS_HERE else [])


def _is_beneath(file: FileFact, reader: Fact, makers: Mapping[Names, set[int]], unsure: bool) -> bool:
    """Whether another command unpacks into a folder above the file, or into the one that is read with its links.

    `unsure`: what such a folder is called is not certain.
    """
    if unsure or file.is_open:
        return any(each - {id(reader)} for each in makers.values())
    names = fold_names(names_of(file.written))
    follows = file.recursive and file.effect == "read" and _follows(reader)
    above = [names[:size] for size in range(len(names) + follows)]
    return any(makers.get(each, set()) - {id(reader)} for each in above)


def _may_move(file: FileFact, reader: Fact) -> bool:
    """A whole folder that a program starts in stays where it is, and the links in it are followed by few."""
    if file.effect == "list":
        return False
    is_start = isinstance(reader, ExecFact) and file.written == reader.folder
    return file not in _perhaps(reader) and not (is_start and not _follows(reader))


def _follows(reader: Fact) -> bool:
    return not isinstance(reader, ExecFact) or follows_links(reader.words)


def _is_git(command: ExecFact) -> bool:
    return base_name(command).partition(" ")[0] == "git"


def changes_working_tree(name: str, command: ExecFact) -> bool:
    if checks_out_by_another_name(name, command):
        return True
    name, _, subcommand = name.partition(" ")
    if name != "git" or subcommand not in _GIT_UNPACKS:
        return False
    texts = [word.text for word in command.words[1:]]
    if subcommand == "reset":
        return any(text.startswith("--") and len(text) > 2 for text in texts)
    behind = texts[texts.index(subcommand) + 1 :]
    if subcommand in ("checkout", "switch") and _makes_branch(behind, command.words[-1]):
        return False
    options = behind[: behind.index("--")] if "--" in behind else behind
    return f"{subcommand} {behind[0] if behind else ''}" not in _GIT_ONLY_SHOWS and _ONLY_SHOWING.isdisjoint(options)


def _makes_branch(behind: Sequence[str], name: Word) -> bool:
    """Whether it makes a branch where one stands, which changes no file: nothing may follow the name."""
    is_one = not (name.splits or name.beneath)
    return is_one and len(behind) == 2 and re.fullmatch("-[bBcC]", behind[0]) is not None


def checks_out_by_another_name(name: str, command: ExecFact) -> bool:
    """`gh pr checkout 1`, `hub checkout x`, `svn up`."""
    return name in _OTHERS_CHECK_OUT and not _CHECKS_OUT.isdisjoint(word.text for word in command.words[1:4])


def base_name(command: ExecFact) -> str:
    """With the subcommand, for git."""
    name = command.words[0].text.rpartition("/")[2]
    return f"git {_git_subcommand(command)}" if name == "git" else name


def _git_subcommand(command: ExecFact) -> str:
    takes_value = False
    for word in command.words[1:]:
        if not takes_value and not word.text.startswith("-"):
            return word.text
        takes_value = word.text in _GIT_TAKES_VALUE
    return ""


def _perhaps(fact: Fact) -> tuple[FileFact, ...]:
    return fact.perhaps if isinstance(fact, ExecFact) else ()
