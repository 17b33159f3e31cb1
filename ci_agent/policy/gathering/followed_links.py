"""Which links a program follows when it reads all beneath a folder, and where they lead."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ci_agent.policy.disk import DiskBudget, Entry, Listing, walk
from ci_agent.policy.matchers.reach import Names
from ci_agent.policy.words import Selection, Word
from ci_agent.workspace import lies_in

_OF_TOOLS: Final = (
    "bandit black codespell compileall eslint flake8 git gofmt goimports gzip mv mypy node npm npx pip pip3 prettier "
    "pylint pyright python python3 ruff"
)
_OPTIONS_THAT_FOLLOW: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_OF_TOOLS.split(), ()),
    **dict.fromkeys(("grep", "egrep", "fgrep"), ("-R", "--dereference-recursive")),
    **dict.fromkeys(("rg", "fd", "fdfind"), ("-L", "--follow")),
    "ag": ("-f", "--follow"),
    "cp": ("-L", "--dereference"),
    "rsync": ("-L", "-k", "--copy-links", "--copy-unsafe-links", "--copy-dirlinks"),
    "tar": ("-h", "--dereference"),
}
"""Programs that pass links by on their way, unless one of these options is given. All others follow them."""

_OPTIONS_THAT_STAY: Final[Mapping[str, tuple[str, ...]]] = {
    "zip": ("-y", "--symlinks"),
    "diff": ("--no-dereference",),
}

_UNPACKERS: Final = (
    "7z 7za 7zr 7zz bsdtar busybox cpio docker gh gtar helm jar kubectl podman pypy pypy3 python python3 tar unzip"
)
"""Programs that write beneath a folder what they are given to unpack, also behind the links to folders there."""

_SYSTEM_PROGRAMS: Final = frozenset(map(Path, ("/usr/bin", "/usr/local/bin", "/usr/sbin", "/bin")))
"""What a virtual environment links to: programs of the system are nobody's secret."""


def unpacks(words: Sequence[Word]) -> bool:
    """Whether what the program writes beneath a folder may go where a link there leads."""
    return os.path.basename(words[0].text) in _UNPACKERS.split()


def follows_links(words: Sequence[Word]) -> bool:
    """Whether the program follows the links that it meets beneath a folder; in doubt it does."""
    name = os.path.basename(words[0].text)
    following = _OPTIONS_THAT_FOLLOW.get(name)
    if following is not None:
        # `tar chf`: the first cluster needs no dash.
        old_style = name == "tar" and len(words) > 1 and "h" in words[1].text and not words[1].text.startswith("-")
        options = [word for word in words[1:] if word.literal is None or word.text.startswith("-")]
        return old_style or any(_may_be(word, option) for word in options for option in following)
    staying = _OPTIONS_THAT_STAY.get(name, ())
    return not any(_is_surely(word, option) for word in words[1:] for option in staying)


def _is_surely(word: Word, option: str) -> bool:
    """As it stands, or among short options that take no value."""
    text = word.literal or ""
    return text == option or (len(option) == 2 and re.fullmatch(r"-[rRqy]+", text) is not None and option[1] in text)


def links_out(
    folder: Path, selection: Selection, budget_at: Callable[[Path], DiskBudget], *, found: bool
) -> Iterator[tuple[Path, Path]]:
    """Each link, and where it leads, that is followed out of a folder, also by way of other folders.

    `found`: the names that the selection picks are handed to the program one by one, folders too.
    """
    walked: list[Path] = []
    pending = [folder]
    while pending:
        start = pending.pop()
        if any(lies_in(start, each) for each in walked):
            continue
        walked.append(start)
        budget = budget_at(start)
        for above, listing in walk(start, budget, selection):
            for entry in listing.links:
                if not _is_followed(entry, selection, found):
                    continue
                target = Path(budget.target_of(entry))
                if target.parent in _SYSTEM_PROGRAMS or any(lies_in(target, at) for at in walked):
                    continue
                if os.path.exists(target):
                    yield start.joinpath(*above, entry.name), target
                if os.path.isdir(target):
                    pending.append(target)


def links_among(
    folder: Path, listings: Iterable[tuple[Names, Listing]], budget: DiskBudget
) -> Iterator[tuple[Path, Path]]:
    """As `links_out`, of these files of the folder alone, none of which leads to a folder."""
    for above, listing in listings:
        for entry in listing.links:
            target = Path(budget.target_of(entry))
            if not lies_in(target, folder) and os.path.exists(target):
                yield folder.joinpath(*above, entry.name), target


def _is_followed(entry: Entry, selection: Selection, found: bool) -> bool:
    picked = not selection.endings or entry.name.casefold().endswith(selection.endings)
    return picked or (not found and entry.is_dir())


def _may_be(word: Word, option: str) -> bool:
    text = word.literal
    if text is None:
        return word.splits or any(_may_be(choice, option) for choice in word.choices)
    if option.startswith("--"):
        return len(text) > 2 and option.startswith(text)
    return text.startswith("-") and not text.startswith("--") and option[1] in text[1:]
