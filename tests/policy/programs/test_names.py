"""Which names of files a command prints, and what xargs makes of them."""

from collections.abc import Callable

import pytest

from ci_agent.policy.effects import Effects
from ci_agent.policy.programs.interpret import interpret
from ci_agent.policy.programs.names import names_printed
from ci_agent.policy.words import Word, literal_word

ReadWords = Callable[[str], tuple[Word, ...]]


@pytest.mark.parametrize(
    ("line", "folders"),
    [
        ("find src -name '*.py'", "src"),
        ("find", "."),
        ("find -H a b -type f -print0", "a b"),
        ("find -L a b", None),
        ("find src -printf x", None),
        ("find src -exec cat {} ;", None),
        ("find src -ls", None),
        ("find src -fprint x", "src"),
        ("git ls-files", "."),
        ("git ls-files -s", None),
        ("git diff --name-only main", "."),
        ("git diff main", None),
        ("git diff --no-index --name-only a b", None),
        ("grep -rl TODO src", "src"),
        ("grep -l TODO", "."),
        ("grep -rn TODO src", None),
        ("rg -l TODO", "."),
        ("rg --files src", "src"),
        ("rg TODO", None),
        ("ls", None),
        ("echo /etc/passwd", "/etc/passwd"),
        ("echo a b", None),
        ("echo -e a", None),
        ("echo a=b", None),
        ("printf %s a", None),
        ("cat list", None),
        ("frobnicate", None),
        ("head -5", None),
        ("find «$x»", None),
    ],
)
def test_names_printed(line: str, folders: str | None, read_words: ReadWords) -> None:
    names = names_printed(read_words(line))
    assert (None if names is None else " ".join(word.text for word in names)) == folders


@pytest.mark.parametrize(
    ("line", "passes"),
    [
        ("head -5", True),
        ("head -c 5", False),
        ("sort -u", True),
        ("uniq", True),
        ("uniq -c", False),
        ("grep -v test", True),
        ("grep -e a -e b", True),
        ("grep -o x", False),
        ("grep -n x", False),
        ("grep x file", False),
        ("grep -e a file", False),
        ("grep -rl x", None),
        ("sort file", False),
        ("tail -n 3", True),
        ("sed s,^,/etc/,", False),
        ("cat", False),
        ("tr a b", False),
    ],
)
def test_filters_pass_whole_lines_on(line: str, passes: bool | None, read_words: ReadWords) -> None:
    before = (literal_word("src"),)
    names = names_printed(read_words(line), before)
    assert names == {True: before, False: None, None: (literal_word("."),)}[passes]


def test_xargs_hands_on_what_is_known_of_its_input(
    read_words: ReadWords, describe: Callable[[Effects], list[str]]
) -> None:
    (inner,) = interpret(read_words("xargs wc -l"), input_names=(literal_word("src"),)).commands
    assert describe(interpret(inner.words)) == ["read src beneath", "may be options: 2"]


def test_xargs_with_an_unknown_input_cannot_be_known(
    read_words: ReadWords, describe: Callable[[Effects], list[str]]
) -> None:
    (inner,) = interpret(read_words("xargs rm")).commands
    assert describe(interpret(inner.words)) == [
        "delete what xargs reads",
        "unknown: what xargs reads may be an option of rm",
    ]


def test_xargs_that_replaces_hands_on_one_name(read_words: ReadWords, describe: Callable[[Effects], list[str]]) -> None:
    (inner,) = interpret(read_words("xargs -I{} cp {} out"), input_names=(literal_word("src"),)).commands
    assert describe(interpret(inner.words)) == ["read src beneath", "write out <- {}", "may be options: 1"]


def test_found_names_are_beneath_where_find_starts(
    read_words: ReadWords, describe: Callable[[Effects], list[str]]
) -> None:
    (inner,) = interpret(read_words("find src tests -exec grep -n x {} +")).commands
    assert describe(interpret(inner.words)) == ["read src beneath", "read tests beneath"]
