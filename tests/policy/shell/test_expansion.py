"""What the words of a command become."""

from collections.abc import Callable

import pytest

Commands = Callable[[str], list[str]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r"""a\ b 'c d' "e f" g'h'"i" ''""", "'a b' 'c d' 'e f' ghi ''"),
        (r'"\$x \`y\` \"z\" \\ \n"', r"""'$x `y` "z" \ \n'"""),
        ('"a\\\nb"', "ab"),
        ("'a\\\nb'", "'a\\\nb'"),
        (r"$'\x41\102\u0043\t\'\q'", "'ABC\t'\"'\"'\\q'"),
        ('$"text"', "text"),
        ("a$ $ $% 5$", "'a$' '$' '$%' '5$'"),
        ("你好 é", "'你好' 'é'"),
        ("100% a%20b @ , : = ^ ! # not read", "100% a%20b @ , : = '^' '!'"),
    ],
)
def test_quotes_and_backslashes_are_removed(text: str, words: str, commands: Commands) -> None:
    assert commands(f"ls {text}") == [f"ls {words}"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{a,b}{1,2}", "a1 a2 b1 b2"),
        ("a{b,{c,d}}e", "abe ace ade"),
        ("{1..3} {03..1} {a..c} {c..a} {1..7..3} {-1..1}", "1 2 3 03 02 01 a b c c b a 1 4 7 -1 0 1"),
        ("{a,} {,}x", "a x x"),
        ("{} {a} stash@{0} HEAD^{commit} a}", "'{}' '{a}' 'stash@{0}' 'HEAD^{commit}' 'a}'"),
        ("'{a,b}' \"{a,b}\" \\{a,b} {'a,b',c}", "'{a,b}' '{a,b}' '{a,b}' a,b c"),
        ("{a,b}*", "glob(a*) glob(b*)"),
        ('"$x"{,.bak}', "word(...) word(...)"),
    ],
)
def test_braces_become_words(text: str, words: str, commands: Commands) -> None:
    assert commands(f"ls {text}") == [f"ls {words}"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("~ ~/x", "/home/ci /home/ci/x"),
        ("~root ~+ ~-/x", "word(...) word(...) word(...)"),
        ("'~' \\~ a~ a:~ --x=~/y", "'~' '~' 'a~' 'a:~' '--x=~/y'"),
        ("x=~/y x=a:~", "word(x=...) word(x=a:...)"),
    ],
)
def test_a_tilde_is_the_home_folder_where_bash_expands_it(text: str, words: str, commands: Commands) -> None:
    assert commands(f"ls {text}") == [f"ls {words}"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("*.py a? [a-c]x", "glob(*.py) glob(a?) glob([a-c]x)"),
        ("'*.py' \\* \"a?\" [ a[ b]", "'*.py' '*' 'a?' '[' 'a[' 'b]'"),
        ("'a*b'*", r"glob(a\*b*)"),
        ("[a'-'c]\"!\"", r"glob([a\-c]\!)"),
    ],
)
def test_names_of_files_are_matched_unless_quoted(text: str, words: str, commands: Commands) -> None:
    assert commands(f"ls {text}") == [f"ls {words}"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('$x "$x" a$x "b${x}c"', "words(...) word(...) words(a...) word(b...)"),
        ('$@ "$@" "$*" $1 "$1"', "words(...) words(...) word(...) words(...) word(...)"),
        ("$? $# $$ ${#x} $((1+2))", "word(...) word(...) word(...) word(...) word(...)"),
        ('"${a[@]}" "${a[*]}" "${a[0]}" ${#a[@]}', "words(...) word(...) word(...) word(...)"),
        ('"${x:-a}" ${x%.py} "${x//a/b}" "${x:0:7}" "${x,,}"', "word(...) words(...) word(...) word(...) word(...)"),
        ('"$x"/*.py src/$x', "words(...) words(src/...)"),
    ],
)
def test_what_nobody_knows_is_unknown_and_may_split_unless_quoted(text: str, words: str, commands: Commands) -> None:
    assert commands(f"ls {text}") == [f"ls {words}"]


def test_commands_run_wherever_a_word_holds_them(commands: Commands) -> None:
    text = 'ls $(a) "$(b "$(c)")" `d` "${x:-$(e)}" ${y:+`f`} <(g) >(h) < <(i) <<< "$(j)" > "$(k)"'
    assert [line.split()[0] for line in commands(text)] == [*"acbdefghijk", "ls"]


def test_backticks_are_decoded_once_for_each_level(commands: Commands) -> None:
    assert commands(r"echo `ls \`wc a\\ b\` \$x`") == [
        "wc 'a b'",
        "ls words(...) words(...)",
        "echo words(...)",
    ]
