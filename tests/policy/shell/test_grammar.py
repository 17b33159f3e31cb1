"""Lists, pipelines, compound commands and functions."""

from collections.abc import Callable

import pytest

from ci_agent.policy.shell.analysis import analyse
from ci_agent.policy.shell.program import UnparsableError

Commands = Callable[[str], list[str]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a; b & c && d || e | f |& g\nh", "abcdefgh"),
        ("a &&\n\nb ||\n c |\n d", "abcd"),
        ("! a && ! b; time c; time -p d", "abcd"),
        ("{ a; b; }; ( c; d ); ( (e) )", "abcde"),
        ("if a; then b; elif c; then d; else e; fi", "abcde"),
        ("while a; do b; done; until c; do d; done", "abcd"),
        ("for x in 1; do a; done; for x\ndo b; done; for ((i = 0; i < 1; i++)); do c; done", "abc"),
        ("case x in (a) b;; 'c'|d*) e;; *) f; g; esac", "befg"),
        ("f() { a; }; function g { b; }\nfunction h() { c; }; i() ( d )", "abcd"),
        ("a # b\n# c; d\nb;# e\n\n  c", "abc"),
        ("a \\\n -x && \\\n b \\\n\nc", "abc"),
        ("((1)) && a; [[ x == y ]] || b", "ab"),
        ("{ a; } > x 2>&1 | b; if c; then d; fi < y; while e; do f; done > z", "abcdef"),
    ],
)
def test_every_command_is_found_wherever_it_stands(text: str, found: str, commands: Commands) -> None:
    names = [line.split()[0] for line in commands(text)]
    assert [name for name in names if len(name) == 1] == list(found)


def test_reserved_words_and_braces_are_ordinary_behind_a_name(commands: Commands) -> None:
    assert commands("echo if then } { do done ! in") == ["echo if then '}' '{' do done '!' in"]
    assert commands("'if' a; \\while b") == ["if a", "while b"]


def test_a_call_is_that_of_a_function_only_where_it_is_certainly_defined(commands: Commands) -> None:
    assert commands("f; f() { a; }; f") == ["f", "a", "f (function)"]
    assert commands("if x; then f() { a; }; fi; f") == ["x", "a", "f"]
    assert commands("(f() { a; }); f") == ["a", "f"]
    assert commands("f() { f; }") == ["f (function)"]
    assert commands("f() { a; }; . x; f") == ["a", ". x", "f"]


def test_a_pipe_tells_which_command_feeds_it() -> None:
    def feeders(text: str) -> list[int | None]:
        return [command.reads_from for command in analyse(text).commands]

    assert feeders("a 2>/dev/null | b | c; d") == [None, 0, 1, None]
    assert feeders("a |& b; (c) | d; e | f < g; h | { i; }; j > k | l") == [None] * 10


def test_the_program_behind_a_function_is_named_by_command(commands: Commands) -> None:
    assert commands("ls() { command ls -l; }; ls") == ["ls (function)", "command ls -l"]


@pytest.mark.parametrize(
    "text",
    ["ls | | wc", "ls &&", "ls ||", "ls |", "& ls", "; ls", "ls ;; wc", "ls & ; wc", "(ls", "ls)", "{ ls; ",
     "{ ls }", "()", "{ }", "if ls; then fi", "if ls; fi", "while ls; done", "for 1 in a; do ls; done",
     "for x in a; ls; done", "done", "then ls", "case x in a) ls;;", "case x a) ls;; esac", "f() ls",
     "f( a ) { ls; }", "X=1 if", "X=1 { ls; }", "> x if", "ls 'a", 'ls "a', "ls `a", "ls $(a", "ls ${a", "ls \\",
     "ls (a)", "ls a(b)", "a=(b", "ls > ", "ls >;", "ls > > a", "ls <(a", "ls a<(b)", "ls $((1)", "((1)", "[[ a",
     "[[ a && ]]", "[[ ]]", "in x", "! ! ls | time", "time"],
)  # fmt: skip
def test_what_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(UnparsableError):
        analyse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("coproc ls", "coproc"),
        ("select x in a; do ls; done", "select"),
        ("cd() { ls; }", "function named like"),
        ("f() { ls; }; unset f", "unset"),
        ("l\\\ns", "continuation line in the middle of a word"),
        ("ls &\\\n& rm", "continuation line in the middle of an operator"),
        ("ls |\\\n& rm", "continuation line in the middle of an operator"),
        ("echo $\\\n(rm)", "continuation line"),
        ("ls a\u00a0b", "blank that only looks like one"),
        ("for x in a; { ls; }", "expected 'do'"),
        ("a[0]=x", "not certainly an associative array"),
        ("a=([0]=x)", "element of an array"),
        ("declare a[0]=x", "element of an array"),
        ("ls {a,b", "braces"),
        ("ls {a..Z}", "braces"),
        ("ls {$x,a}b", "without braces"),
        ("ls {a$,b}x", "without braces"),
        ("echo $[1 + 1]", "old form"),
        ("echo ${x@P}", "parameter expansion"),
        ("echo ${!x}", "parameter expansion"),
        ("echo ${1:=a}", "parameter expansion"),
        ("echo ${IFS:=a}", "changes what the shell does"),
        ("echo ${LC_ALL:=a}", "character encoding"),
        ("a[$x]=x", "not certainly an associative array"),
        ("declare -A m; m[$x$y]=1", "element of an array"),
        ("declare -A m; m[a]+=1", "element of an array"),
        ("declare -A m; m[a]=1 ls", "element of an array"),
        ("declare -A m; m[a]=1 >o", "element of an array"),
        ("declare -A m; x=$(m[a]=1)", "element of an array"),
        ("declare -A m=([$x]=1)", "element of an array"),
        ("declare -A m=(a 1)", "element of an array"),
        ("declare -a m=([a]=1)", "element of an array"),
        ("declare -A BASH_ALIASES", "changes what the shell does"),
        ("echo ${x:-<(rm)}", "parameter expansion"),
        ("echo \"${x:-'a'}\"", "parameter expansion"),
        ("echo ${x:-{a}}", "parameter expansion"),
        ("echo ${a[$(rm)]}", "parameter expansion"),
        ("echo $((a[0]))", "arithmetic"),
        ("echo $(($(rm)))", "arithmetic"),
        ("echo $((`rm`))", "arithmetic"),
        ("$((ls) )", "arithmetic"),
        ("echo ${x:0:-1}", "parameter expansion"),
        ("((ls) | wc)", "arithmetic"),
        (r"echo $'\x00' ", "not certain"),
        (r"echo $'\u4f60' ", "not certain"),
        (r"echo $'\cA' ", "not certain"),
        ('echo "`ls \\"a\\"`"', "backticks"),
        ("echo `a\\\nb`", "backticks"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(UnparsableError, match=reason):
        analyse(text)
