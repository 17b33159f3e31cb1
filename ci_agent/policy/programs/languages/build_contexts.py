"""What `docker build` takes for its context: a repository elsewhere, or a folder, but for what that ignores."""

import re
from dataclasses import replace
from typing import Final

from ci_agent.policy.effects import UrlUse
from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.words import Sent, literal_word

_REMOTE: Final = re.compile(r"(?:git@|git://)?(?P<place>(?:[A-Za-z0-9-]+\.)+[A-Za-z]+[:/].*)")
_USUAL_FILES: Final = ("Dockerfile", "dockerfile", "Containerfile")


def read_build_context(parsed: Parsed, draft: Draft) -> None:
    """`docker build HOST/PATH`, `git@HOST:PATH`: a repository, where no folder of that name is meant."""
    for operand in parsed.operands:
        remote = _REMOTE.fullmatch(operand.word.literal or "")
        if remote is not None:
            place = remote["place"].replace(":", "/", 1)
            draft.urls.append(UrlUse(literal_word(f"https://{place}", operand.word.span)))
        elif all(found.option.name in parsed.profile.options for found in parsed.options):
            _send(operand.word.literal, parsed, draft)


def _send(folder: str | None, parsed: Parsed, draft: Draft) -> None:
    told = [value for _, value in parsed.values("-f", "--file")]
    if folder is None or any(value.literal is None for value in told):
        return
    sent = Sent(_USUAL_FILES)
    draft.files = [
        use._replace(selection=replace(use.selection, sent=sent), build_files=tuple(told))
        if use.effect == "read" and use.recursive and use.path.literal == folder
        else use
        for use in draft.files
    ]
