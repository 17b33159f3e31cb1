"""`.dockerignore` as docker's documentation and its matcher have it."""

import pytest

from ci_agent.policy.matchers.ignore_lists import leaves_out, leaves_out_all_beneath, parse_list


def _out(text: str, *paths: str) -> list[bool]:
    ignoring = parse_list(text)
    return [leaves_out(ignoring, path.split("/"), _free) for path in paths]


def _free(cost: int) -> None:
    assert cost > 0


@pytest.mark.parametrize(
    ("text", "left_out", "sent"),
    [
        ("temp*", ["temp", "temporary.txt", "temp/x"], ["src/temp", "a/temp/x"]),
        ("*/temp*", ["src/temp", "src/temporary/x"], ["temp", "a/b/temp"]),
        ("**/*.go", ["a.go", "a/b/c.go"], ["a.gox", "go"]),
        ("/foo/bar", ["foo/bar", "foo/bar/x"], ["foo", "x/foo/bar", "foo/barn"]),
        ("foo/", ["foo", "foo/x"], ["foox"]),
        ("foo/**", ["foo/x", "foo/x/y"], ["foo"]),
        ("**", ["a", "a/b"], ["Dockerfile", ".dockerignore"]),
        ("*.md\n!README*.md\nREADME-secret.md", ["a.md", "README-secret.md"], ["README.md", "README-a.md"]),
        ("*\n!src", ["a", "b/c"], ["src", "src/a", "src/a/b"]),
        ("*\n!src\nsrc/private", ["src/private", "src/private/a"], ["src/a"]),
        ("node_modules\n!node_modules/kept", ["node_modules/a"], ["node_modules/kept", "node_modules/kept/a"]),
        ("# a\n #b", ["#b"], ["# a", "a", "b"]),
        ("a\r\n b \r\n", ["a", "b"], ["c"]),
        ("a//b\n./c/.\n", ["a/b", "c"], ["a"]),
        ("a{b,c}\n(d)\ne+\nf|g\n^h", [], ["a{b,c}", "ab", "(d)", "d", "e+", "ee", "f", "f|g", "^h", "h"]),
        ("a$\nb.c", ["a$", "b.c"], ["a", "bxc"]),
        ("a\n!a*/|/b", [], ["a", "a/c"]),
        ("*\n/!b", [], ["a", "b"]),
        ("*\n!!b", ["a"], ["!b"]),
        ("/ a\nb/\x85\n\x1cc", ["b", "b/\x85"], ["a", " a", "c", "\x1cc"]),
        ("a\n!", ["a"], ["b"]),
        ("a[b]\nc?d\n\\e\nf**g", [], ["ab", "cxd", "e", "\\e", "fg", "a[b]"]),
        ("a\n!a[b]", [], ["a", "ab"]),
        ("a\n!?", [], ["a"]),
        ("..\n../a\n.", [], ["a", "b"]),
        ("a\n!..\n", [], ["a"]),
    ],
)
def test_the_last_pattern_that_fits_decides(text: str, left_out: list[str], sent: list[str]) -> None:
    assert _out(text, *left_out) == [True] * len(left_out)
    assert _out(text, *sent) == [False] * len(sent)


def test_older_readers_look_at_one_folder_above_where_a_name_is_taken_in_again() -> None:
    text = "**/private\n!a/b/private/shown\n"
    assert _out(text, "private/key", "x/private/key", "a/b/private/key") == [True, True, False]


def test_a_folder_is_passed_by_only_where_nothing_is_taken_in() -> None:
    assert leaves_out_all_beneath(parse_list("node_modules\n"), ["node_modules"], _free)
    assert leaves_out_all_beneath(parse_list("**/node_modules\n"), ["web", "node_modules"], _free)
    assert not leaves_out_all_beneath(parse_list("node_modules\n!x\n"), ["node_modules"], _free)
    assert not leaves_out_all_beneath(parse_list("node_modules/*.js\n"), ["node_modules"], _free)
