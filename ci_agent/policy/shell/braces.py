"""Brace expansion: `{a,b}` and `{1..9}` become several words."""

import re
from collections.abc import Sequence

from ci_agent.policy.shell.program import BoundExceededError
from ci_agent.policy.shell.reader import MAX_NESTING
from ci_agent.policy.shell.syntax import Part, SourceWord, Text

MAX_WORDS = 1_000
"""How many words one word may become."""

Atom = str | Part
"""One unquoted character, or something that brace expansion does not look into."""

_NUMBERS = re.compile(r"(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})(?:\.\.(-?[0-9]{1,9}))?")
_LETTERS = re.compile(r"([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z])")


class BraceError(Exception):
    """Braces that bash might read in more than one way."""


def may_expand(word: SourceWord) -> bool:
    """Whether any brace expansion can take place in the word."""
    text = "".join([part.text for part in word.parts if isinstance(part, Text) and not part.quoted])
    return "{" in text and ("," in text or ".." in text)


def expand_braces(parts: Sequence[Part]) -> list[list[Part]]:
    """The parts of each word that these parts become."""
    atoms: list[Atom] = []
    for part in parts:
        if isinstance(part, Text) and not part.quoted:
            atoms += part.text
        else:
            atoms.append(part)
    alternatives, stop = _expand(atoms, 0, 0)
    if stop != len(atoms):
        raise BraceError
    return [_join(alternative) for alternative in alternatives]


def _expand(atoms: list[Atom], start: int, depth: int) -> tuple[list[list[Atom]], int]:
    """Expand up to the end, or inside `depth` braces up to a `,` or `}`; also returns where that stands."""
    if depth > MAX_NESTING:
        raise BoundExceededError(f"more than {MAX_NESTING} levels of nesting")
    results: list[list[Atom]] = [[]]
    position = start
    while position < len(atoms):
        atom = atoms[position]
        if atom == "}" or (depth and atom == ","):
            break
        if atom == "{":
            choices, position = _expand_group(atoms, position, depth + 1)
        else:
            choices, position = [[atom]], position + 1
        if len(results) * len(choices) > MAX_WORDS:
            raise BoundExceededError(f"braces that become more than {MAX_WORDS} words")
        if len(choices) > 1:
            results = [result + choice for result in results for choice in choices]
            continue
        for result in results:
            result.extend(choices[0])
    return results, position


def _expand_group(atoms: list[Atom], start: int, depth: int) -> tuple[list[list[Atom]], int]:
    """Expand the braces that open at `start`; also returns where the text goes on."""
    position, elements = start, list[list[list[Atom]]]()
    while position == start or atoms[position] == ",":
        element, position = _expand(atoms, position + 1, depth)
        elements.append(element)
        if position >= len(atoms):
            raise BraceError
    if len(elements) > 1:
        return [choice for element in elements for choice in element], position + 1
    inner = atoms[start + 1 : position]
    if not inner:
        raise BraceError
    text = "".join(atom for atom in inner if isinstance(atom, str))
    if ".." in text:
        if len(text) != len(inner):
            raise BraceError
        return [list(item) for item in _expand_range(text)], position + 1
    return [["{", *choice, "}"] for choice in elements[0]], position + 1


def _expand_range(text: str) -> list[str]:
    if match := _NUMBERS.fullmatch(text):
        return _expand_numbers(match[1], match[2], match[3])
    if match := _LETTERS.fullmatch(text):
        first, last = (ord(letter) for letter in match.groups() if letter)
        step = 1 if last >= first else -1
        return [chr(code) for code in range(first, last + step, step)]
    raise BraceError


def _expand_numbers(first: str, last: str, increment: str | None) -> list[str]:
    start, stop = int(first), int(last)
    step = abs(int(increment or "1")) or 1
    if abs(stop - start) // step >= MAX_WORDS:
        raise BoundExceededError(f"braces that become more than {MAX_WORDS} words")
    padded = any(re.match(r"-?0[0-9]", text) for text in (first, last))
    width = max(len(first), len(last)) if padded else 0
    numbers = range(start, stop + 1, step) if stop >= start else range(start, stop - 1, -step)
    return [f"{number:0{width}d}" for number in numbers]


def _join(atoms: list[Atom]) -> list[Part]:
    """Parts again, characters that stand side by side in one."""
    parts: list[Part] = []
    characters: list[str] = []
    for atom in atoms:
        if isinstance(atom, str):
            characters.append(atom)
            continue
        if characters:
            parts.append(Text("".join(characters), quoted=False))
            characters.clear()
        parts.append(atom)
    if characters:
        parts.append(Text("".join(characters), quoted=False))
    return parts
