"""Where commands run, as `cd` moves the shell."""

from collections.abc import Callable

import pytest

from ci_agent.policy.shell.analysis import analyse

Commands = Callable[[str], list[str]]


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("ls", ""),
        ("cd a && ls", "a"),
        ("cd a && cd b && ls", "a/b"),
        ("cd a/b && cd .. && ls", "a"),
        ("cd a && cd ../ && ls", ""),
        ("cd ./a/ && ls", "a"),
        ("cd -- a && ls", "a"),
        ("cd /tmp//x && ls", "/tmp/x"),
        ("cd / && cd a && ls", "/a"),
        ("cd && ls", "/home/ci"),
        ("cd ~/x && ls", "/home/ci/x"),
        ("cd a || exit 1; ls", "a"),
        ("cd a || { echo no; exit; }; ls", "a"),
        ("set -e; cd a; ls", "a"),
        ("{ cd a; } && ls", "a"),
        ("if cd a; then ls; fi", "a"),
        ("! cd a || ls", "a"),
        ("command cd a && ls", "a"),
        ("\\cd a && ls", "a"),
        ("time cd a >/dev/null && ls", "a"),
        ("(cd a); ls", ""),
        ("cd a | cat; ls", ""),
        ("cd a & ls", ""),
        ("x=$(cd a && pwd); ls", ""),
        ("cat <(cd a); ls", ""),
        ("cd a && false || ls", None),
        ("cd a; ls", None),
        ("cd a || exit 1 2; ls", None),
        ("cd a || exit 1 > log; ls", None),
        ("cd a || exit $x; ls", None),
        ("cd a || X=1 exit 1; ls", None),
        ("set -e > x; cd a; ls", None),
        ("set -e; . x; cd a; ls", None),
        ("{ cd a || exit 1; } > x; ls", None),
        ("if true; then cd a || exit 1; fi > x; ls", None),
        ("cd a || (exit 1); ls", None),
        ("cd a || return; ls", None),
        ("set -e; set +e; cd a; ls", None),
        ("set -e; if cd a; then :; fi; ls", None),
        ("set -e; cd a || true; ls", None),
        ("set -e; { cd a && true; }; ls", None),
        ("set -e; if true; then cd a && true; fi; ls", None),
        ("set -e; { cd a; }; ls", "a"),
        ("(set -e); cd a; ls", None),
        ("cd a || cd b; ls", None),
        ("if x; then cd a; fi; ls", None),
        ("case x in y) cd a;; esac; ls", None),
        ("for x in a b; do cd a; done; ls", None),
        ("while cd a; do ls; done", None),
        ("cd - && ls", None),
        ("cd $x && ls", None),
        ("cd a* && ls", None),
        ("cd a b && ls", None),
        ("cd -P a && ls", None),
        ("cd '' && ls", None),
        ("cd .. && ls", None),
        ("cd a/../b && ls", None),
        ("cd a && cd ../b && ls", None),
        ("pushd a && ls", None),
        ("popd; ls", None),
        ("eval 'cd a'; ls", None),
        ("f() { cd a; }; f; ls", None),
        ("trap 'cd a' EXIT; ls", None),
        ("cd /tmp && f() { cd a; }; ls", None),
    ],
)
def test_the_folder_of_ls_is_known_only_when_it_is_certain(text: str, folder: str | None) -> None:
    found = [command for command in analyse(text, {"HOME": "/home/ci"}).commands if command.words[:1]]
    assert [command.folder for command in found if command.words[0].text == "ls"] == [folder]


def test_a_loop_over_folders_is_followed_once_for_each(commands: Commands) -> None:
    assert commands('for d in a b; do (cd "$d" && ls "$d"); done; ls') == [
        "d=choice(a | b)",
        "cd a",
        "[in a] ls a",
        "cd b",
        "[in b] ls b",
        "ls",
    ]
    assert commands('for d in a; do cd "$d" && ls; done') == ["d=choice(a)", "[in None] cd a", "[in None] ls"]
    assert commands('for d in */; do (cd "$d" && ls); done')[-1] == "[in None] ls"


def test_a_folder_search_path_makes_names_uncertain() -> None:
    text = "cd a && ls; cd ./a && ls"
    assert [command.folder for command in analyse(text, {"CDPATH": "/x"}).commands][1::2] == [None, None]
    assert analyse("cd ./a && ls", {"CDPATH": "/x"}).commands[1].folder == "a"


def test_redirections_open_files_where_the_command_begins(commands: Commands) -> None:
    assert commands("cd a > x && ls > y") == ["cd a write:x", "[in a] ls write:y"]
    assert commands("{ cd a && ls; } > x") == ["write:x", "cd a", "[in a] ls"]
