"""What a checkout has become since its commit, as a patch of plain text files, and nothing but that."""

import os
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci_agent.policy.proposal_bounds import PatchBounds
from ci_agent.proposals.private_repository import GitError, PrivateRepository

MAX_FILES: Final = 1_000

MAX_CHANGED_BYTES: Final = 64 * 1024 * 1024
"""Of all changed files together."""

_FILE: Final = "100644"
_NONE: Final = "000000"
_KINDS: Final = {"120000": "a symbolic link", "160000": "a submodule", "100755": "executable"}

_NEVER: Final = frozenset({"", ".", "..", ".git", ".gitmodules", ".gitattributes"})
"""Names that are never in a patch, at any depth and in any case: what git runs or fetches is written there. `.github`
is not either: what GitHub runs, and who has to agree to it, is written there."""

_DIFF: Final = ("--cached", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")

_VISIBLE_CONTROLS: Final = frozenset("\t\n\r\f")
_EMOJI_JOINER: Final = "\u200d"


@dataclass(frozen=True, slots=True)
class CheckoutPatch:
    base: str
    diff: str
    files: tuple[str, ...]
    left_out: tuple[str, ...]
    """Changed files that the policy's globs do not cover."""


def patch_of_checkout(repository: PrivateRepository, bounds: PatchBounds) -> CheckoutPatch:
    """Every change since the commit that the bounds cover; GitError for one that no patch may have."""
    repository.git("read-tree", "--reset", repository.head)
    changed = _changed(repository)
    covered = [path for path in changed if may_be_patched(path, bounds)]
    _refuse_large(repository.top, covered)
    names = "".join(f"{path}\0" for path in covered).encode("utf-8", "surrogateescape")
    repository.git("update-index", "--add", "--remove", "-z", "--stdin", stdin=names)
    problems = list(index_problems(repository, repository.head, bounds))
    if problems:
        raise GitError("; ".join(problems[:5]))
    files = tuple(path for path, _, _ in _entries(repository, repository.head))
    return CheckoutPatch(
        base=repository.head,
        diff=_diff(repository, bounds) if files else "",
        files=files,
        left_out=tuple(path for path in changed if path not in covered),
    )


def may_be_patched(path: str, bounds: PatchBounds) -> bool:
    """Whether a patch may change a file of this path at all."""
    folded = [unicodedata.normalize("NFC", name).casefold() for name in path.split("/")]
    never = folded[0] == ".github" or any(name in _NEVER for name in folded)
    return bounds.covers(path) and not never


def index_problems(repository: PrivateRepository, base: str, bounds: PatchBounds) -> Iterator[str]:
    """Why what stands in the repository's index is no patch of the commit that the bounds allow."""
    entries = _entries(repository, base)
    if len(entries) > MAX_FILES:
        yield f"more than {MAX_FILES} files are changed"
        return
    for path, before, after in entries:
        if not may_be_patched(path, bounds):
            yield f"{path!r} may not be in a patch"
        elif not path.isprintable() or any(char in path for char in '"\\'):
            yield f"{path!r}: no patch is made of a file with such a name"
        elif before != after and _NONE not in {before, after}:
            yield f"{path!r}: its mode is changed from {before} to {after}; a patch changes content alone"
        elif after in _KINDS and before != after:
            yield f"{path!r} is {_KINDS[after]}, and a patch adds plain files alone"
        elif not {before, after} <= {_FILE, "100755", _NONE}:
            yield f"{path!r} is no plain file"
    yield from _content_problems(repository, base)


def _changed(repository: PrivateRepository) -> list[str]:
    tracked = repository.git("diff-files", "--name-only", "-z", "--ignore-submodules=all", "--no-ext-diff")
    untracked = repository.git("ls-files", "--others", "--exclude-standard", "-z")
    return [os.fsdecode(path) for path in sorted({*tracked.split(b"\0"), *untracked.split(b"\0")}) if path]


def _refuse_large(top: Path, paths: Sequence[str]) -> None:
    if len(paths) > MAX_FILES:
        raise GitError(f"more than {MAX_FILES} files are changed")
    size = 0
    for path in paths:
        with suppress(OSError):  # it may be gone, which is a change like any other
            size += os.lstat(top / path).st_size
        if size > MAX_CHANGED_BYTES:
            raise GitError(f"{path!r} is too large for a patch, or the changed files together are")


def _entries(repository: PrivateRepository, base: str) -> list[tuple[str, str, str]]:
    """Path, mode before and mode after of each file that differs."""
    raw = repository.git("diff-index", *_DIFF, "--raw", "-z", base).split(b"\0")
    return [
        (os.fsdecode(path), fields[0].lstrip(":"), fields[1])
        for told, path in zip(raw[::2], raw[1::2], strict=False)
        for fields in [told.decode("ascii").split(" ")]
    ]


def _content_problems(repository: PrivateRepository, base: str) -> Iterator[str]:
    counted = repository.git("diff-index", *_DIFF, "--numstat", "-z", base).split(b"\0")
    for line in filter(None, counted):
        added, _, path = line.split(b"\t", 2)
        if added == b"-":
            yield f"{os.fsdecode(path)!r} is binary, and a patch changes text alone"
    diff = repository.git("diff-index", *_DIFF, "-p", base)
    try:
        text = diff.decode("utf-8")
    except UnicodeDecodeError:
        yield "the patch is not UTF-8: it can change UTF-8 text alone"
        return
    hidden = sorted({f"U+{ord(char):04X}" for line in text.split("\n") if line[:1] == "+" for char in _hidden(line)})
    if hidden:
        yield f"the patch adds characters that nobody sees: {', '.join(hidden[:5])}"


def _hidden(line: str) -> Iterator[str]:
    """Characters that hide or reorder what stands around them."""
    if not line.isascii() or not line.isprintable():
        for char in line:
            if unicodedata.category(char) in {"Cc", "Cf"} and char not in _VISIBLE_CONTROLS and char != _EMOJI_JOINER:
                yield char


def _diff(repository: PrivateRepository, bounds: PatchBounds) -> str:
    raw = repository.git("diff-index", *_DIFF, "-p", "--full-index", "--no-color", repository.head)
    if len(raw) > bounds.max_bytes:
        raise GitError(f"the patch has {len(raw)} bytes, and {bounds.max_bytes} are the most: change less")
    return raw.decode("utf-8")
