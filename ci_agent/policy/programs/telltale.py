"""Options that no profile lists, and whose names tell that they run, load, write or reach something.

A profile with `unlisted = "anything"` lists the dangerous options of a program that has too many to list them all. Such
lists are never whole: plugins and new versions add more, under names that are made of few words.
"""

import re
from functools import lru_cache
from typing import Final

from ci_agent.policy.programs.profile import HAZARDS, Meaning

_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
"""`--post-run-command`, `--output.json.path` and `--outFile` are made of these."""

_TELLING: Final[dict[Meaning, str]] = {
    "run": """
        binary browser clang cmd command commands compiler debugger editor eval exec executable execute hook hooks
        interpreter java launcher node nvim pager preprocessor program pyflakes python script sh shell shellcheck
        wrapper
    """,
    "load": """
        addon addons autoload bootstrap classpath conf config custom extension extensions import imports init jar libdir
        load loader plugin plugins preload property rc require rules rulesdir settings setup syntax
    """,
    "write": """
        alter apply autocorrect autofix baseline clover cobertura correct coverage dest destination directory dump
        export fix fixes folder generate graph html inplace junit log logger logs out output outputs overwrite path
        record report reports result results save stats timing write
    """,
    "reach": "endpoint host listen proxy publish registry remote server socket upload uri url webhook",
}
_MEANINGS: Final[dict[str, Meaning]] = {word: meaning for meaning, words in _TELLING.items() for word in words.split()}
_TELLING_ENDS: Final = ("file", "dir")
"""Of words such as `junitfile` and `outdir`."""
_HARMLESS: Final = frozenset({"profile"})
_HARMLESS_LAST: Final = frozenset(
    """
    cache color colors colour count depth errors filter first format formats formatter level limit max min mode name
    names only pattern patterns size stdin strict style threshold timeout type verbosity version width
    """.split()  # noqa: SIM905  # reads better than thirty quoted names
)
"""What a name ends in when its value is a word or a number."""


@lru_cache(maxsize=512)
def tells(name: str) -> str | None:
    """Why an option of this name counts as a hazard; None: its name does not tell."""
    words = [word.lower() for word in _WORD.findall(name)]
    if len(name) <= len("--x") or not words or words[0] == "no" or words[-1] in _HARMLESS_LAST:
        return None
    meaning = next((found for found in map(_meaning, words) if found), None)
    return None if meaning is None else HAZARDS[meaning]


def _meaning(word: str) -> Meaning | None:
    if word.endswith(_TELLING_ENDS) and word not in _HARMLESS:
        return "write"
    return _MEANINGS.get(word)
