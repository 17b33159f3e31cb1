"""A redirection becomes facts: the files that bash opens for it."""

from collections.abc import Iterator
from typing import Final

from ci_agent.policy.effects import FileEffect, FileUse
from ci_agent.policy.facts import FileFact, UnknownFact
from ci_agent.policy.gathering.absent_places import unless_absent
from ci_agent.policy.gathering.exec_facts import linked
from ci_agent.policy.gathering.file_facts import Place, possible_texts, reaches_no_file, use_facts, which_file
from ci_agent.policy.gathering.found_names import certain
from ci_agent.policy.gathering.reading import Reading, Scene
from ci_agent.policy.shell.program import Redirect, RedirectMode
from ci_agent.policy.words import Word, literal_word

_NETWORK_FILES: Final = ("/dev/tcp/", "/dev/udp/")

_EFFECTS: Final[dict[RedirectMode, tuple[FileEffect, ...]]] = {
    "read": ("read",),
    "write": ("write",),
    "append": ("write",),
    "read_write": ("read", "write"),
}


def redirect_facts(reading: Reading, redirect: Redirect, scene: Scene) -> Iterator[FileFact | UnknownFact]:
    """What is opened, read and written by it."""
    place = scene.place(reading, redirect.span)
    if redirect.target.beneath and redirect.mode == "read":
        yield from _read_by_name(reading, redirect.target, place)
        return
    if redirect.target.stand_ins and not redirect.target.splits:
        for effect in _EFFECTS[redirect.mode]:
            yield from use_facts(reading.site, FileUse(effect, redirect.target), place)
        return
    if redirect.mode == "read" and (left := unless_absent(redirect.target, "read", reading.budget)) is not None:
        redirect = redirect._replace(target=left)
    texts = possible_texts(redirect.target, place)
    # In a loop, one after the other; a glob that matches several files is an error of bash.
    one_each = redirect.target.kind == "choice" and not redirect.target.splits
    if texts is None or (len(texts) != 1 and not one_each):
        yield place.unknown(which_file(redirect.target))
        return
    for text in texts:
        if text.startswith(_NETWORK_FILES):
            yield place.unknown(f"bash opens a network connection for {text}")
            return
        target = literal_word(text, redirect.target.span)
        for effect in _EFFECTS[redirect.mode]:
            if not reaches_no_file(text, effect):
                yield from use_facts(reading.site, FileUse(effect, target), place)


def _read_by_name(reading: Reading, target: Word, place: Place) -> Iterator[FileFact | UnknownFact]:
    """A file of those that another command names; where its name may be cut, nobody knows which."""
    (known,), problem = certain((target,), place, None)
    if problem is not None or target.splits or any(base.selection.listed for base in known.beneath):
        yield place.unknown(problem or f"which file {target.text} means is not known")
        return
    for base in known.beneath:
        use = FileUse("read", base, recursive=True, selection=base.selection)
        for fact in use_facts(reading.site, use, place):
            yield fact
            if isinstance(fact, FileFact):
                yield from linked(reading.site, fact, place, found=True)
