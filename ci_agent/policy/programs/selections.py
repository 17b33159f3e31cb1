"""Which of the files beneath its operands a program takes: by its nature, or as its options say."""

import re
from collections.abc import Sequence
from typing import Final

from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.words import EVERYTHING, Selection, Word

_GLOB: Final = re.compile(r"[*?\[\]\\{}]")
_ALTERNATIVES: Final = re.compile(r"([^{}]*)\{([A-Za-z0-9_.,-]+)\}")
_EXTENSION: Final = re.compile(r"\.?([A-Za-z0-9]+)")
_FOLLOWS: Final = ("-R", "--dereference-recursive", "-L", "--follow")
_LEFT_OUT: Final = re.compile(r"!(?:\*\*/)?([A-Za-z0-9._-]+)(/?)")
_HIDDEN_TOO: Final = (
    *("-.", "--hidden", "-u", "--unrestricted", "-t", "--type", "--type-add", "--ignore-file"),
    *("--ignore-file-case-insensitive", "--pre", "--pre-glob"),
)
"""With these, ripgrep may come to files whose names begin with a dot."""
_TYPES: Final = {
    "go": (".go",),
    "js": (".js", ".jsx", ".cjs", ".mjs", ".vue"),
    "py": (".py", ".pyi"),
    "rust": (".rs",),
    "ts": (".ts", ".tsx", ".cts", ".mts"),
}
"""Of ripgrep's types, which `rg --type-list` shows, those that no version gives other files."""


def selection_for(parsed: Parsed) -> Selection:
    profile = parsed.profile
    # A link that is followed leads into a folder that is passed by, under another name.
    follows = bool(profile.picks or profile.globs) and parsed.has(*_FOLLOWS)
    if profile.picks:
        return _picked(parsed, follows)
    if profile.globs:
        return EVERYTHING if follows else _by_globs(parsed)
    if profile.extensions and parsed.has(*profile.extensions):
        values = [value.literal or "?" for _, value in parsed.values(*profile.extensions)]
        found = [_EXTENSION.fullmatch(part) for value in values for part in value.split(",")]
        return Selection(tuple("." + match[1].casefold() for match in found if match)) if all(found) else EVERYTHING
    takes_all = not profile.only or parsed.has(*profile.only_unless)
    return EVERYTHING if takes_all else Selection(endings=profile.only)


def selection_of(picked: Sequence[Word | None], passed_by: Sequence[Word | None] = ()) -> Selection:
    """From globs of names of which a file must match one, and names of folders that are not entered."""
    endings = [_ending(glob) for glob in picked]
    return Selection(tuple(filter(None, endings)) if all(endings) else (), _plain_names(passed_by))


def _picked(parsed: Parsed, follows: bool) -> Selection:
    """`grep --include`, `--exclude-dir`, and `--exclude`, which a later `--include` may lift."""
    profile = parsed.profile
    picked = [found.value for found in parsed.options if found.option.name in profile.picks]
    passed_by = [found.value for found in parsed.options if found.option.name in profile.passes_by and not follows]
    selection = selection_of(picked, passed_by)
    left_out = [found.value for found in parsed.options if found.option.name in profile.leaves_out and not follows]
    return selection if picked else Selection(without=selection.without, left_out=_plain_names(left_out))


def _plain_names(words: Sequence[Word | None]) -> tuple[str, ...]:
    return tuple(word.text for word in words if word and word.literal and not _GLOB.search(word.text))


def _by_globs(parsed: Parsed) -> Selection:
    """Of the globs the last that matches decides: what names leave out is out unless a later glob takes it in.

    Where any glob takes files in, all that match none are out.
    """
    texts = [_glob_text(value) for _, value in parsed.values(*parsed.profile.globs)]
    taken = [at for at, text in enumerate(texts) if not text.startswith("!")]
    last = max(taken, default=-1)
    left_out = [match for text in texts[last + 1 :] if (match := _LEFT_OUT.fullmatch(text))]
    endings = [ending for at in taken for ending in _endings(texts[at])] if taken else _of_types(parsed)
    known = tuple(filter(None, endings)) if all(endings) else ()
    files = tuple(match[1] for match in left_out if not match[2])
    unhidden = not taken and not parsed.has(*_HIDDEN_TOO)
    return Selection(
        endings=known, without=tuple(match[1] for match in left_out), left_out=files, unhidden=unhidden and not known
    )


def _glob_text(value: Word) -> str:
    """What is no line of a `.gitignore`, as a comment, leaves all files in; blanks at the end do not count there."""
    text = value.literal or "*"
    return "*" if text.startswith("#") or text[-1].isspace() else text


def _of_types(parsed: Parsed) -> Sequence[str | None]:
    asked = [value.literal or "" for _, value in parsed.values("-t", "--type")]
    if parsed.has("--type-add", "--type-clear") or not all(name in _TYPES for name in asked):
        return ()
    return [ending for name in asked for ending in _TYPES[name]]


def _endings(glob: str) -> Sequence[str | None]:
    """What each name that a glob with alternatives matches ends in; None where that says nothing."""
    parted = _ALTERNATIVES.fullmatch(glob)
    texts = [parted[1] + ending for ending in parted[2].split(",")] if parted else [glob]
    return [None if "{" in text or "}" in text else _ending_of(text) for text in texts]


def _ending(glob: Word | None) -> str | None:
    """What every name that a glob matches ends in; None when that says nothing."""
    return _ending_of(glob.literal) if glob and glob.literal else None


def _ending_of(glob: str) -> str | None:
    last = re.split(r"[*?\[\]\\]", glob)[-1].rpartition("/")[2]
    return last.casefold() or None
