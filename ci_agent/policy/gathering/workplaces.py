"""Where programs work that are told so; launchers for many packages start a command wherever one lies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ci_agent.policy.disk import walk
from ci_agent.policy.effects import Effects
from ci_agent.policy.facts import ExecFact, Fact, FileFact, UnknownFact, files_in
from ci_agent.policy.gathering.file_facts import Place, possible_texts
from ci_agent.policy.gathering.reading import Reading, Scene
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.gathering.stale_paths import base_name, changes_working_tree, unpacked_into
from ci_agent.policy.matchers.reach import fold
from ci_agent.policy.words import Selection, Word
from ci_agent.workspace import InvalidPathError

MAX_FOLDERS: Final = 60
"""How many packages are looked at one by one."""

_PACKAGE: Final = frozenset({"package.json", "project.json", ".git"})
"""What a package holds, or a submodule."""

_PASSED_BY: Final = Selection(without=(".git", "node_modules"))


def resolve_folder(site: Site, folder: Word, place: Place) -> Path | None:
    """Where a program works that is told so; None when it is not known."""
    texts = possible_texts(folder, place)
    if texts is None or len(texts) != 1 or place.folder is None:
        return None
    place.budget.spend_path(texts[0])
    try:
        return site.workspace.resolve(texts[0], start=place.folder)
    except InvalidPathError:
        return None


def other_folders(reading: Reading, effects: Effects, scene: Scene) -> list[Path] | UnknownFact:
    """The folders, besides the present one, in which a command may be started."""
    found: list[Path] = []
    for word in effects.elsewhere:
        if word is None:
            found += _packages(reading)
            continue
        folder = resolve_folder(reading.site, word, scene.place(reading, word.span))
        if folder is None:
            return scene.unknown(f"the folder {word.text} is not known", word.span)
        found.append(folder)
    if len(found) > MAX_FOLDERS:
        return UnknownFact(f"it would run in more than {MAX_FOLDERS} folders: name the packages", argument="command")
    return [folder for folder in dict.fromkeys(found) if folder != scene.folder]


def _packages(reading: Reading) -> list[Path]:
    if reading.packages is None:
        root = reading.site.workspace.root
        reading.packages = [
            root.joinpath(*above)
            for above, listing in walk(root, reading.budget, _PASSED_BY)
            if not _PACKAGE.isdisjoint(listing.names)
        ]
    return reading.packages


def stale_packages(reading: Reading, facts: Sequence[Fact]) -> list[UnknownFact]:
    """A doubt, where the call itself may make a package of a folder and then start something in it."""
    if reading.packages is None:
        return []
    commands = [(base_name(fact), fact) for fact in facts if isinstance(fact, ExecFact)]
    makes = any(map(_may_be_package, files_in(facts)))
    if makes or any(unpacked_into(*each) or changes_working_tree(*each) for each in commands):
        why = "the call may bring packages, and starts a command in each of them: make two calls of it"
        return [UnknownFact(why, argument="command")]
    return []


def _may_be_package(file: FileFact) -> bool:
    names = (fold(file.path.name), fold(file.written.name))
    return file.effect == "write" and (file.recursive or file.is_open or not _PACKAGE.isdisjoint(names))
