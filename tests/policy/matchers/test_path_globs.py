import re

import pytest

from ci_agent.policy.matchers.path_globs import covers_beneath, matches_parts, parse_path_glob


def fits(glob: str, path: str) -> bool:
    return any(matches_parts(parts, path.split("/")) for parts in parse_path_glob(glob).alternatives)


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/**", "src/.hidden/b", True),
        ("src/**", "src", False),
        ("src/**", "src-evil/a", False),
        ("src/*", "src/a/b", False),
        ("src/*.py", "src/.py", True),
        ("**", "a", True),
        ("**", "a/b/c", True),
        ("**/.env", ".env", True),
        ("**/.env", "a/b/.env", True),
        ("**/.env", "a/.env.local", False),
        ("**/.env.*", "config/.env.local", True),
        ("a/**/b", "a/b", True),
        ("a/**/b/**/c", "a/x/b/c/b/y/c", True),
        ("a/**/b/**/c", "a/x/c", False),
        ("{src,tests}/**/*.{ts,tsx}", "tests/ui/a.tsx", True),
        ("{src,tests}/**/*.{ts,tsx}", "docs/a.ts", False),
        ("./src//x", "src/x", True),
        (r"app/\[id\]/page", "app/[id]/page", True),
        (r"a\*b", "a*b", True),
        (r"a\*b", "axb", False),
        (r"what\?", "what?", True),
    ],
)
def test_a_glob_matches_name_by_name(glob: str, path: str, expected: bool) -> None:
    assert fits(glob, path) is expected


@pytest.mark.parametrize(
    ("glob", "anchor"), [("src/**", "workspace"), ("/etc/**", "root"), ("~/.ssh/**", "home"), ("**/.env", "workspace")]
)
def test_a_glob_says_where_it_starts(glob: str, anchor: str) -> None:
    assert parse_path_glob(glob).anchor == anchor


@pytest.mark.parametrize(
    ("glob", "problem"),
    [
        ("", "empty"),
        ("src/", r"\*\*"),
        ("src/**.py", "whole name"),
        ("../x", "climbs"),
        ("a/../b", "climbs"),
        ("~root/x", "only `~/`"),
        ("src/?.py", "no meaning"),
        ("src/[ab].py", "no meaning"),
        ("{/etc,src}/x", "separate globs"),
    ],
)
def test_a_glob_that_would_be_misread_is_refused_with_what_to_write(glob: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_path_glob(glob)


@pytest.mark.parametrize(
    ("glob", "folder", "expected"),
    [
        ("src/**", "src", True),
        ("src/**", "src/sub", True),
        ("src/*", "src", False),
        ("src/**/*.py", "src", False),
        ("**", "a", True),
        ("docs/**", "src", False),
    ],
)
def test_everything_beneath_a_folder_fits_only_under_a_closing_globstar(glob: str, folder: str, expected: bool) -> None:
    (parts,) = parse_path_glob(glob).alternatives
    assert covers_beneath(parts, tuple(folder.split("/"))) is expected


def test_many_globstars_take_no_time() -> None:
    assert not fits("**/a/" * 40 + "b", "/".join("a" for _ in range(2_000)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("src/{a,b", "a brace in 'src/{a,b' has no partner"),
        ("src/a,b}", "a brace in 'src/a,b}' has no partner"),
        ("$HOME/**", "variables are not known when a policy is read, in '$HOME/**'"),
        ("${PWD}/x", "variables are not known when a policy is read"),
        ("%USERPROFILE%/x", "variables are not known when a policy is read"),
        ("x/***", "`***` in 'x/***' has no meaning"),
    ],
)
def test_a_slip_that_would_match_nothing_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_path_glob(text)


@pytest.mark.parametrize("text", [r"a\{b", "100%/x", "a$/b", "a$1/b", "{a,b}/{c}"])
def test_names_with_such_characters_are_still_names(text: str) -> None:
    assert parse_path_glob(text).text == text
