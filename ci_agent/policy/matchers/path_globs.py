"""Globs for paths: `*` inside a name, `**` across folders, dot files like any other; matched name by name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from ci_agent.policy.matchers.wildcards import STAR, Wildcard, expand, wildcard

Anchor: TypeAlias = Literal["workspace", "root", "home"]

Part: TypeAlias = Wildcard | None
"""One name of a path; None is `**`: any number of names, also none."""


@dataclass(frozen=True, slots=True)
class PathGlob:
    text: str
    anchor: Anchor
    """Where the parts start: in the workspace, at `/`, or in the home folder (`~/`)."""
    alternatives: tuple[tuple[Part, ...], ...]


@lru_cache(maxsize=16_384)
def parse_path_glob(text: str) -> PathGlob:
    """Read a path glob; ValueError says what is wrong with it and what to write instead.

    Each is asked for twice: when the file is checked, and when its rules are compiled.

    A leading `/` makes it absolute, a leading `~/` starts at the home folder, anything else in the workspace.
    Alternatives are written `{a,b}`; a backslash makes the next `*`, `{`, `}`, `,` or `?`, `[`, `]` literal.
    """
    if not text:
        raise ValueError("a path glob is empty")
    _refuse_what_would_match_nothing(text)
    anchor, relative = _anchor(text)
    alternatives = tuple(_parts(alternative, text) for alternative in expand(_plain_brackets(relative, text)))
    return PathGlob(text, anchor, alternatives)


def matches_parts(pattern: Sequence[Part], names: Sequence[str]) -> bool:
    """Whether a whole path fits, name by name; at worst the product of both lengths in steps."""
    at = place = 0
    resume_at, resume_place = -1, 0
    while place < len(names):
        part = pattern[at] if at < len(pattern) else _NOTHING
        if part is None:
            tail = pattern[at + 1 :]
            if all(tail):  # the last `**` takes what is left over
                return len(tail) <= len(names) - place and _fit(tail, names[len(names) - len(tail) :])
            resume_at, resume_place = at + 1, place
            at += 1
        elif part.matches(names[place]):
            at, place = at + 1, place + 1
        elif resume_at < 0:
            return False
        else:
            # A `**` takes one name more; an earlier one never has to.
            resume_place += 1
            at, place = resume_at, resume_place
    return not any(pattern[at:])


def _fit(parts: Sequence[Part], names: Sequence[str]) -> bool:
    for part, name in zip(parts, names, strict=True):  # noqa: SIM110 - mostly one or two
        if part is None or not part.matches(name):
            return False
    return True


def covers_beneath(pattern: Sequence[Part], folder: Sequence[str]) -> bool:
    """Whether everything beneath a folder fits, at any depth."""
    return tuple(pattern[-2:]) == _EVERYTHING_BENEATH and matches_parts(pattern, (*folder, ""))


_NOTHING = Wildcard(("\0",))
_EVERYTHING_BENEATH: tuple[Part, ...] = (None, wildcard(STAR))


def _refuse_what_would_match_nothing(text: str) -> None:
    """A slip that leaves a deny rule without effect must not pass in silence."""
    plain = _ESCAPED.sub("", text)
    if plain.count("{") != plain.count("}"):
        raise ValueError(f"a brace in {text!r} has no partner; alternatives are written {{a,b}}, a brace itself \\{{")
    if _VARIABLE.search(plain):
        raise ValueError(f"variables are not known when a policy is read, in {text!r}; write the path itself, or ~/")
    if "***" in plain:
        raise ValueError(f"`***` in {text!r} has no meaning; `**` crosses folders, `*` stays inside one name")


_ESCAPED: Final = re.compile(r"\\.")
_VARIABLE: Final = re.compile(r"\$(?:\{|[A-Za-z_])|%[A-Z_]+%")


def _anchor(text: str) -> tuple[Anchor, str]:
    if text.startswith("/"):
        return "root", text[1:]
    if text.startswith("~/"):
        return "home", text[2:]
    if text.startswith("~"):
        raise ValueError(f"{text!r}: only `~/` is known, the home folder of the user who runs the agent")
    return "workspace", text


def _plain_brackets(text: str, whole: str) -> str:
    if not any(char in text for char in "\\?["):
        return text
    plain = []
    chars = iter(text)
    for char in chars:
        if char == "\\":
            following = next(chars, "")
            plain.append(following if following and following in "?[]" else char + following)
        elif char in "?[":
            raise ValueError(
                f"`{char}` in {whole!r} has no meaning here: write `\\{char}` for the character itself, "
                "`*` for any characters, or the alternatives as {a,b}"
            )
        else:
            plain.append(char)
    return "".join(plain)


def _parts(alternative: str, whole: str) -> tuple[Part, ...]:
    if alternative.endswith("/") or not alternative:
        raise ValueError(f"{whole!r} ends in `/`; write `**` after it for everything beneath")
    if alternative.startswith(("/", "~/")):
        raise ValueError(f"{whole!r} has alternatives with different beginnings; write them as separate globs")
    parts = tuple(_part(name, whole) for name in alternative.split("/") if name not in ("", "."))
    # A closing `**` stands for what is beneath, not for the folder itself.
    return (*parts, wildcard(STAR)) if parts and parts[-1] is None else parts


def _part(name: str, whole: str) -> Part:
    if name == "..":
        raise ValueError(f"{whole!r} climbs with `..`; write the absolute path")
    if STAR * 2 not in name:
        return wildcard(name)
    if name.strip(STAR):
        raise ValueError(f"`**` in {whole!r} crosses folders only when it is a whole name; write `**/*.py`, or one `*`")
    return None
