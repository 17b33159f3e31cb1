"""`test`, `[` and `[[`: which files they look at, and where bash evaluates a word as code."""

import re

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.words import Word

_ABOUT_FILES = frozenset(f"-{letter}" for letter in "abcdefghkprsuwxGLNOS")
_BETWEEN_FILES = frozenset({"-nt", "-ot", "-ef"})
_ARITHMETIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_SEPARATORS = frozenset({"=", "==", "!=", "<", ">", "]", ")", "(", "!", ""})
_NUMBER = re.compile(
    r"[+-]?[0-9]+|\$[#?$!]|\$\{#[A-Za-z_][A-Za-z0-9_]*(?:\[[@*]\])?\}|\$(RANDOM|SECONDS|LINENO|EUID|UID|PPID)"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read(parsed: Parsed, draft: Draft) -> None:
    words = [operand.word for operand in parsed.operands]
    double = parsed.profile.name == "[["
    for position, word in enumerate(words):
        before = words[position - 1] if position else None
        after = words[position + 1] if position + 1 < len(words) else None
        if word.literal in _ABOUT_FILES and after is not None and _is_unary(words, position):
            draft.use("list", after)
        elif word.literal in _BETWEEN_FILES and before is not None and after is not None:
            draft.use("list", before)
            draft.use("list", after)
        elif word.literal == "-v" and after is not None and _is_unary(words, position):
            _refuse_evaluation(draft, after)
        elif double and word.literal in _ARITHMETIC:
            for number in (before, after):
                _refuse_arithmetic(draft, number)
        if not double and after is not None and word.kind == "unknown" and not word.prefix:
            _refuse_operator(draft, word, after)


def _is_unary(words: list[Word], position: int) -> bool:
    """`-f` in `[ "$x" = -f ]` is text; where it could be both, it counts as an operator."""
    return position == 0 or words[position - 1].literal not in ("=", "==", "!=", "=~", "<", ">")


def _refuse_evaluation(draft: Draft, name: Word) -> None:
    if name.literal is None or not _NAME.fullmatch(name.text):
        draft.doubt(f"bash evaluates {name.text} when it looks for a variable of that name")


def _refuse_arithmetic(draft: Draft, number: Word | None) -> None:
    if number is not None and not _NUMBER.fullmatch(number.text):
        draft.doubt(f"bash evaluates {number.text} as arithmetic, which can run commands: use [ ] instead of [[ ]]")


def _refuse_operator(draft: Draft, word: Word, after: Word) -> None:
    """`[ "$a" "$b" ]`: the first may be `-v`, and then the second is evaluated."""
    text = after.literal
    if text is None or not (_NAME.fullmatch(text) or text in _SEPARATORS or text.startswith("-")):
        draft.doubt(f"{word.text} may be an operator that evaluates {after.text}")
