"""What must be known of the expanded words of the shell's own commands: that none of them evaluates text."""

import re
from itertools import pairwise
from typing import Final

from ci_agent.policy.shell.program import UnparsableError
from ci_agent.policy.shell.syntax import Span
from ci_agent.policy.words import Word

_STORES: Final = re.compile(r"(?<!%)(?:%%)*%[-#'+ 0-9.*]*[hjlLtz]*n")
"""By `%n`, `printf` gives the variable that the next argument names the number of characters printed so far."""


def check_call(name: str, arguments: tuple[Word, ...], span: Span) -> None:
    """Refuse words that make one of the shell's own commands evaluate text."""
    if name in {"test", "["}:
        _check_test(arguments)
    elif name == "printf" and arguments:
        _check_printf(arguments)
    elif name == "wait" and not all(map(_is_kept_apart, arguments)):
        raise UnparsableError("`wait` with an argument that is not known", span)
    elif name == "wait" and any(_is_option(word, "p") for word in arguments):
        raise UnparsableError("`wait -p` gives a variable a value", span)


def _is_option(word: Word, letter: str) -> bool:
    """Whether the word is an option, or a cluster of options with it."""
    return (word.literal or "").startswith("-") and letter in (word.literal or "")


def _is_kept_apart(word: Word) -> bool:
    """Whether the word is certainly no option, and certainly one word or one and more that it begins."""
    return word.literal is not None or (word.prefix != "" and not word.prefix.startswith("-"))


def _check_printf(arguments: tuple[Word, ...]) -> None:
    if not _is_kept_apart(arguments[0]):
        raise UnparsableError("`printf` with a format that is not known; write printf '%s' ...", arguments[0].span)
    behind = 2 if arguments[0].literal == "-v" else 0
    behind += any(word.literal == "--" for word in arguments[behind : behind + 1])
    for form in arguments[behind : behind + 1]:
        if len(arguments) == behind + 1 and not form.splits:
            return
        if any(word.literal is None or _STORES.search(word.text) for word in form.choices or (form,)):
            raise UnparsableError("`printf` that may give a variable a value; write printf '%s' ...", form.span)


def _check_test(arguments: tuple[Word, ...]) -> None:
    """`test -v NAME[TEXT]` runs what is substituted in TEXT. Whatever might be `-v` must not stand before a word that
    might be such a name."""
    for word in arguments:
        if word.splits or word.kind == "glob":
            raise UnparsableError("`test` on a value that may become several words; quote it", word.span)
    for word, following in pairwise(arguments):
        certain = word.literal is not None or (word.prefix != "" and not word.prefix.startswith("-"))
        if (not certain or word.literal in {"-v", "-R"}) and (
            following.literal is None or "[" in following.literal[1:]
        ):
            raise UnparsableError("`test` that might evaluate a word", following.span)


def ends_shell(arguments: tuple[Word, ...]) -> bool:
    """Whether `exit` with these arguments certainly ends the shell."""
    return not arguments or (len(arguments) == 1 and (arguments[0].literal or "").isdecimal())


def sets_errexit(arguments: tuple[Word, ...]) -> bool:
    texts = [word.literal or "" for word in arguments]
    options = texts[: texts.index("--")] if "--" in texts else texts
    return any(text.startswith("-") and "e" in text for text in options) or "errexit" in options
