"""When the value of a variable is known."""

from collections.abc import Callable

import pytest

from ci_agent.policy.shell.analysis import analyse
from ci_agent.policy.shell.program import UnparsableError

Commands = Callable[[str], list[str]]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x=a; ls $x", "a"),
        ("x=a && ls $x", "a"),
        ("export x=a; ls $x", "a"),
        ("x=a; y=$x.b; ls $y", "a.b"),
        ("x='a b'; ls \"$x\"", "'a b'"),
        ("x='a b'; ls $x", "a b"),
        ("x='*'; ls $x", "glob(*)"),
        ("x='*'; ls \"$x\"", "'*'"),
        ("x=; ls $x a", "a"),
        ("x=a; (ls $x)", "a"),
        ("(x=a; ls $x)", "a"),
        ("ls -j$(nproc)", "word(-j...)"),
        ("ls -j$(nproc; cat x)", "words(-j...)"),
        ("ls -j$(nproc | cat)", "words(-j...)"),
        ("ls -j$(nproc && cat x)", "words(-j...)"),
        ("ls -j$(nproc x)", "words(-j...)"),
        ("ls -j$(nprocs)", "words(-j...)"),
        ("nproc() { cat x; }; ls -j$(nproc)", "words(-j...)"),
        ("ls $(nproc)", "words(...)"),
        ("ls -j$(PATH=. nproc)", "words(-j...)"),
        ("ls -j$(nproc < x)", "words(-j...)"),
        ("if true; then x=a; ls $x; fi", "a"),
        ("ls $HOME", "/home/ci"),
        ("for x in a b; do ls $x; done", "choice(a | b)"),
        ('for x in a b; do ls "-$x.c"; done', "choice(-a.c | -b.c)"),
        ('for x in a *.py; do ls "$x"; done', "choice(a | glob(*.py))"),
        ("for x in *.py; do ls $x; done", "split-choice(glob(*.py))"),
        ('for x in *.py; do ls "$x.bak"; done', "choice(edited(*.py))"),
        ('for x in *.py; do (cd a && ls "$x"); done', "word(...)"),
        ("for x in a 'b c'; do ls $x; done", "words(...)"),
        ("for x in a $y; do ls $x; done", "words(...)"),
        ("for x in a b; do x=c; ls $x; done", "words(...)"),
        ("for x in a b; do :; done; ls $x", "words(...)"),
        ("for x in a b; do :; done; for x in c d; do ls $x; done", "choice(c | d)"),
        ("x=a; for x in b c; do ls $x; done", "choice(b | c)"),
        ("for x in a b; do read x; ls $x; done", "words(...)"),
        ("for x in a b; do f; ls $x; done; f() { x=c; }", "words(...)"),
        ("for x in a b; do ls $x; done; trap 'x=c' EXIT", "words(...)"),
        ("i=0; while no; do i=$((i + 1)); ls $i; done", "word(...)"),
        ("sleep 1 & p=$!; ls $p", "words(...)"),
        ("{ x=a; } > f; ls $x", "words(...)"),
        ("export x=a > f; ls $x", "words(...)"),
        ("ls $x; x=a", "words(...)"),
        ("x=a; x=b; ls $x", "words(...)"),
        ("x=a; x+=b; ls $x", "words(...)"),
        ("true && x=a; ls $x", "words(...)"),
        ("true || x=a && ls $x", "words(...)"),
        ("if true; then x=a; fi; ls $x", "words(...)"),
        ("(x=a); ls $x", "words(...)"),
        ("x=a | cat; ls $x", "words(...)"),
        ("x=a & ls $x", "words(...)"),
        ("x=a ls $x", "words(...)"),
        ("x=a; read x; ls $x", "words(...)"),
        ("x=a; unset x; ls $x", "words(...)"),
        ("x=a; f() { x=b; }; f; ls $x", "words(...)"),
        ("x=a; f() { local x; }; ls $x", "words(...)"),
        ("x=a; printf -v x b; ls $x", "words(...)"),
        ("x=a; mapfile x; ls $x", "words(...)"),
        ("x=a; getopts ab x; ls $x", "words(...)"),
        ("x=a; eval y; ls $x", "words(...)"),
        ("x=a; . y; ls $x", "words(...)"),
        ("x=a; : {x}>&1; ls $x", "words(...)"),
        ("local x=a; ls $x", "words(...)"),
        ("HOME=/x; cd a; HOME=/y; ls $HOME", "words(...)"),
        ("cd a; ls $PWD", "words(...)"),
        ("OLDPWD=a; ls $OLDPWD", "words(...)"),
        ("x='a\\b'; ls $x", "words(...)"),
        ("x=a; ls ${x:-b} ${x%a}", "words(...)"),
    ],
)
def test_a_value_is_known_only_when_nothing_else_can_have_changed_it(text: str, word: str, commands: Commands) -> None:
    lines = [line.removeprefix("[in None] ").removeprefix("[in a] ") for line in commands(text)]
    assert [line for line in lines if line.startswith("ls") or " ls " in line][-1].split("ls ", 1)[1] == word


