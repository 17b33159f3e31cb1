"""Plain data, and where in its file each part of it stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ci_agent.errors import InvalidFileError
from ci_agent.json_types import Json
from ci_agent.strict_yaml.text import Place, place_of

MAX_SHOWN = 10
"""How many problems one error names."""


class ListMarks(NamedTuple):
    start: int
    items: list["Marks"]


class MappingMarks(NamedTuple):
    start: int
    keys: dict[str, int]
    values: dict[str, "Marks"]


Marks: TypeAlias = int | ListMarks | MappingMarks
"""Where a value and all within it begin, as offsets, in the shape of the value."""


@dataclass(frozen=True, slots=True)
class YamlDocument:
    file: str
    """As messages name it."""
    value: Json
    marks: Marks
    line_starts: Sequence[int]

    def place(self, path: Sequence[str | int] = ()) -> Place:
        """Where the value at a path of keys and indexes stands; of its nearest parent when there is none."""
        return place_of(_start(_follow(self.marks, path)), self.line_starts)

    def item_lines(self, path: Sequence[str | int]) -> list[int]:
        """On which line each item of the list at a path begins."""
        marks = _follow(self.marks, path)
        items = marks.items if isinstance(marks, ListMarks) else ()
        return [place_of(_start(item), self.line_starts).line for item in items]

    def key_place(self, path: Sequence[str | int]) -> Place:
        """Where the key stands that a path ends in; for an item of a list, where the item stands."""
        parent = _follow(self.marks, path[:-1])
        if isinstance(parent, MappingMarks) and path[-1] in parent.keys:
            return place_of(parent.keys[str(path[-1])], self.line_starts)
        return self.place(path)

    def path_at(self, offset: int) -> tuple[str | int, ...] | None:
        """The path of the scalar that begins there; None: none does."""
        return _find(self.marks, offset)

    def error(self, path: Sequence[str | int], problem: str) -> InvalidFileError:
        """To raise: the problem at the value of a path."""
        return InvalidFileError(self.file, *self.place(path), problem)


def raise_problems(file: str, problems: Sequence[tuple[Place, str]]) -> None:
    """Raise one InvalidFileError for all problems, at the place of the first; return when there are none."""
    if not problems:
        return
    ordered = sorted(set(problems))
    (place, first), *others = ordered[:MAX_SHOWN]
    lines = [first, *(f"{file}:{other.line}:{other.column}: {problem}" for other, problem in others)]
    if len(ordered) > MAX_SHOWN:
        lines.append(f"{file}: and more problems after these")
    raise InvalidFileError(file, *place, "\n".join(lines))


def _start(marks: Marks) -> int:
    return marks if isinstance(marks, int) else marks.start


def _find(marks: Marks, offset: int) -> tuple[str | int, ...] | None:
    if isinstance(marks, int):
        return () if marks == offset else None
    steps = marks.values.items() if isinstance(marks, MappingMarks) else enumerate(marks.items)
    for step, inner in steps:
        rest = _find(inner, offset)
        if rest is not None:
            return (step, *rest)
    return None


def _follow(marks: Marks, path: Sequence[str | int]) -> Marks:
    for step in path:
        if isinstance(marks, MappingMarks) and step in marks.values:
            marks = marks.values[str(step)]
        elif isinstance(marks, ListMarks) and isinstance(step, int) and step < len(marks.items):
            marks = marks.items[step]
        else:
            break
    return marks
