"""Builtins of bash that set variables: what they evaluate, and which variables change what runs."""

import re
from collections.abc import Iterator

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.words import Word
from ci_agent.steering_names import changes_what_runs

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_AND_VALUE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=|$)")
_EVALUATED = re.compile(r"[`$\[\]]")
_PAIRS = re.compile(
    r"\((?:\s*\[(?:[A-Za-z0-9_./:-]+|'[^'\n]+'|\"[^\"$`\\\n]+\")\]=(?:[A-Za-z0-9_./:@%+,-]+|'[^']*'|\"[^\"$`\\]*\"|(?=[\s)])))*\s*\)"
)
"""Keys with values in which nothing is evaluated, as an associative array gets them."""
_SUM = re.compile(r"[A-Za-z0-9_ \t+*/%<>=!&|^~?:(),-]*")


def read_export(parsed: Parsed, draft: Draft) -> None:
    for index, word in _operands(parsed):
        _set(draft, index, word)


def read_declare(parsed: Parsed, draft: Draft) -> None:
    """With `-a`, `-A` and `-i` the value is evaluated, with `-n` the variable becomes another name for one."""
    evaluates = parsed.has("-a", "-A", "-i", "-n", "-I")
    for index, word in _operands(parsed):
        _set(draft, index, word)
        value = (word.literal or "").partition("=")[2]
        if parsed.has("-A") and not parsed.has("-a", "-i", "-n", "-I") and _PAIRS.fullmatch(value):
            continue
        if evaluates and (word.literal is None or _EVALUATED.search(value)):
            draft.doubt(f"bash evaluates the value in {word.text}")


def read_names(parsed: Parsed, draft: Draft) -> None:
    """`read`, `mapfile`, `printf -v`, `getopts`, `unset`, `wait -p`: variables that are set or removed."""
    for index, word in (*_name_options(parsed), *_name_operands(parsed)):
        if word.literal is None or not _NAME.fullmatch(word.text):
            draft.doubt(f"bash evaluates {word.text} when it sets a variable of that name")
        elif changes_what_runs(word.text):
            draft.hazard(index, f"sets {word.text}, which changes what runs")


def read_let(parsed: Parsed, draft: Draft) -> None:
    for operand in parsed.operands:
        if operand.word.literal is None or not _SUM.fullmatch(operand.word.text):
            draft.doubt(f"bash evaluates {operand.word.text} as arithmetic, which can run commands")
        else:
            _set(draft, operand.at, operand.word, needs_name=False)


def _operands(parsed: Parsed) -> Iterator[tuple[int, Word]]:
    return ((operand.at, operand.word) for operand in parsed.operands)


def _set(draft: Draft, index: int, word: Word, needs_name: bool = True) -> None:
    match = _NAME_AND_VALUE.match(word.prefix if word.kind == "unknown" else word.text)
    if match is None or (word.kind == "unknown" and not match[2]):
        if needs_name:
            draft.doubt(f"the variable that {word.text} sets is not known")
    elif changes_what_runs(match[1]):
        draft.hazard(index, f"sets {match[1]}, which changes what runs")


def _name_options(parsed: Parsed) -> Iterator[tuple[int, Word]]:
    names = {"read": ("-a",), "printf": ("-v",), "wait": ("-p",)}.get(parsed.profile.name, ())
    return parsed.values(*names)


def _name_operands(parsed: Parsed) -> Iterator[tuple[int, Word]]:
    program, operands = parsed.profile.name, parsed.operands
    if program in ("printf", "wait") or (program == "unset" and parsed.has("-f")):
        return iter(())
    skipped = 1 if program == "getopts" else 0
    stop = 2 if program == "getopts" else len(operands)
    return ((operand.at, operand.word) for operand in operands[skipped:stop])