@pytest.mark.parametrize(
    "text",
    [
        "echo $((x))",
        "echo $((x + 1)); x=1",
        "if true; then x=1; fi; echo $((x))",
        "x=a; echo $((x))",
        "x=$(cat f); echo $((x))",
        "x=1; x=$(cat f); echo $((x))",
        "x=1; read x; ((x++))",
        "(( 1 && (x = 1) )); echo $((x))",
        'x=$(cat f); [[ "$x" -gt 5 ]]',
        "[[ a[0] -eq 1 ]]",
        "for ((i = 0; i < n; i++)); do ls; done",
    ],
)
def test_arithmetic_reads_only_what_is_known_to_be_a_number(text: str) -> None:
    with pytest.raises(UnparsableError, match=r"number|arithmetic"):
        analyse(text)


@pytest.mark.parametrize("text", ["readonly x=1; x=2", "x=1; readonly x", "declare -r x=1; read x", "readonly x; x=1"])
def test_a_read_only_variable_that_might_get_another_value_is_refused(text: str) -> None:
    with pytest.raises(UnparsableError, match="read-only"):
        analyse(text)


@pytest.mark.parametrize(
    "text",
    [
        "x=1; echo $((x + 1)) $(( $x * 2 )) $(( ${x} ))",
        "x=1; x=$((x + 1)); ((x++)); ((x += 2)); echo $((x))",
        "n=5; for ((i = 0; i < n; i++)); do ls; done",
        "for i in 1 2 3; do echo $((i * 2)); done",
        "for i in {1..3}; do echo $((i * 2)); done",
        "x=3; [[ $x -gt 2 && $# -lt 1 && $? -eq 0 ]]",
        "echo $((RANDOM % 5)) $((16#ff + 0)) ".replace("16#ff", "0xff"),
    ],
)
def test_arithmetic_on_numbers_is_understood(text: str) -> None:
    assert analyse(text).commands


@pytest.mark.parametrize(
    "text",
    ["IFS=:", "IFS=: ls", "for IFS in a; do :; done", "read IFS", "printf -v PS4 x", "unset IFS", "export GLOBIGNORE=x",
     "PS4='$(ls)'", "CDPATH=/", "POSIXLY_CORRECT=1 ls", "BASH_ENV=x", "RANDOM=a", "{PS1}>x", "((IFS = 1))",
     "LC_ALL=ja_JP.SJIS", "export LANG=$x", "trap 'IFS=x' EXIT"],
)  # fmt: skip
def test_variables_that_change_how_the_shell_reads_are_refused(text: str) -> None:
    with pytest.raises(UnparsableError, match="a new value for"):
        analyse(text)


