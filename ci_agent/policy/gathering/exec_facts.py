"""One command becomes a fact: its words as they are now, the files and hosts that its profile knows, its doubts."""

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from ci_agent.policy.effects import Effects, FileUse, UrlUse
from ci_agent.policy.facts import ExecFact, FileFact, NetFact, Span, Spellings, UnknownFact
from ci_agent.policy.gathering.absent_places import as_program
from ci_agent.policy.gathering.file_facts import Place, file_fact, possible_texts, use_facts
from ci_agent.policy.gathering.followed_links import follows_links, links_among, links_out, unpacks
from ci_agent.policy.gathering.found_names import certain, may_be_option
from ci_agent.policy.gathering.indexed_files import indexed_beneath
from ci_agent.policy.gathering.of_repositories import unnamed_files
from ci_agent.policy.gathering.pathspec_reads import with_stored
from ci_agent.policy.gathering.possible_files import possible_files
from ci_agent.policy.gathering.reading import Reading, Scene
from ci_agent.policy.gathering.sent_files import with_build_files
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.gathering.workplaces import other_folders, resolve_folder
from ci_agent.policy.programs.draft import looks_outside
from ci_agent.policy.protected import UNKNOWN_NAMES
from ci_agent.policy.words import Word, literal_word
from ci_agent.urls import InvalidUrlError, parse_url
from ci_agent.workspace import InvalidPathError

_OPEN = ("*", "?", "[", "-")
"""A glob that begins so may become a name that begins with a dash."""

_LINK: Final = 5
"""Entries of folders that a link which is asked for again counts as."""

_MADE_ANEW = re.compile(r"[\s*?\[\\]")
"""What an unquoted variable does not bring through: it is split, and matched against names again."""


class Run(NamedTuple):
    """One run of a program, as far as it is known."""

    command: ExecFact
    effects: Effects
    unknown: tuple[UnknownFact, ...]


def read_run(
    reading: Reading, words: tuple[Word, ...], scene: Scene, span: Span, inputs: tuple[FileFact, ...] = ()
) -> Run | UnknownFact:
    """The facts of one command; UnknownFact when not even the program, or its folder, is known.

    `inputs`: files that its redirections read.
    """
    place = scene.place(reading, span)
    kinds = {word.kind for word in words}
    has_open_glob = "glob" in kinds and any(word.kind == "glob" and word.text.startswith(_OPEN) for word in words)
    if "glob" in kinds or "choice" in kinds:
        words = _expanded(words, place)
    if scene.folder is None:
        return place.unknown(f"in which folder {words[0].text} runs is not known")
    if words[0].choices:
        words = (as_program(words[0], place.budget), *words[1:])
    if words[0].kind != "literal":
        return place.unknown(f"which program {words[0].text} means is not known")
    words, problem = certain(words, place, scene.origin) if "unknown" in kinds else (words, None)
    effects = reading.site.interpret(words, input_names=scene.input_names)
    if problem is not None and effects.problem is not None:
        effects = effects._replace(problem=problem)
    found, perhaps = _found(reading, words, effects, place, scene)
    files, requests, unknown = _by_kind(found)
    command = ExecFact(
        words=words,
        assignments=scene.inherited,
        folder=scene.folder,
        files=files + inputs,
        requests=requests,
        hazards=effects.hazards,
        looked_through=frozenset(effects.looked_through),
        needs_rule=not (effects.transparent and effects.commands)
        or bool(files or effects.urls or effects.hazards or effects.scripts),
        perhaps=tuple(perhaps),
        has_open_glob=has_open_glob,
        origin=scene.origin,
        span=place.span,
        located=_program_seen_from_root(reading.site, words[0].text, scene.folder) if "/" in words[0].text else None,
        relocated=_relocated(reading.site, words, effects, place) if effects.code else (),
    )
    return Run(command, effects, unknown)


def _found(
    reading: Reading, words: tuple[Word, ...], effects: Effects, place: Place, scene: Scene
) -> tuple[list[FileFact | NetFact | UnknownFact], list[FileFact]]:
    """What the command uses for certain, or nobody can know; and the files that it may use besides."""
    found: list[FileFact | NetFact | UnknownFact] = []
    if effects.problem is not None or effects.may_be_options:
        found += _doubts(words, effects, place)
    if effects.files or effects.folder is not None:
        found += _files(reading.site, words, effects, place, scene)
    if effects.urls or effects.tried > 1:
        reading.spend_run(effects.urls, tried=effects.tried)
    perhaps: list[FileFact] = []
    workplace = _workplace(reading.site, effects, place)
    for fact in _possible(reading, effects, scene, workplace) if effects.anything else ():
        if isinstance(fact, FileFact) and fact.effect == "read" and reading.site.workspace.contains(fact.path):
            perhaps.append(fact)
        else:
            found.append(fact)
    if effects.files:
        perhaps += _revisions(reading.site, effects, workplace)
    if effects.tracked or effects.untracked:
        perhaps += unnamed_files(reading.site, words, effects, workplace, plainly=not scene.inherited)
    if effects.urls:
        found += [_request(use, scene) for use in effects.urls]
    return found, perhaps


