"""Words of messages: the known name that was probably meant, counts, lists."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_MAX_CHARS = 100
"""Of a word that is compared; comparing takes time with the square of it."""


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known word that is most like this one, whatever its case; None when none is close.

    `likeness`: from 0 to 1; at 0.8 a slip or two of the keyboard are left of what may tell the words apart.
    """
    spelled = {other.casefold(): other for other in sorted(known)}
    close = get_close_matches(word[:_MAX_CHARS].casefold(), spelled, n=1, cutoff=likeness)
    return spelled[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion to append to an error; empty when nothing is close."""
    meant = nearest(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def counted(count: int, what: str) -> str:
    """`1 rule`, `2 rules`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def listed(names: Sequence[str], most: int = 3) -> str:
    """`a, b, c and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
