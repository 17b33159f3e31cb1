"""The shell's own commands: those that evaluate text are refused, or known to have nothing to evaluate."""

from collections.abc import Callable

import pytest

from ci_agent.policy.shell.analysis import analyse
from ci_agent.policy.shell.program import UnparsableError

Commands = Callable[[str], list[str]]


@pytest.mark.parametrize(
    "text",
    ["alias ls=rm", "unalias x", "bind -x '\"a\":rm'", "compgen -C rm", "complete -C rm ls", "enable -f ./x ls",
     "fc -s", "history -w x", "let 'a[$(rm)]=1'", "shopt -s extglob", "suspend", "hash -p ./x ls", "hash ls",
     "mapfile -C rm -c 1", "set -f", "set -o posix", "set -k", "set -a", "set +B", "set $x", "set -eu -o", "set -",
     "test -v 'a[$(rm)]'", "[ -v 'a[$(rm)]' ]", "[ -v \"$x\" ]", "[ \"$x\" \"$y\" ]", "[ $x = a ]", "test *",
     "[ -R 'a[0]' ]", "[[ -v $x ]]", "[[ -v 'a[$(rm)]' ]]", "[[ 'a[$(rm)]' -eq 0 ]]", "[[ $x -lt 1 ]]",
     "printf -v 'a[$(rm)]' x", "printf -v $x y", "printf -va x", "printf \"$x\"", "printf $x", "wait -p x",
     "printf %n PATH", "printf -v x -- '%n' PATH", "printf 'a%%%-3.*hhn' 1 PATH", "command printf %ln PATH",
     "printf \"a$x\" PATH", "printf a$x", "for x in %n b; do printf \"a$x\" PATH; done",
     "wait -np 'a[$(rm)]' 1",
     "OPTIND='a[$(rm)]'", "OPTIND=$x ls", "HISTCMD=1", "read OPTIND", "printf -v OPTIND x", "export OPTIND=1",
     "wait $x", "read 'a[$(rm)]'", "read $x", "read -a 'a[0]'", "read -p $x y", "read -Q", "getopts ab 'x[0]'",
     "getopts $x y", "mapfile 'a[0]'", "unset 'a[$(rm)]'", "unset $x", "unset -f ls", "unset -n x",
     "declare -n x=y", "declare -i x=y", "declare -u x", "declare -f", "declare 'a[$(rm)]=1'",
     "declare -a 'b=($(rm))'", "declare -a b=\"$x\"", "a=(1); declare a=\"$x\"", "export $x", "export X={a,b}",
     "readonly -f x", "local $x", "command $x", "command -Q ls", "builtin $x", "command export X=1", "'export' X=1",
     "x=cd; $x /", "x=eval; $x ls", "for x in ls eval; do $x y; done", "e[v]al ls", "trap \"rm $x\" EXIT",
     "trap 'rm' EXIT; trap 'ls (' EXIT"],
)  # fmt: skip
def test_what_might_evaluate_text_or_change_the_shell_is_refused(text: str) -> None:
    with pytest.raises(UnparsableError):
        analyse(text)


@pytest.mark.parametrize(
    "text",
    ["set -euo pipefail", "set -Eeuxo pipefail", "set +e", "set -- a b", "set -x", "shift 2", "hash -r", "type ls",
     "umask 022", "test -f x", "test -v x", "[ -n \"$x\" ]", "[ \"$x\" = a ]", "[ ! -d \"$x\" ]",
     "[ \"$a\" -gt 1 -o \"$b\" != c ]", "[ -n \"$(ls)\" ]", "[ $? -eq 0 ]", "[ $# -gt 1 ]",
     "[[ -n $x && $y == *.py || ! -f z ]]", "[[ $x =~ ^(a|b)+$ ]]", "[[ ( $# -gt 1 ) ]]", "printf '%s' $x",
     "printf -v x '%s' \"$y\"", "printf \"a $x\"", "printf '%d%%\\n' 1", "printf '100% new'", "printf '%%n %%%%n' x",
     "printf '%(n)T' x", "wait", "wait $!", "sleep 1 & p=$!; wait $p",
     "read -r -p \"$x\" -t 5 a b", "read -ra words", "IFS= read -rd '' x", "mapfile -t lines", "getopts ab: x",
     "unset x y", "unset -v x", "declare -x X=1", "declare -r X", "local x=1 y", "export X Y=1 Z=\"$z\"",
     "export \"X=$y\"", "export -n X", "readonly X=1", "declare -a x=(a b)", "command -v ls", "command ls",
     "builtin echo", "exec ls", "exec 3> x", "eval \"$x\"", ". ./x", "source x", "trap - EXIT", "trap '' INT",
     "trap", "x=echo; $x y"],
)  # fmt: skip
def test_what_evaluates_nothing_is_understood(text: str) -> None:
    assert analyse(text).commands


def test_what_a_trap_installs_is_among_the_commands(commands: Commands) -> None:
    assert commands("trap 'rm -f \"$x\"; wc' EXIT INT") == [
        "trap 'rm -f \"$x\"; wc' EXIT INT",
        "rm -f word(...)",
        "wc",
    ]


def test_a_test_is_one_command_with_its_operators(commands: Commands) -> None:
    assert commands("[[ -f a && ! ( $x == *.py ) ]]") == ["'[[' -f a '&&' '!' '(' word(...) == '*.py' ')' ']]'"]
    assert commands(r"[[ a =~ ^v[0-9]+\.(x|y)$ ]]") == [r"'[[' a '=~' '^v[0-9]+\.(x|y)$' ']]'"]
