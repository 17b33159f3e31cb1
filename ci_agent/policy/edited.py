"""What `${name#...}`, `${name%...}`, `${name/...}`, basename and dirname make of a text that is known."""

from collections.abc import Iterable
from typing import assert_never

from ci_agent.policy.words import Edit, Word

_MADE_ANEW = frozenset(" \t\n*?[\\")


def edited(text: str, edits: Iterable[Edit]) -> str | None:
    """The text after the edits; None when what comes out is not certain."""
    result: str | None = text
    for edit in edits:
        if result is None:
            return None
        result = _apply(edit, result)
    return result


def edit_all(choices: tuple[Word, ...], edits: tuple[Edit, ...]) -> tuple[Word, ...] | None:
    """What the edits make of each; None when that is not certain."""
    made: list[Word] = []
    for choice in choices:
        if choice.literal is None:
            made.append(choice._replace(edits=choice.edits + edits))
        elif (text := edited(choice.text, edits)) is not None:
            made.append(choice._replace(text=text))
        else:
            return None
    return tuple(made)


def _apply(edit: Edit, text: str) -> str | None:
    match edit.kind:
        case "around":
            return edit.before + text + edit.behind
        case "plain":
            return None if not text or not _MADE_ANEW.isdisjoint(text) else text
        case "prefix":
            return _without_prefix(edit, text)
        case "suffix":
            return _without_suffix(edit, text)
        case "basename" | "dirname":
            return _part_of_path(edit, text)
        case "replace":
            return text.replace(edit.before, edit.behind, -1 if edit.longest else 1)
        case "case":
            return _in_case(edit, text)
    assert_never(edit.kind)


def _without_prefix(edit: Edit, text: str) -> str:
    """`before`: whatever comes first (`*`), or nothing; `behind`: the literal that follows."""
    if not edit.before:
        return text.removeprefix(edit.behind)
    _, found, tail = text.rpartition(edit.behind) if edit.longest else text.partition(edit.behind)
    return tail if found else text


def _without_suffix(edit: Edit, text: str) -> str:
    """`before`: the literal; `behind`: whatever follows it (`*`), or nothing."""
    if not edit.behind:
        return text.removesuffix(edit.before)
    head, found, _ = text.partition(edit.before) if edit.longest else text.rpartition(edit.before)
    return head if found else text


def _in_case(edit: Edit, text: str) -> str | None:
    """`before`: `^` or `,`. What becomes of other letters than those of ASCII, and of `i`, depends on the locale."""
    if not text.isascii() or ("i" if edit.before == "^" else "I") in text:
        return None
    changed = text.upper() if edit.before == "^" else text.lower()
    return changed if edit.longest else changed[:1] + text[1:]


def _part_of_path(edit: Edit, text: str) -> str | None:
    """What the program prints, without the line break at its end; a text that is an option to it is refused."""
    if not text or text.startswith("-") or "\n" in text:
        return None
    path = text.rstrip("/") or "/"
    folder, slash, name = path.rpartition("/")
    if edit.kind == "dirname":
        return folder.rstrip("/") or slash or "."
    if not name:
        return "/"
    return name.removesuffix(edit.behind) if name != edit.behind else name
