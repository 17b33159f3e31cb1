"""The one choke point that keeps secrets out of whatever is written or printed: journal, document, log, reports."""

import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from ci_agent.json_types import Json
from ci_agent.transcript.plain_json import plain
from ci_agent.transcript.secret_forms import UNSEEN, SecretForm, forms_of, squeeze, visible
from ci_agent.transcript.secret_sources import MIN_SECRET_CHARS
from ci_agent.transcript.token_shapes import Span, find_tokens

PLACEHOLDER = "[redacted]"

_GRAM_SIZES = (4, 8)
"""A match of 2n characters or more holds a whole gram of n that begins at a multiple of n + 1: looking these up finds
every match, at a fraction of the work. Where a match is long, so are its grams: of a thousand secrets in hexadecimal,
some hold any four digits."""

_MIN_VARIETY = 4
"""A piece of fewer different characters (a ruler of dashes, padding of zeros) gives nothing away."""

WHITE_SPACE = re.compile(r"\s+")

Grams: TypeAlias = dict[str, list[tuple[SecretForm, int]]]


class GramIndex(NamedTuple):
    """Where each gram of some forms stands in them."""

    size: int
    grams: Grams


class Redactor:
    """Replaces known secrets, in every form that `forms_of` lists, and whatever has the shape of a well-known token.

    White space does not matter, nor what cannot be seen: a secret that was split over lines, or that a search has
    coloured a part of, is found. May be used from several threads.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.count = 0
        """How many places `text` and `value` have replaced so far."""
        self.forms = tuple(form for secret in sorted(set(secrets)) for form in forms_of(secret))
        self._indexes = [index for size in _GRAM_SIZES if (index := _index_of(self.forms, size)).grams]
        self._lock = threading.Lock()

    def text(self, text: str) -> str:
        """The text with a placeholder for each secret in it."""
        redacted, count = self.replace(text)
        if count:
            with self._lock:
                self.count += count
        return redacted

    def value(self, value: Json) -> Json:
        """A JSON value with every text in it redacted, keys included."""
        return plain(value, self.text).value

    def replace(self, text: str) -> tuple[str, int]:
        """The redacted text, and how many places were replaced; adds nothing to `count`."""
        spans = self.find(text) if len(text) >= MIN_SECRET_CHARS else []
        if not spans:
            return text, 0
        starts = [0, *(end for _, end in spans)]
        ends = [*(start for start, _ in spans), len(text)]
        return PLACEHOLDER.join(text[start:end] for start, end in zip(starts, ends, strict=True)), len(spans)

    def holds_secret(self, text: str) -> bool:
        return bool(self.find(text))

    def find(self, text: str) -> list[Span]:
        """Where the text holds secrets, in order; spans that touch are one."""
        return _merged([*self._find_forms(text), *find_tokens(text)])

    def _find_forms(self, text: str) -> list[Span]:
        squeezed, seen = squeeze(text), visible(text)
        spans = self._find_in(squeezed, text, WHITE_SPACE)
        # What stands in an escape sequence is looked at above, what it parts here.
        return spans if seen == squeezed else [*spans, *self._find_in(seen, text, UNSEEN)]

    def _find_in(self, shortened: str, text: str, left_out: re.Pattern[str]) -> list[Span]:
        spans = [span for index in self._indexes for span in _matches(shortened, index)]
        return spans if len(shortened) == len(text) or not spans else in_full(spans, text, left_out)


def _index_of(forms: Sequence[SecretForm], size: int) -> GramIndex:
    """For the forms whose matches are of a length that fits this size best. For a run of one character there would be
    many places, none of them telling; it is only known to occur, and looked at by its ends."""
    grams: Grams = {}
    for form in forms:
        if size == max(fitting for fitting in _GRAM_SIZES if form.shortest >= 2 * fitting):
            for start in range(len(form.text) - size + 1):
                gram = form.text[start : start + size]
                places = grams.setdefault(gram, [])
                if not _is_run(gram):
                    places.append((form, start))
    return GramIndex(size, grams)


def _matches(text: str, index: GramIndex) -> list[Span]:
    size, grams = index
    sampled = [at for at in range(0, len(text), size + 1) if text[at : at + size] in grams]
    spans: list[Span] = []
    covered = 0
    for at in _ends_of_runs(text, sampled, size):
        if at + size > covered:
            found = _longest_match(text, at, grams.get(text[at : at + size], ()))
            if found is not None:
                spans.append(found)
                covered = found[1]
    return spans


def _ends_of_runs(text: str, places: Iterable[int], size: int) -> Iterator[int]:
    """The places, but for one inside a run the two at its ends, which hold one character more than the run."""
    run_end = 0
    for at in places:
        if not _is_run(text[at : at + size]):
            yield at
        elif at >= run_end:
            start, run_end = at, at + size
            while start and text[start - 1] == text[at]:
                start -= 1
            while run_end < len(text) and text[run_end] == text[at]:
                run_end += 1
            yield from (max(start - 1, 0), run_end - size + 1)


def _is_run(gram: str) -> bool:
    return gram == gram[0] * len(gram)


def _longest_match(text: str, at: int, candidates: Iterable[tuple[SecretForm, int]]) -> Span | None:
    spans = [
        (start, end)
        for form, place in candidates
        for start, end in [_extended(text, at, form.text, place)]
        if end - start >= form.shortest and _gives_away(text[start:end], form)
    ]
    return max(spans, key=lambda span: span[1] - span[0], default=None)


def _extended(text: str, at: int, form: str, place: int) -> Span:
    """The span of text around `at` that equals the form around `place`."""
    after = common_size(len(form) - place, lambda size: text[at : at + size] == form[place : place + size])
    before = common_size(min(at, place), lambda size: text[at - size : at] == form[place - size : place])
    return at - before, at + after


def _gives_away(piece: str, form: SecretForm) -> bool:
    return len(piece) == len(form.text) or len(set(piece)) >= _MIN_VARIETY


def common_size(most: int, equal: Callable[[int], bool]) -> int:
    """The largest size up to `most` that is still equal, by halving: a few comparisons, however long the texts."""
    if equal(most):
        return most
    least = 0
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if equal(middle) else (least, middle)
    return least


def in_full(spans: Iterable[Span], text: str, left_out: re.Pattern[str]) -> list[Span]:
    """Spans of a text without what the pattern matches, as they lie in it with that."""
    gaps = [gap.span() for gap in left_out.finditer(text)]
    starts, ends = [0, *(end for _, end in gaps)], [*(start for start, _ in gaps), len(text)]
    words = [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]
    begins = list(accumulate((end - start for start, end in words), initial=0))

    def place(at: int) -> int:
        word = bisect_right(begins, at) - 1
        return words[word][0] + at - begins[word]

    return [(place(start), place(end - 1) + 1) for start, end in spans]


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
