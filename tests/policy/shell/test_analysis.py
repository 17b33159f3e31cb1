"""Characters, bounds, dialects, and what was measured to fool a single reading."""

import inspect
import sys
import threading
from collections.abc import Callable

import pytest

from ci_agent.policy.shell.analysis import MAX_BYTES, analyse
from ci_agent.policy.shell.program import BoundExceededError, UnparsableError
from ci_agent.policy.shell.reader import MAX_COMMANDS, MAX_NESTING, MAX_PIECES

Commands = Callable[[str], list[str]]


@pytest.mark.parametrize("character", ["\0", "\1", "\b", "\v", "\f", "\r", "\x1b", "\x7f", "\x85", "\x9b", "\ud800"])
def test_control_characters_are_refused_also_in_quotes(character: str) -> None:
    with pytest.raises(UnparsableError, match="control character"):
        analyse(f"ls 'a{character}b'")


def test_text_without_a_command_has_none() -> None:
    assert analyse("").commands == analyse(" \n# ls\n").commands == ()


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("ls '" + "a" * MAX_BYTES + "'", "bytes"),
        ("ls '" + "é" * (MAX_BYTES // 2) + "'", "bytes"),
        ("ls;" * (MAX_COMMANDS + 1), "commands"),
        ("cat <<E\nE\n" * MAX_COMMANDS, "commands"),
        ("ls " + "a " * MAX_PIECES, "words"),
        ("ls " + "''" * MAX_PIECES, "words"),
        ("\n" * MAX_PIECES + "\nls", "words"),
        ("echo " + "$(" * (MAX_NESTING + 1) + "ls" + ")" * (MAX_NESTING + 1), "nesting"),
        ("( " * (MAX_NESTING + 1) + "ls" + ")" * (MAX_NESTING + 1), "nesting"),
        ("if a; then " * (MAX_NESTING + 1) + "ls" + "; fi" * (MAX_NESTING + 1), "nesting"),
        ("echo " + "${x:-" * (MAX_NESTING + 1) + "}" * (MAX_NESTING + 1), "nesting"),
        ("ls " + "{" * 1_000 + "a,b" + "}" * 1_000, "nesting"),
        ("ls $'" + "\\n" * MAX_PIECES + "'", "words"),
        ("[[ a =~ " + "|" * MAX_PIECES + " ]]", "words"),
        ("for d in a b c d; do (cd $d; " + "ls;" * (MAX_COMMANDS // 2) + "); done", "commands"),
        ("ls {1..100000}", "words"),
        ("ls " + "{a,b}" * 20, "words"),
        ("ls " + "{1..900} " * 10, "words"),
    ],
)
def test_more_than_the_bounds_is_refused(text: str, bound: str) -> None:
    with pytest.raises(BoundExceededError, match=bound):
        analyse(text)


@pytest.mark.parametrize(
    "text",
    [
        "ls '" + "a" * (MAX_BYTES - 5) + "'",
        "ls; " * (MAX_COMMANDS - 1),
        " && ".join(["ls"] * (MAX_COMMANDS - 1)),
        "ls " + "a " * (MAX_PIECES // 2 - 10),
        "echo " + "$(" * (MAX_NESTING - 1) + "ls" + ")" * (MAX_NESTING - 1),
        "echo " + '"$(' * (MAX_NESTING - 1) + "ls" + ')"' * (MAX_NESTING - 1),
        "ls " + '> "$(ls ' * (MAX_NESTING - 1) + "ls" + ')"' * (MAX_NESTING - 1),
        "x=" + '"$(x=' * (MAX_NESTING - 1) + "ls" + ')"' * (MAX_NESTING - 1),
        "ls " + "< <(ls " * (MAX_NESTING - 1) + "ls" + ")" * (MAX_NESTING - 1),
        "if if " * (MAX_NESTING // 2 - 1) + "ls" + "; then ls; fi; then ls; fi" * (MAX_NESTING // 2 - 1),
        "f() { " * (MAX_NESTING - 1) + "ls" + "; }" * (MAX_NESTING - 1),
        "{ " * (MAX_NESTING - 1) + "ls" + "; }" * (MAX_NESTING - 1),
        "cat <<'E'\n" + "line $(x)\n" * 12_000 + "E\n",
    ],
)
def test_up_to_the_bounds_is_understood(text: str) -> None:
    assert analyse(text).commands


def test_a_deep_program_is_understood_from_deep_in_the_stack() -> None:
    def call(depth: int) -> int:
        return call(depth - 1) if depth else len(analyse("echo " + '"$(' * deep + "ls" + ')"' * deep).commands)

    deep = MAX_NESTING - 1
    assert call(400) == deep + 1


def test_where_no_thread_is_to_be_had_a_program_too_deep_for_this_stack_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def call(depth: int) -> object:
        return (
            call(depth - 1) if depth else analyse("echo " + '"$(' * (MAX_NESTING - 1) + "ls" + ')"' * (MAX_NESTING - 1))
        )

    all_but_60_frames = sys.getrecursionlimit() - len(inspect.stack()) - 60
    assert call(all_but_60_frames)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(BoundExceededError, match="too deep to be read here: can't start new thread"):
        call(all_but_60_frames)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ls\n\\rm -rf x", "rm"),
        ("ls # c\n\\rm -rf x", "rm"),
        ("{ ls\n\\rm -rf x\n}", "rm"),
        ("cat <<E\n`rm`\nE", "rm"),
        ("cat <<E\n${x:-`rm`}\nE", "rm"),
        ("cat <<E\nx\n E\nls '\nE\nrm -rf b\nls ''\n: '", None),
        ("cat <<E\nE\\\nOF\nrm\nE", None),
        ("cat <<EOF\nE\\\nOF\nrm\nEOF", None),
        ("ls \\\r\nrm", None),
        ("echo ${x:-`rm`}", "rm"),
        ("echo ${x+`rm`}", "rm"),
        ("echo ${x:=`rm`}", "rm"),
        ("echo ${x:-<(rm)}", None),
        ("[[ a =~ `rm` ]]", "rm"),
        ("r\\\nm x", None),
        ("ls\vx", None),
        ("coproc x { rm; }", None),
        ("time rm x", "rm"),
        ("[[ 'a[$(rm)]' -eq 1 ]]", None),
        ("find . >/dev/null -delete", "find"),
        (">o {fd}>o rm", "rm"),
        ("<<< [a]>o rm", "rm"),
        ("cat <<A <<B\na\nA\nb\nB\nrm", "rm"),
        ("cat <<'E'; rm\nE", "rm"),
        ("cat <<'E' 2>&1 | rm\nE", "rm"),
        ("cat <<E\n\\$(ls)\nE\nrm", "rm"),
        ("ls $'a\\\\'; rm", "rm"),
        ("ls <> a; rm", "rm"),
        ("ls >& '$(rm)'", None),
        ("ls >&-x; rm", None),
        ("ls || x=1 && rm $x", "rm"),
        ("x=$(ls <<E | wc a; rm b\nx\nE\n)", None),
        ("x=$(ls <<E\nx\nE\nwc a; rm b)", None),
        ("ls {a$,b}x", None),
        ("x=$(a=(b\\|c); ls\nrm y)", None),
        ("ls <(a=(b c))", None),
        ('ls "$(time case q in q) rm;; esac)"', None),
        ("ls <(time (rm))", None),
        ("ls $(time rm x | wc)", "rm"),
        ("x=`a=(b c); rm y`", "rm"),
        ("a=(b # )\nc)", None),
    ],
)
def test_what_a_single_reading_missed_is_seen_or_refused(text: str, name: str | None) -> None:
    if name is None:
        with pytest.raises(UnparsableError):
            analyse(text)
    else:
        assert name in [command.words[0].literal for command in analyse(text).commands if command.words]


@pytest.mark.parametrize(
    "text",
    ["ls $'a\\'; rm #'", 'ls $"a"', "[[ a && rm ]]", "((rm))", "for ((i=0;i<1;i++)); do ls; done",
     "function ls { rm; }", "X+=1 ls", "ls &> a", "cd a &> b && ls", "ls |& wc", "ls {a,b}", "ls <(rm)", "ls <<< a",
     "ls {fd}> a", "ls 10> a", "a=(b)", "declare x=1", "export x=$y", "ls > *", "ls > $x", "case a in b) ls;& esac",
     "time ls", "ls ${x//a/b}", "ls ${x^^}", "ls ${x:0:1}", "ls ${a[0]}", "${a[@]}", "ls ?", "ls [a-c]*",
     "pushd a", "command pushd a", "source a", "builtin ls", "exec -a b ls", "exec -- ls", "eval -- ls", "declare -x a",
     "typeset a", "mapfile a", "dirs", "help"],
)  # fmt: skip
def test_what_not_every_sh_reads_alike_is_refused_for_sh(text: str) -> None:
    with pytest.raises(UnparsableError, match="not every sh"):
        analyse(text, dialect="posix")


@pytest.mark.parametrize(
    "text",
    ["ls -la | wc > a 2>&1", "cd a && make", "x=1; ls $x", "if [ -f a ]; then ls; fi", "cat <<'E'\nx\nE", "ls {} \\;",
     'export x="$y"', "f() { ls; }; f", "for f in *.py; do wc \"$f\"; done", "echo $((1 + 1))", 'ls > "$x"'],
)  # fmt: skip
def test_what_every_sh_reads_alike_is_understood_for_sh(text: str) -> None:
    assert analyse(text, dialect="posix") == analyse(text)