def _by_kind(
    facts: Sequence[FileFact | NetFact | UnknownFact],
) -> tuple[tuple[FileFact, ...], tuple[NetFact, ...], tuple[UnknownFact, ...]]:
    if not facts:
        return (), (), ()
    files, requests, unknown = [], [], []
    for fact in facts:
        if isinstance(fact, FileFact):
            files.append(fact)
        elif isinstance(fact, NetFact):
            requests.append(fact)
        else:
            unknown.append(fact)
    return tuple(files), tuple(requests), tuple(unknown)


def _possible(reading: Reading, effects: Effects, scene: Scene, workplace: Place) -> Iterator[FileFact | UnknownFact]:
    writes = bool(effects.code) or not effects.known
    yield from possible_files(reading.site, effects.anything, workplace, whole=not effects.known, writes=writes)
    if effects.elsewhere:
        folders = other_folders(reading, effects, scene)
        if isinstance(folders, UnknownFact):
            yield folders
            return
        for folder in folders:
            yield from possible_files(reading.site, effects.anything, workplace._replace(folder=folder))


def _program_seen_from_root(site: Site, program: str, folder: Path) -> Spellings | None:
    """How a rule may spell a program's path; None: as it was written."""
    # Without a slash it would be a program of the search path.
    seen = _seen_from_root(site, program, folder)
    return None if seen is None else tuple(spelling for spelling in seen if "/" in spelling)


def _seen_from_root(site: Site, text: str, folder: Path) -> Spellings | None:
    """How a rule may spell a path. As it was written, when it starts in the workspace and does not climb."""
    climbs = ".." in text.split("/")
    if not climbs and (text.startswith("/") or folder == site.workspace.root):
        return None
    above, _, name = text.rpartition("/")
    if name in ("", ".", ".."):
        return ()
    try:
        path = site.workspace.resolve(above or ("/" if text.startswith("/") else "."), start=folder) / name
    except InvalidPathError:
        return ()
    if not site.workspace.contains(path):
        return (str(path),)
    inside = str(path.relative_to(site.workspace.root))
    return (str(path), f"./{inside}", inside)


def _relocated(
    site: Site, words: tuple[Word, ...], effects: Effects, place: Place
) -> tuple[tuple[int, tuple[Spellings, ...]], ...]:
    """For each word that names code to run, the forms of its values, where they are others than it was written in."""
    folder = _workplace(site, effects, place).folder
    # With a folder of its own (`make -C`), the command says from the workspace on what it means.
    says_folder = effects.folder is not None and place.folder == site.workspace.root
    if folder is None or says_folder:
        return ()
    found: list[tuple[int, tuple[Spellings, ...]]] = []
    for at, begins in effects.code:
        texts = [each.text for each in words[at].choices or (words[at],) if each.literal is not None]
        seen = [_word_seen_from_root(site, text, begins, folder) for text in texts]
        if any(each is not None for each in seen):
            found.append((at, tuple((text,) if each is None else each for text, each in zip(texts, seen, strict=True))))
    return tuple(found)


def _word_seen_from_root(site: Site, text: str, begins: int, folder: Path) -> Spellings | None:
    if text[begins:] in ("", "-"):
        return None
    seen = _seen_from_root(site, text[begins:], folder)
    return None if seen is None else tuple(text[:begins] + path for path in seen)


def _expanded(words: tuple[Word, ...], place: Place) -> tuple[Word, ...]:
    """The words with each glob replaced by the names that it becomes here and now."""
    return tuple(made for word in words for made in _now(word, place))


def _now(word: Word, place: Place) -> list[Word]:
    if word.kind not in ("glob", "choice"):
        return [word]
    if not word.splits and word.choices and all(choice.literal is not None for choice in word.choices):
        return [word]
    texts = possible_texts(word, place)
    if texts is None or (word.splits and any(_MADE_ANEW.search(text) or not text for text in texts)):
        return [Word("unknown", word.text, word.span, splits=word.splits or word.kind == "glob")]
    names = [literal_word(text, word.span) for text in texts]
    return names if word.kind == "glob" else [Word("choice", word.text, word.span, tuple(names))]


