"""Text of a model made inert for GitHub: it shows what it says, and does nothing.

Everything works alike: a blank is put where GitHub, or a bot that reads along, would begin to act. That holds inside
of code, too, where nobody could say for certain what GitHub takes for code.
"""

import re
from collections.abc import Sequence
from typing import Final

from ci_agent.terminal import printable

_CLOSES: Final = r"(?<![A-Za-z0-9])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)(?![A-Za-z0-9])[^A-Za-z0-9]{0,20}"
"""A word that closes an issue when a number follows (GitHub: "linking a pull request to an issue")."""

_ACTIVE: Final[Sequence[tuple[re.Pattern[str], str]]] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), inert)
    for pattern, inert in (
        # Entities come first in Markdown: &#64;name would be a mention.
        (r"&(?=#?[A-Za-z0-9]{1,40};)", "& "),
        # HTML, above all comments, which nobody sees but the next agent.
        (r"<(?=[A-Za-z/!?])", "< "),
        # Images are fetched when somebody looks; links and definitions hide where they lead.
        (r"!(?=\[)", "! "),
        (r"\](?=[(:])", "] "),
        (r"(?<![A-Za-z0-9])@(?=[A-Za-z0-9_-])", "@ "),
        (rf"({_CLOSES}#)(?=[0-9])", r"\1 "),
        (rf"({_CLOSES}[\w.-]{{1,100}}/[\w.-]{{1,100}}#)(?=[0-9])", r"\1 "),
        (rf"({_CLOSES}GH-)(?=[0-9])", r"\1 "),
        (rf"({_CLOSES}https?)(?=:)", r"\1 "),
        # Commands to bots, and to GitHub itself in the message of a commit.
        (r"^((?:[^\S\n]|>)*/)(?=[A-Za-z0-9_-])", r"\1 "),
        (r"\[(?=(?:skip ci|ci skip|no ci|skip actions|actions skip)\])", "[ "),
        (r"(skip-checks)(?=:)", r"\1 "),
    )
)


def inert_markdown(text: str) -> str:
    """The text without invisible characters, and without anything that GitHub would act on. Twice is as once."""
    return _inert(_visible(text))


def inert_line(text: str) -> str:
    """The same for a title: one line."""
    return _inert(" ".join(_visible(text).split()))


def _visible(text: str) -> str:
    return "".join(char for char in text.replace("\r\n", "\n") if char in "\n\t" or printable(char) == char)


def _inert(text: str) -> str:
    for pattern, inert in _ACTIVE:
        text = pattern.sub(inert, text)
    return text.strip()
