import time
from contextlib import suppress

import pytest

from ci_agent.errors import ToolError
from ci_agent.tools.globs import InvalidGlobError, compile_glob, compile_glob_argument

PATHS = [
    "a.py",
    "b.ts",
    "src/a.py",
    "src/b.tsx",
    "src/deep/c.py",
    "tests/a.py",
    "src",
    "src/deep",
    ".env",
    "é.md",
    "[x]",
]
FOLDERS = {"src", "src/deep"}


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.py", ["a.py", "src/a.py", "src/deep/c.py", "tests/a.py"]),
        ("a.py", ["a.py", "src/a.py", "tests/a.py"]),
        ("./*.py", ["a.py", "src/a.py", "src/deep/c.py", "tests/a.py"]),
        ("/*.py", ["a.py"]),
        ("src/*.py", ["src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/deep/c.py"]),
        ("src/**", ["src/a.py", "src/b.tsx", "src/deep/c.py", "src/deep"]),
        ("**/deep", ["src/deep"]),
        ("**", PATHS),
        ("*.{py,ts}", ["a.py", "b.ts", "src/a.py", "src/deep/c.py", "tests/a.py"]),
        ("{src,tests}/*.{py,tsx}", ["src/a.py", "src/b.tsx", "tests/a.py"]),
        ("{src/{deep,x},tests}/*", ["src/deep/c.py", "tests/a.py"]),
        ("*/", ["src", "src/deep"]),
        ("!*.py", ["b.ts", "src/b.tsx", "src", "src/deep", ".env", "é.md", "[x]"]),
        (".*", [".env"]),
        ("?.md", ["é.md"]),
        ("[é].md", ["é.md"]),
        ("[!é].md", []),
        (r"\[x\]", ["[x]"]),
        ("[[]x]", ["[x]"]),
        ("[[:alpha:]].py", ["a.py", "src/a.py", "src/deep/c.py", "tests/a.py"]),
        ("src[!x]a.py", []),
        ("src[+-9]a.py", []),
        ("{a}.py", []),
        ("a.p{y", []),
    ],
)
def test_a_glob_means_the_paths_that_it_looks_like(glob: str, expected: list[str]) -> None:
    compiled = compile_glob(glob)
    assert [path for path in PATHS if compiled.matches(path, is_folder=path in FOLDERS)] == expected


@pytest.mark.parametrize(
    ("glob", "problem"),
    [
        ("", "the glob is empty"),
        ("/", "the glob is empty"),
        ("!", "the glob is empty"),
        ("[a", "a bracket is not closed"),
        ("[[:letters:]]", "[:letters:] is no character class"),
        ("a\\", "the glob ends in a backslash"),
        ("[/]", "brackets never match a slash"),
        ("{a,b}" * 7, "the braces leave more than 100 alternatives"),
        ("a" * 1001, "the glob is longer than 1,000 characters"),
        ("a\ud800", "the glob contains a lone surrogate"),
    ],
)
def test_a_glob_that_can_match_nothing_says_why(glob: str, problem: str) -> None:
    with pytest.raises(InvalidGlobError) as error:
        compile_glob(glob)
    assert str(error.value).startswith(problem)
    with pytest.raises(ToolError, match=r"^pattern: .* A glob looks like \*\.py or src/\*\*/\*\.\{ts,tsx\}\.$"):
        compile_glob_argument("pattern", glob)


def test_hostile_globs_cost_little() -> None:
    started = time.process_time()
    for glob in ("*a" * 400, "**/" * 300 + "x", "{" * 900, "[" * 900, "{a,b" * 200, "?" * 900 + "x"):
        with suppress(InvalidGlobError):
            assert not compile_glob(glob).matches("a/" * 400 + "b", is_folder=False)
    assert time.process_time() - started < 10