def _workplace(site: Site, effects: Effects, place: Place) -> Place:
    return place if effects.folder is None else place._replace(folder=resolve_folder(site, effects.folder, place))


def _files(
    site: Site, words: tuple[Word, ...], effects: Effects, place: Place, scene: Scene
) -> Iterator[FileFact | UnknownFact]:
    if effects.folder is not None:
        yield from use_facts(site, FileUse("list", effects.folder), place)
        if effects.folder.stand_ins:
            yield place.unknown(f"the folder {effects.folder.text} is not known")
    place = _workplace(site, effects, place)
    found_in = [base for word in words for base in word.beneath]
    follows = any(use.recursive for use in effects.files) and follows_links(words)
    for each in effects.files:
        if each.if_there and _is_nowhere(each.path, place):
            continue
        at = place.at(scene.span(each.path.span))
        found = each.path in found_in
        use = each
        if each.selection.stored:
            use = with_stored(site, each, words, place, plainly=not scene.inherited)
        elif each.selection.sent is not None:
            use = with_build_files(each, each.selection.sent, place)
        for known in use_facts(site, use, at):
            fact = known
            if use.selection.stored and isinstance(known, FileFact):
                fact = known._replace(tracked=True)
            yield fact
            unpacked = use.recursive and use.effect == "write" and unpacks(words)
            if isinstance(fact, FileFact) and (found or follows or unpacked) and fact.selection.sent is None:
                yield from linked(site, fact, at, found, unpacked=unpacked)


def _revisions(site: Site, effects: Effects, place: Place) -> Iterator[FileFact]:
    """What would be files if something had their names."""
    for use in effects.files:
        if use.if_there and _is_nowhere(use.path, place):
            yield from (fact for fact in use_facts(site, use, place) if isinstance(fact, FileFact))


def _is_nowhere(path: Word, place: Place) -> bool:
    """Nothing here has the name now; what the call itself makes, git does not track."""
    known = path.literal is not None and place.folder is not None and path.text.isprintable()
    return known and not looks_outside(path.text) and not os.path.lexists(os.path.join(place.folder or "", path.text))


def linked(
    site: Site, folder: FileFact, place: Place, found: bool, *, unpacked: bool = False
) -> Iterator[FileFact | UnknownFact]:
    """What is read, or written, by way of the links in a folder."""
    writes = folder.effect == "write" and (found or unpacked)
    if not folder.recursive or not (folder.effect == "read" or writes):
        return
    place.budget.found_in.add(str(folder.path))
    for link, target in _links_out(site, folder, place, found):
        # What is unpacked takes the place of a link to a file, and comes to lie in a folder.
        if found or not writes or target.is_dir():
            arriving = list(UNKNOWN_NAMES) if writes and not found else []
            fact = file_fact(site, str(target), folder.effect, place, beneath=arriving)
            yield fact._replace(written=link) if isinstance(fact, FileFact) else fact


def _links_out(site: Site, folder: FileFact, place: Place, found: bool) -> list[tuple[Path, Path]]:
    """Many commands of a call may ask for the same folder."""
    question = (folder.path, folder.selection, found)
    links = place.budget.links.get(question)
    if links is None:
        budget_at = partial(place.budget.at, workspace=site.workspace.root)
        indexed = indexed_beneath(folder.path, folder.selection, place.budget)
        if indexed is None:
            links = list(links_out(folder.path, folder.selection, budget_at, found=found))
        else:
            links = list(links_among(folder.path, indexed, place.budget))
        place.budget.links[question] = links
    place.budget.spend_entries(_LINK * (1 + len(links)))
    return links


def _request(use: UrlUse, scene: Scene) -> NetFact | UnknownFact:
    text = use.url.literal
    if text is None:
        return scene.unknown(f"which address {use.url.text} means is not known", use.url.span)
    try:
        return NetFact(parse_url(text), use.method, argument="command", span=scene.span(use.url.span))
    except InvalidUrlError as error:
        return scene.unknown(f"{text} is no plain URL: {error}", use.url.span)


def _doubts(words: tuple[Word, ...], effects: Effects, place: Place) -> Iterator[UnknownFact]:
    if effects.problem is not None:
        yield place.unknown(effects.problem)
    for at in effects.may_be_options:
        if may_be_option(words[at], place):
            yield place.unknown(f"{words[at].text} may become an option: put `--` or `./` before it")
