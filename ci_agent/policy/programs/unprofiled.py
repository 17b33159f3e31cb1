"""What the words of a program without a profile tell: addresses, options by their names, ways out of the workspace."""

import re
import string
from collections.abc import Iterator

from ci_agent.policy.effects import Effects, UrlUse
from ci_agent.policy.programs.draft import Draft, is_url, use_anything
from ci_agent.policy.programs.load import find_profile
from ci_agent.policy.programs.options import tail
from ci_agent.policy.programs.profile import HAZARDS
from ci_agent.policy.programs.telltale import tells
from ci_agent.policy.words import Word

_NOT_FIRST = string.digits + "+.-"
_OF_SCHEMES = string.ascii_letters + _NOT_FIRST
_KNOWN_SCHEME = re.compile(
    r"(?:https?|wss?|s?ftps?|ssh|git|svn|s3|gs|rsync|ldaps?|tcp|udp|smtps?|imaps?)$", re.IGNORECASE
)


def without_profile(words: tuple[Word, ...]) -> Effects:
    draft = Draft()
    if (command := _command_of_git(words[0].text)) is not None:
        draft.doubt(f"{words[0].text} is a command of git by another name: write git {command}")
    _use_url_in(draft, words[0])
    for at, word in enumerate(words[1:], 1):
        use_anything(draft, word)
        _use_url_in(draft, word)
        why = _tells(word)
        if why is not None and "/" not in words[0].text:
            draft.hazard(at, why)
    return draft.finished()._replace(known=False)


def _command_of_git(program: str) -> str | None:
    """`git-push`, in whatever folder."""
    name = program.rpartition("/")[2]
    command = name.removeprefix("git-")
    git = find_profile("git") if command != name else None
    return command if git is not None and command in git.commands else None


def _tells(word: Word) -> str | None:
    """What an option says by its name; a script of the workspace has options of its own, which the rule's author
    knows."""
    name = (word.prefix if word.kind == "unknown" else word.text).partition("=")[0]
    why = tells(name) if name.startswith("--") else None
    return None if why == HAZARDS["reach"] else why


def _use_url_in(draft: Draft, word: Word) -> None:
    """`http://HOST/`, `--url=http://HOST/`, `-uhttp://HOST/`: whatever the program is, that is where it will go."""
    if word.kind != "literal" or "://" not in word.text:
        return
    for begins in _url_starts(word.text):
        part = tail(word, begins)
        if is_url(part) and not part.text.startswith("file:"):
            draft.urls.append(UrlUse(part))


def _url_starts(text: str) -> Iterator[int]:
    """Where a URL may begin: the first, and those behind commas."""
    end = 0
    while (at := text.find("://", end)) >= 0:
        start = end + len(text[end:at].rstrip(_OF_SCHEMES))
        scheme = text[start:at].lstrip(_NOT_FIRST)
        is_first = end == 0 and ":" not in text[:start] and "/" not in text[:start]
        begins, end = at - len(scheme), at + len("://")
        if not scheme or not (is_first or (begins == start > 0 and text[start - 1] == ",")):
            continue
        if begins == 1 and text[0] in "-+":
            # An option, or a cluster of them, stands right before it.
            known = _KNOWN_SCHEME.search(scheme)
            begins += known.start() if known else 1
        yield begins
