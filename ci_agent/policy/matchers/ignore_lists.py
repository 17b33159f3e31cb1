"""Lists of what a build leaves out of the folder that it sends, as docker reads them (`.dockerignore`)."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ci_agent.policy.matchers.path_globs import Part, matches_parts
from ci_agent.policy.matchers.wildcards import Wildcard

_SENT_ANYWAY: Final = ("!Dockerfile", "!dockerfile", "!Containerfile", "!.dockerignore", "!.containerignore")
_UNCERTAIN: Final = re.compile(r"[?\[\]\\\0]|\*\*[^/]|[^/]\*\*")
"""Sets and the like, escapes, and `**` that is no whole name."""
_BENEATH: Final = Wildcard(("", ""))
"""A closing `**` is what lies in the folder."""


class Pattern(NamedTuple):
    takes_in: bool
    """It begins with a `!`."""
    parts: tuple[Part, ...] | None
    """None: not every reader takes it alike."""
    text: str
    size: int | None = None
    """How many names a path has that it fits; None: any number."""

    def fits(self, names: Sequence[str]) -> bool:
        return self.parts is not None and matches_parts(self.parts, names)


def parse_list(text: str) -> tuple[Pattern, ...]:
    """The patterns in their order; the last that fits a path, or a folder above it, decides."""
    lines = [*text.removeprefix("\ufeff").split("\n"), *_SENT_ANYWAY]
    return tuple(pattern for line in lines if not line.startswith("#") for pattern in _parse(line.strip()))


def _parse(line: str) -> Iterator[Pattern]:
    takes_in = line.startswith("!")
    path = line.removeprefix("!").strip()
    if not path:
        return
    path = posixpath.normpath(path).lstrip("/")
    certain = path.isprintable() and path not in ("", ".") and not path.startswith("..") and not _UNCERTAIN.search(path)
    parts = tuple(_parts(path)) if certain else None
    yield Pattern(takes_in, parts, path, None if parts is None or None in parts else len(parts))


def _parts(path: str) -> Iterator[Part]:
    names = path.split("/")
    yield from (None if name == "**" else Wildcard(tuple(name.split("*"))) for name in names)
    if names[-1] == "**":
        yield _BENEATH


def leaves_out(patterns: Sequence[Pattern], path: Sequence[str]) -> bool:
    """Whether a path in the folder is not sent for certain: by docker today, and by older readers."""
    return _decides(patterns, path) and _is_passed_by_older(patterns, path)


def leaves_out_all_beneath(patterns: Sequence[Pattern], folder: Sequence[str]) -> bool:
    """Whether nothing in a folder is sent, so that none of it need be looked at."""
    return not any(pattern.takes_in for pattern in patterns[: -len(_SENT_ANYWAY)]) and leaves_out(patterns, folder)


def _decides(patterns: Sequence[Pattern], path: Sequence[str], *, older: bool = False) -> bool:
    """Older readers look at no folder above but the one that is as deep as the pattern."""
    out = False
    for pattern in patterns:
        if pattern.parts is None:
            out = out and not pattern.takes_in
        elif out == pattern.takes_in:
            depth = min(pattern.text.count("/") + 1, len(path))
            sizes = {depth, len(path)} if older and not pattern.takes_in else range(1, len(path) + 1)
            if any(pattern.fits(path[:size]) for size in sizes if pattern.size in (None, size)):
                out = not pattern.takes_in
    return out


def _is_passed_by_older(patterns: Sequence[Pattern], path: Sequence[str]) -> bool:
    """They do not enter a folder that is left out, unless a `!` begins with its name."""
    back = [pattern.text + "/" for pattern in patterns if pattern.takes_in]
    return _decides(patterns, path, older=True) or any(
        not any(text.startswith("/".join(path[:size]) + "/") for text in back)
        and _decides(patterns, path[:size], older=True)
        for size in range(1, len(path))
    )
