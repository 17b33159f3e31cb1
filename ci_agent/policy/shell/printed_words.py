"""Substitutions that print certain words: `$(nproc)`, `$(date +%F)`, `$(git rev-parse REV)`, `$(basename "$f")`."""

import re
from collections.abc import Container
from typing import Final

from ci_agent.policy.shell.syntax import Sequence, Simple, SourceRedirect, SourceWord, Text
from ci_agent.policy.words import Edit

_COUNTING: Final = [["wc", unit] for unit in ("-l", "-w", "-c", "-m", "--lines", "--words", "--bytes")]
_FIRST_OR_LAST: Final = [[name, *count] for name in ("head", "tail") for count in (["-1"], ["-n", "1"], ["-n1"])]

HASH: Final = "0" * 40
"""Stands for the name of any commit."""

_REVISION = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9_./-]*(?:[~^][0-9]*)*")
"""One revision, which git does not take for an option, a range, or several commits."""
_OF_REV_LIST = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9_./~^-]*|--reverse|--no-merges|--merges|--first-parent|-n|--max-count=[0-9]+|-[0-9]+|HEAD|--all"
)
_DIGITS = {
    "%F": "2000-01-01",
    "%T": "00:00:00",
    "%R": "00:00",
    "%Y": "2000",
    "%y": "00",
    "%m": "01",
    "%d": "01",
    "%j": "001",
    "%H": "00",
    "%M": "00",
    "%S": "00",
    "%s": "0",
}
"""What `date` makes of a directive, with other digits."""
_DIRECTIVE = re.compile("|".join(_DIGITS))
_DATE = re.compile(rf"\+(?:{_DIRECTIVE.pattern}|[A-Za-z0-9_.:-])+")
_VERIFYING = re.compile(r"--verify|--short(?:=[0-9]+)?")


def stand_ins(program: Sequence, functions: Container[str]) -> tuple[str, ...]:
    """Texts between which whatever is printed lies: each is one of them, or the last with other digits in its place.

    Empty: nobody knows what is printed. No text holds anything that the shell splits, matches or expands. Each of the
    programs prints nothing when it fails, and `git rev-parse REV` then prints REV.
    """
    if _counts(program, functions):
        return ("", "0")
    command = only_command(program)
    if command is None:
        return ()
    words = [spelled_text(word) for word in command.words]
    if not words or words[0] in functions:
        return ()
    match words:
        case ["nproc"] | ["getconf", "_NPROCESSORS_ONLN"]:
            return ("", "1")
        case ["date", str(form)] | ["date", "-u", str(form)]:
            return _date(form)
        case ["git", str(subcommand), *arguments]:
            return _commit_or_count(subcommand, arguments)
    return ()


def _commit_or_count(subcommand: str, arguments: list[str | None]) -> tuple[str, ...]:
    """What git prints where that is the name of a commit, or how many there are."""
    match [subcommand, *arguments]:
        case ["rev-parse", str(revision)] if _REVISION.fullmatch(revision):
            return ("", revision, HASH)
        case ["rev-parse", str(option), str(revision)] if _VERIFYING.fullmatch(option):
            return ("", revision, HASH) if _REVISION.fullmatch(revision) else ()
        case ["merge-base", str(one), str(other)] if _REVISION.fullmatch(one) and _REVISION.fullmatch(other):
            return ("", HASH)
        case ["rev-list", "-1", str(revision)] | ["rev-list", "-n", "1", str(revision)]:
            return ("", HASH) if _REVISION.fullmatch(revision) else ()
        case ["rev-list", "--count", str(revision)] if _OF_REV_LIST.fullmatch(revision):
            return ("", "0")
    return ()


def _counts(program: Sequence, functions: Container[str]) -> bool:
    """`wc -l < FILE`, `... | wc -l`, `... | grep -c PATTERN`: a number, as there is no name to print beside it."""
    pipelines = [pipeline for item in program.items for pipeline in item.pipelines]
    last = pipelines[0].stages[-1] if len(pipelines) == 1 else None
    if not isinstance(last, Simple) or last.assignments or program.items[0].background:
        return False
    if not all(_is_silencing(redirect) or redirect.operator == "<" for redirect in last.redirects):
        return False
    fed = len(pipelines[0].stages) > 1 or len(last.redirects) > 0
    words = [spelled_text(word) for word in last.words]
    counts = words in _COUNTING or (words[:2] == ["grep", "-c"] and len(words) == 3 and _is_pattern(words[2]))
    return fed and counts and words[0] not in functions


def _is_pattern(text: str | None) -> bool:
    return text is not None and not text.startswith("-")


def stand_in_for_each(program: Sequence, functions: Container[str]) -> tuple[str, ...]:
    """The same for each word of a list: `$(git rev-list A..B)` is names of commits."""
    command = only_command(program)
    words = [spelled_text(word) for word in command.words] if command is not None else []
    if words[:2] != ["git", "rev-list"] or "git" in functions:
        return ()
    return (HASH,) if all(word is not None and _OF_REV_LIST.fullmatch(word) for word in words[2:]) else ()


def _date(form: str) -> tuple[str, ...]:
    """What `date +FORMAT` prints, when that is digits and what stands between them."""
    if not _DATE.fullmatch(form):
        return ()
    return ("", _DIRECTIVE.sub(lambda match: _DIGITS[match[0]], form[1:]))


def path_part(program: Sequence, functions: Container[str]) -> tuple[SourceWord, Edit] | None:
    """What `$(basename WORD)`, `$(basename WORD SUFFIX)` and `$(dirname WORD)` take a part of, and which."""
    command = only_command(program)
    name = command.words[0].plain if command is not None and command.words else None
    if command is None or name not in ("basename", "dirname") or name in functions:
        return None
    words = command.words[1:]
    if words and words[0].plain == "--":
        words = words[1:]
    suffix = spelled_text(words[1]) if len(words) == 2 and name == "basename" else ""
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


def spelled_text(word: SourceWord) -> str | None:
    """The one value of a word that is spelled; behind its beginning, a tilde is none of a home folder."""
    if word.plain is not None:
        return word.plain
    texts = [part.text for part in word.parts if isinstance(part, Text)]
    return "".join(texts) if len(texts) == len(word.parts) else None


def _is_silencing(redirect: SourceRedirect) -> bool:
    return redirect.operator == ">" and redirect.variable is None and redirect.target.plain == "/dev/null"
