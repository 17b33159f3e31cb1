"""What a change did, as a unified diff whose size and cost are bounded."""

import difflib
import re
from collections.abc import Sequence
from itertools import takewhile

from ci_agent.tools.truncate import MAX_BYTES, keep_head_and_tail

_CONTEXT_LINES = 3
_MAX_COMPARED_LINES = 2_000
"""Finding the smallest diff is quadratic; longer changes are shown as one block out, one block in."""


def unified_diff(before: str, after: str, name: str) -> str:
    """The diff of two texts, at most 50 kB of it; empty when they are the same."""
    old, new = _lines(before), _lines(after)
    start, end = _common_ends(old, new)
    offset = max(start - _CONTEXT_LINES, 0)
    context_after = min(end, _CONTEXT_LINES)
    old, new = (lines[offset : len(lines) - end + context_after] for lines in (old, new))
    hunks = _hunks(old, new, start - offset, context_after)
    header = [f"--- a/{name}\n", f"+++ b/{name}\n"] if hunks else []
    return keep_head_and_tail("".join(header + [_shifted(line, offset) for line in hunks]), MAX_BYTES).text


def _lines(text: str) -> list[str]:
    """With their ends; only a line feed ends one. A last line without one carries the mark that diffs have for it."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()
    return [*lines, f"{last}\\ No newline at end of file\n"] if last != "\n" else lines


def _common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    start = _common(old, new)
    shorter = min(len(old), len(new))
    return start, min(_common(old[::-1], new[::-1]), shorter - start)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _hunks(old: Sequence[str], new: Sequence[str], before: int, after: int) -> list[str]:
    """The lines of the diff after its two headings; `before` and `after` are how much context stands around."""
    if len(old) + len(new) <= _MAX_COMPARED_LINES:
        hunks = list(difflib.unified_diff(old, new, n=_CONTEXT_LINES))[2:]
        # In repetitive text the smallest diff may reach into the lines that were to be context; without context behind
        # it, a hunk claims to stand at the end of the file.
        if all(line.startswith(" ") for line in hunks[len(hunks) - after :]):
            return hunks
    return [
        f"@@ -{_range(len(old))} +{_range(len(new))} @@\n",
        *(f" {line}" for line in old[:before]),
        *(f"-{line}" for line in old[before : len(old) - after]),
        *(f"+{line}" for line in new[before : len(new) - after]),
        *(f" {line}" for line in old[len(old) - after :]),
    ]


def _range(length: int) -> str:
    return f"{1 if length else 0},{length}"


_HUNK = re.compile(r"@@ -(\d+)(.*) \+(\d+)(.*) @@\n")


def _shifted(line: str, offset: int) -> str:
    """A hunk's heading with line numbers of the whole file; any other line as it is."""
    if heading := _HUNK.fullmatch(line):
        return f"@@ -{int(heading[1]) + offset}{heading[2]} +{int(heading[3]) + offset}{heading[4]} @@\n"
    return line
