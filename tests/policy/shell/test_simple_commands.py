"""Assignments, words and redirections of simple commands."""

from collections.abc import Callable

import pytest

from ci_agent.policy.shell.analysis import analyse
from ci_agent.policy.shell.program import UnparsableError

Commands = Callable[[str], list[str]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ls > a", "ls write:a"),
        ("ls >a 2>b >>c <d <>e", "ls write:a write:b append:c read:d read_write:e"),
        ("ls >|f &>g &>>h >&i", "ls write:f write:g append:h write:i"),
        ("ls 2>&1 >&2 <&0 2>&- 3>&1- <<<x", "ls"),
        ("ls 2>a3>b", "ls write:a3 write:b"),
        ("ls 2 > a", "ls 2 write:a"),
        ("ls > ~/a", "ls write:/home/ci/a"),
        ("ls > $x.txt", "ls write:words(...)"),
        ('ls > "$x"', "ls write:word(...)"),
        ("ls > *", "ls write:glob(*)"),
        ("ls > 'a b'", "ls write:'a b'"),
        ("> a", "write:a"),
        ("X=1 > a", None),
        ("find . >/dev/null -delete", "find . -delete write:/dev/null"),
        ("git log 2>&1 --output=x", "git log --output=x"),
        ("<<<x >o cat a <<<y", "cat a write:o"),
        ("X=1 Y='a b' Z= ls", "X=1 Y='a b' Z='' ls"),
        ("X=$(a) ls", None),
        ("X=1", "X=1"),
        ("X+=1 ls", "X=word(...) ls"),
        ("X=~/a:b ls", "X=/home/ci/a:b ls"),
        ("X={a,b} Y=* ls", "X='{a,b}' Y='*' ls"),
        ("ls X=1", "ls X=1"),
        ("a=(b 'c d' *)", "a=word(...)"),
        ("export A=$x B=~/y C", "export word(A=...) B=/home/ci/y C"),
    ],
)  # fmt: skip
def test_one_simple_command(text: str, found: str | None, commands: Commands) -> None:
    if found is not None:
        assert commands(text) == [found]


def test_an_assignment_that_substitutes_runs_its_commands(commands: Commands) -> None:
    assert commands('X=`a` Y="$(b)" ls') == ["a", "b", "X=word(...) Y=word(...) ls"]
    assert commands("a=($(b) `c`)") == ["b", "c", "a=word(...)"]


@pytest.mark.parametrize(
    "text",
    ["ls > {a,b}", "ls > $x $y >", "ls >& '$(rm)'", "ls >&$x", "ls >& *", "ls >&--", "ls >& -x", "ls <&$x",
     "ls <&a", "ls 1234>x", "ls > (a)", "ls >\\\n>x", "ls 2\\\n>x", "ls {a[0]}>x", "ls {1}>x", "x='a b'; ls > $x",
     "x=; ls > $x"],
)  # fmt: skip
def test_redirections_that_are_not_certain_are_refused(text: str) -> None:
    with pytest.raises(UnparsableError):
        analyse(text)


def test_a_variable_gets_the_number_of_a_descriptor(commands: Commands) -> None:
    assert commands("ls {fd}>a") == ["fd=word(...)", "ls write:a"]
    assert commands("ls {fd}<<<a") == ["fd=word(...)", "ls"]
    assert commands(">o {fd}>p rm -rf src") == ["fd=word(...)", "rm -rf src write:o write:p"]


def test_spans_are_places_in_the_text() -> None:
    text = 'cd a && X=1 ls "b c" > d # e'
    command = analyse(text).commands[1]
    assert text[slice(*command.span)] == 'X=1 ls "b c" > d'
    assert [text[slice(*word.span)] for word in command.words] == ["ls", '"b c"']
    assert [text[slice(*one.span)] for one in command.assignments] == ["X=1"]
    assert [text[slice(*one.span)] for one in command.redirects] == ["> d"]


def test_what_was_decoded_has_the_span_of_its_source() -> None:
    text = "ls `wc \\`rm\\``; trap 'a \"b\"' EXIT"
    spans = {command.words[0].text: text[slice(*command.span)] for command in analyse(text).commands}
    assert spans["wc"] == spans["rm"] == "`wc \\`rm\\``"
    assert spans["a"] == "'a \"b\"'"
