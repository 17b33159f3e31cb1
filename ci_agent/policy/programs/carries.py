"""Whether a command carries a token that a deny rule names: alone, in a cluster, or as `--flag=value`."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ci_agent.policy.programs.interpret import parse_levels
from ci_agent.policy.programs.options import Found, Parsed
from ci_agent.policy.words import Word


def carries(words: Sequence[Word], token: str) -> bool:
    """True also when a word that is not known may be, or may become, the token.

    Values of options are data and do not count, nor do words behind `--` for a token that is an option. A `*` in
    the token stands for any characters.
    """
    levels = parse_levels(words)
    if not levels:
        return any(_unprofiled(word, token) for word in words[1:])
    separator = token == "--"  # noqa: S105  # a token of a command line
    is_option = token.startswith("-") and not separator
    last = len(levels) - 1
    for number, level in enumerate(levels):
        if any(_option_is(level, found, token) for found in level.options):
            return True
        operands = [operand.word for operand in level.operands] if number == last else []
        if is_option and _may_be_option(level, operands):
            return True
        if not is_option and any(_operand_is(word, token) for word in operands):
            return True
    return separator and any(level.dash_dash is not None for level in levels)


def _option_is(level: Parsed, found: Found, token: str) -> bool:
    """The option is the token as it is written, as it is called, or cut short, even from several options."""
    if _matches(found.spelled, token) or _matches(found.option.name, token):
        return True
    known = found.spelled in level.profile.options
    return level.profile.syntax.abbreviations and not known and _is_cut_short(found.spelled, token)


def _is_cut_short(spelled: str, token: str) -> bool:
    return len(spelled) > 2 and spelled.startswith("--") and token.startswith(spelled)


def _may_be_option(level: Parsed, operands: list[Word]) -> bool:
    """Some word could turn out to be the option: its text is not known, or names that match a glob begin with `-`."""
    return level.problem is not None or bool(level.may_be_options) or any(word.splits for word in operands)


def _operand_is(word: Word, token: str) -> bool:
    if word.kind == "choice":
        return any(_operand_is(choice, token) for choice in word.choices)
    if word.kind == "unknown":
        return word.splits or _can_begin(word.prefix, token)
    if word.kind == "glob":
        return _can_begin(re.split(r"[*?\[\\]", word.text)[0], token)
    return _matches(word.text, token)


def _can_begin(prefix: str, token: str) -> bool:
    """Whether a word with the prefix may match the token."""
    certain = token.partition("*")[0]
    return prefix.startswith(certain) if len(prefix) > len(certain) else certain.startswith(prefix)


def _unprofiled(word: Word, token: str) -> bool:
    """Without a profile each word with a dash may be anything: the option, a cluster, a value."""
    if word.literal is None:
        return any(_unprofiled(choice, token) for choice in word.choices) or _operand_is(word, token)
    return any(_matches(part, token) for part in _parts(word.text))


def _parts(text: str) -> Iterator[str]:
    yield text
    yield text.partition("=")[0]
    if text.startswith("-") and not text.startswith("--"):
        yield from ("-" + letter for letter in text[1:])


def _matches(text: str, token: str) -> bool:
    return text == token or ("*" in token and _pattern(token).fullmatch(text) is not None)


@lru_cache(maxsize=1024)
def _pattern(token: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in token.split("*")), re.DOTALL)
