"""Where a text comes closest to one that it does not contain, and what differs there."""

import difflib

import re2

_MAX_SEARCHED_CHARS = 10_000
_MAX_SEARCH_STEPS = 100_000_000
"""Words times characters. RE2's time is bound by their product, and text that is made for it takes all of that."""

_MAX_COMPARED_LINES = 5_000
_MAX_QUOTED_CHARS = 200

_LOOK_ALIKES = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2010": "-",
        "\u2011": "-",
        "\u2012": "-",
        "\u2013": "-",
        "\u2014": "-",
        "\u2212": "-",
        "\u00a0": " ",
        "\u2009": " ",
        "\u202f": " ",
        "\u3000": " ",
    }
)


def describe_nearest(text: str, wanted: str) -> str:
    """A sentence for a model: the line that comes nearest to `wanted`, how it differs, and what is there.

    Both with LF line ends. Whitespace, letter case and typographic look-alikes are looked through; failing that,
    the most similar single line is named.
    """
    found = _find_loosely(text, wanted)
    if found is None:
        return _most_similar_line(text, wanted)
    start, end = found
    there = text[text.rfind("\n", 0, start) + 1 : _line_end(text, end)]
    line = text.count("\n", 0, start) + 1
    return f"Line {line} differs only in {_difference(text[start:end], wanted)}: {_first_different_line(there, wanted)}"


def _find_loosely(text: str, wanted: str) -> tuple[int, int] | None:
    words = wanted.translate(_LOOK_ALIKES).split()
    if not words or len(wanted) > _MAX_SEARCHED_CHARS or len(words) * len(text) > _MAX_SEARCH_STEPS:
        return None
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        pattern = re2.compile(r"\s+".join(map(re2.escape, words)), options)
        match = pattern.search(text.translate(_LOOK_ALIKES))
    except re2.error:
        return None
    return match.span() if match else None


def _line_end(text: str, index: int) -> int:
    end = text.find("\n", index)
    return len(text) if end == -1 else end


def _difference(there: str, wanted: str) -> str:
    if there.split() == wanted.split():
        return "whitespace"
    if there.casefold().split() == wanted.casefold().split():
        return "upper and lower case"
    return "typographic characters"


def _first_different_line(there: str, wanted: str) -> str:
    """Quoted so that tabs, blanks and unusual characters show."""
    pairs = zip(there.split("\n"), wanted.strip("\n").split("\n"), strict=False)
    have, want = next(((have, want) for have, want in pairs if have != want), (there, wanted))
    return f"the file has {_quoted(have)}, old has {_quoted(want)}."


def _most_similar_line(text: str, wanted: str) -> str:
    lines = text.split("\n")
    longest = max(wanted.split("\n"), key=len).strip()
    if len(lines) > _MAX_COMPARED_LINES or not longest:
        return "Read it again."
    candidates = {line.strip()[:_MAX_QUOTED_CHARS] for line in lines}
    close = difflib.get_close_matches(longest[:_MAX_QUOTED_CHARS], candidates, n=1)
    if not close:
        return "Nothing in it is similar; read it again."
    number, line = next((index, line) for index, line in enumerate(lines, 1) if line.strip().startswith(close[0]))
    return f"The most similar line is {number}: {_quoted(line)}. Read it again."


def _quoted(line: str) -> str:
    return repr(line[:_MAX_QUOTED_CHARS]) + ("..." if len(line) > _MAX_QUOTED_CHARS else "")