def test_harmless_forms_of_the_same_variables_are_understood(commands: Commands) -> None:
    assert commands("IFS=, read -r a") == ["IFS=, read -r a", "a=word(...)"]
    assert commands("LC_ALL=C ls; export LC_ALL=C.UTF-8") == ["LC_ALL=C ls", "export LC_ALL=C.UTF-8"]


def test_every_change_of_a_variable_is_told(commands: Commands) -> None:
    assert commands("PATH=x") == ["PATH=x"]
    assert commands("for PATH in x; do :; done") == ["PATH=choice(x)", ":"]
    assert commands("read -r PATH") == ["read -r PATH", "PATH=word(...)"]
    assert commands("printf -v PATH x") == ["printf -v PATH x", "PATH=word(...)"]


@pytest.mark.parametrize("text", ["OPTIND=1; while getopts ab x; do ls; done", "OPTIND=1 ls", "OPTIND=$# ls"])
def test_getopts_may_be_told_to_begin_again(text: str) -> None:
    assert "ls" in [command.words[0].literal for command in analyse(text).commands if command.words]


_REVISION_HASH = "0" * 40


@pytest.mark.parametrize(
    ("text", "stand_ins"),
    [
        ('git show "$(git rev-parse HEAD)"', ("", "HEAD", _REVISION_HASH)),
        ('sha=$(git rev-parse --short HEAD); git show "$sha"', ("", "HEAD", _REVISION_HASH)),
        ("sha=$(git rev-parse HEAD~1 2>/dev/null) && git show ${sha}", ("", "HEAD~1", _REVISION_HASH)),
        ("base=$(git merge-base origin/main HEAD); git diff $base..HEAD", ("..HEAD", f"{_REVISION_HASH}..HEAD")),
        ("make -j$(nproc)", ("-j", "-j1")),
        ('make "-j$(nproc)"', ("-j", "-j1")),
        ('x=$(nproc); make "-j$x"', ("-j", "-j1")),
        ('x=$(nproc); x=$(cat y); make "$x"', ()),
        ('x=$(nproc); read -r x; make "$x"', ()),
        ('x=$(nproc)$y; make "$x"', ()),
        ('x=$(nproc); make "${x#1}"', ()),
        ("make $(nproc)$(nproc)*", ()),
        ("nproc() { cat y; }; make $(nproc)", ()),
        ("git() { cat y; }; git show $(git rev-parse HEAD)", ()),
        ("git show $(git rev-parse HEAD main)", ()),
        ("git show $(git rev-parse main..HEAD)", ()),
        ("git show $(git rev-parse HEAD^@)", ()),
        ("git show $(git rev-parse -x)", ()),
        ("git show $(git rev-parse --abbrev-ref HEAD)", ()),
        ("git show $(git rev-parse $x)", ()),
        ("git show $(git rev-parse HEAD 2>&1)", ()),
        ("git show $(GIT_DIR=x git rev-parse HEAD)", ()),
        ("git show $(git rev-parse HEAD; cat y)", ()),
        ("git show $(git merge-base --all main HEAD)", ()),
        ("git show $(git -C x rev-parse HEAD)", ()),
    ],
)
def test_what_certainly_is_one_commit_or_number_is_known_so_far(text: str, stand_ins: tuple[str, ...]) -> None:
    assert analyse(text).commands[-1].words[-1].stand_ins == stand_ins


def test_a_word_that_may_be_empty_may_be_missing_where_it_is_not_quoted() -> None:
    def splits(text: str) -> bool:
        return analyse(text).commands[-1].words[-1].splits

    assert splits("make $(nproc)")
    assert splits("make $(nproc)$(nproc)")
    assert not splits('make "$(nproc)"')
    assert not splits("git diff $(git merge-base a b)..HEAD")


def test_an_empty_home_folder_is_no_word_to_every_sh_but_one_to_bash() -> None:
    text = "HOME=$x; rm ~"
    assert analyse(text, dialect="posix").commands[-1].words[-1].splits
    assert not analyse(text).commands[-1].words[-1].splits
