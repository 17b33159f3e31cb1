"""Substitutions that print one word for certain: `$(nproc)`, `$(git rev-parse REV)`, `$(git merge-base A B)`."""

import re
from collections.abc import Container
from typing import Final

from ci_agent.policy.shell.syntax import Sequence, Simple, SourceRedirect, SourceWord, Text
from ci_agent.policy.words import Edit

_FIRST_OR_LAST: Final = [[name, *count] for name in ("head", "tail") for count in (["-1"], ["-n", "1"], ["-n1"])]

HASH: Final = "0" * 40
"""Stands for the name of any commit."""

_REVISION = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9_./-]*(?:[~^][0-9]*)*")
"""One revision, which git does not take for an option, a range, or several commits."""
_VERIFYING = re.compile(r"--verify|--short(?:=[0-9]+)?")


def stand_ins(program: Sequence, functions: Container[str]) -> tuple[str, ...]:
    """Texts between which whatever is printed lies: each is one of them, or the last with other digits in its place.

    Empty: nobody knows what is printed. No text holds anything that the shell splits, matches or expands. Each of the
    programs prints nothing when it fails, and `git rev-parse REV` then prints REV.
    """
    command = only_command(program)
    if command is None:
        return ()
    match [_text(word) for word in command.words]:
        case ["nproc"] if "nproc" not in functions:
            return ("", "1")
        case ["git", *_] if "git" in functions:
            return ()
        case ["git", "rev-parse", str(revision)] if _REVISION.fullmatch(revision):
            return ("", revision, HASH)
        case ["git", "rev-parse", str(option), str(revision)] if _VERIFYING.fullmatch(option):
            return ("", revision, HASH) if _REVISION.fullmatch(revision) else ()
        case ["git", "merge-base", str(one), str(other)] if _REVISION.fullmatch(one) and _REVISION.fullmatch(other):
            return ("", HASH)
    return ()


def path_part(program: Sequence, functions: Container[str]) -> tuple[SourceWord, Edit] | None:
    """What `$(basename WORD)`, `$(basename WORD SUFFIX)` and `$(dirname WORD)` take a part of, and which."""
    command = only_command(program)
    name = command.words[0].plain if command is not None and command.words else None
    if command is None or name not in ("basename", "dirname") or name in functions:
        return None
    words = command.words[1:]
    if words and words[0].plain == "--":
        words = words[1:]
    suffix = _text(words[1]) if len(words) == 2 and name == "basename" else ""
    if suffix is None or len(words) != 1 + bool(suffix):
        return None
    return words[0], Edit("basename" if name == "basename" else "dirname", behind=suffix)


def prints_a_line(program: Sequence) -> bool:
    """Whether the output, after line breaks at its end are taken away, is one line or none."""
    pipelines = [pipeline for item in program.items for pipeline in item.pipelines]
    last = pipelines[0].stages[-1] if len(pipelines) == 1 else None
    texts = [word.plain for word in last.words] if isinstance(last, Simple) else []
    return texts in _FIRST_OR_LAST


def only_command(program: Sequence) -> Simple | None:
    """The simple command that is all there is; only what it prints on its standard output arrives."""
    stages = [stage for item in program.items for pipeline in item.pipelines for stage in pipeline.stages]
    command = stages[0] if len(stages) == 1 else None
    if not isinstance(command, Simple) or command.assignments or not all(map(_is_silencing, command.redirects)):
        return None
    return command


def _text(word: SourceWord) -> str | None:
    """The one value of a word that is spelled; behind its beginning, a tilde is none of a home folder."""
    if word.plain is not None:
        return word.plain
    texts = [part.text for part in word.parts if isinstance(part, Text)]
    return "".join(texts) if len(texts) == len(word.parts) else None


def _is_silencing(redirect: SourceRedirect) -> bool:
    return redirect.operator == ">" and redirect.variable is None and redirect.target.plain == "/dev/null"
