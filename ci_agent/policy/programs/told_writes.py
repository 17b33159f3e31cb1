"""Programs of which a profile tells every file that they write. To all others a sandbox leaves what their rule reaches.

A name too many costs a command that fails, for the kernel then holds it to what the profile says; a name too few costs
the narrower sandbox alone.
"""

import os
from collections.abc import Collection, Sequence
from typing import Final

from ci_agent.policy.programs.profile import HAZARDS

_PROGRAMS: Final = """
    . : [ [[ basename base64 bc builtin c++filt cat cd chmod chown cksum cmp column comm command continue cp csplit
    curl cut date dc declare df diff dirname du echo egrep env eval exec exit expand export expr factor false fd fgrep
    file find fmt fold getopts grep gunzip gzip hash head hexdump iconv id join jq less let link ln local ls md5sum
    mkdir mkfifo mktemp mv nice nl nm nohup numfmt od paste pathchk popd pr printenv printf ps pushd pwd read readarray
    readlink readonly realpath return rev rg rm rmdir sed seq set sha1sum sha256sum sha512sum shift shopt sleep sort
    split stat stdbuf strings tac tail tee test time timeout touch tr tree true truncate tsort type uname unexpand uniq
    unlink unset wait wc wget which whoami xargs xxd yes zcat
"""

_GIT_COMMANDS: Final = """
    annotate blame cat-file check-attr check-ignore cherry count-objects describe diff diff-files diff-index diff-tree
    for-each-ref grep log ls-files ls-remote ls-tree merge-base name-rev range-diff rev-list rev-parse shortlog show
    show-ref status var version whatchanged
"""

TELLING: Final = frozenset(_PROGRAMS.split())
GIT_TELLING: Final = frozenset(_GIT_COMMANDS.split())

_WRITING: Final = frozenset({HAZARDS["write"], HAZARDS["delete"], HAZARDS["in_place"]})
"""Hazards whose files are among the facts; the others make a program do more than its profile tells."""


def tells_writes(words: Sequence[str], skipped: Collection[int], hazards: Collection[str]) -> bool:
    """Whether all that a command writes is among its facts.

    `skipped`: positions of words between a program's name and its subcommand. `hazards`: what its words do.
    """
    if not _WRITING.issuperset(hazards):
        return False
    name = os.path.basename(words[0])
    if name != "git":
        return name in TELLING
    rest = (word for at, word in enumerate(words) if at > 0 and at not in skipped and not word.startswith("-"))
    return next(rest, "") in GIT_TELLING
