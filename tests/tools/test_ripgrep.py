"""With ripgrep and without it: the same answers."""

import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ci_agent.cancellation import Cancelled, CancelToken
from ci_agent.errors import ToolError
from ci_agent.process import Processes
from ci_agent.tool import ToolResult
from ci_agent.tools.file_access import FileAccess
from ci_agent.tools.grep import create_grep_tool
from ci_agent.tools.line_search import LinePattern, compile_pattern, search_lines
from ci_agent.tools.ripgrep import Ripgrep, find_ripgrep, may_match, rust_expression
from ci_agent.tools.text_stream import detect_encoding, utf8_chunks
from ci_agent.workspace import open_workspace

Call = Callable[..., ToolResult]

RIPGREP = shutil.which("rg")
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed")


@pytest.fixture
def ripgrep(processes: Processes) -> Ripgrep:
    assert RIPGREP is not None
    return Ripgrep(Path(RIPGREP), processes)


LINES = [
    b"def main():",
    b"class FooError(Exception):",
    b"  return x*2  # K\xe2\x84\xaa s\xc5\xbf",
    b"caf\xc3\xa9 b\xc3\xa9b\xc3\xa9",
    b"caf\xe9 wrong \xff bytes",
    b"a\xed\xa0\x80b surrogate",
    b"",
    b"crlf\r",
    b"\r",
    b"lone\rcr",
    b"tab\there",
    b"\x0b\x0c vertical",
    b"word-word_word 123 \xd9\xa3",
    b"[brackets] {braces} (parens) $dollar ^caret \\back",
    b"a" * 300,
    b"nbsp\xc2\xa0here \xe2\x80\xa8 separator",
]

FILES = {
    **{f"line{number:02}": line + b"\n" for number, line in enumerate(LINES)},
    **{f"last{number:02}": b"before\n" + line for number, line in enumerate(LINES)},
    "utf8-mark": b"\xef\xbb\xbfdef main\n",
    "utf16": "\ufeffdef main é\r\n".encode("utf-16-le"),
    "utf16-be": "\ufeffcafé b\n".encode("utf-16-be"),
    "utf32": "\ufeffdef main\n".encode("utf-32-le"),
    "utf32-be": "\ufeffdef main\n".encode("utf-32-be"),
    "binary": b"def main\0\n",
    "late-nul": b"x\n" * 5000 + b"\0def main\n",
    "empty": b"",
    "-dash": b"def main\n",
    "-": b"def main\n",
    "new\nline": b"def main\n",
    "sp ace": b"def main\n",
}

PIECES = r"""
a b e é . .* .+ .? ^ $ \b \B \w \W \d \D \s \S [a-z] [^a-z] [^é] [\w-] [^\s] [^\d] []a] [^]] [a&&b] [^&&a] [a--b]
[[:alpha:]] \( \) ( ) (?: (?i) | * + ? {2} {1,3} {,2} {x \. \\ \t \n \r \x41 \pL \Qa.b\E def main Error
K s r - \- / 1 \{ # & ~ [a\]b] [\-a] [a-]
"""
PATTERNS = st.lists(st.sampled_from([*PIECES.split(), " ", "\u017f", "\u212a"]), min_size=1, max_size=5).map("".join)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name, data in FILES.items():
        (root / name).write_bytes(data)
    (root / os.fsdecode(b"caf\xe9")).write_bytes(b"def main\n")
    return root


@needs_ripgrep
@settings(deadline=None, max_examples=60)
@example(r"caf.$", False, False)
@example(r"a.b", False, False)
@example(r"a[^x]b", False, False)
@example(r"\Wrf", False, True)
@example(r"^$", False, False)
@example(r"", False, False)
@example(r"def main", True, False)
@example(r"k", False, True)
@example(r"(parens) $dollar ^caret \back", True, False)
@example(r"cr\b$", False, False)
@given(pattern=PATTERNS, literal=st.booleans(), ignore_case=st.booleans())
def test_ripgrep_names_every_file_in_which_something_matches(
    processes: Processes, tree: Path, pattern: str, literal: bool, ignore_case: bool
) -> None:
    expression = rust_expression(pattern, literal=literal, ignore_case=ignore_case)
    if expression is None or RIPGREP is None:
        return
    try:
        compiled = compile_pattern(pattern, literal=literal, ignore_case=ignore_case)
    except ToolError:
        return
    matching = {name for name in os.listdir(tree) if matches(compiled, (tree / name).read_bytes())}
    named = may_match(Ripgrep(Path(RIPGREP), processes), expression, tree, os.listdir(tree), CancelToken())
    assert named is None or matching <= named, expression


def matches(pattern: LinePattern, data: bytes) -> bool:
    encoding = detect_encoding(data[:8000])
    if encoding is None:
        return False
    return any(search_lines(utf8_chunks(BytesIO(data), encoding, CancelToken()), pattern, 0))


@pytest.mark.parametrize(
    ("pattern", "expression"),
    [
        ("plain text", "plain text"),
        (r"f\(x\)$", r"f\(x\)(?:\r?$)"),
        (r"\w+ \bé", r"[0-9A-Za-z_]+ (?-u:\b)é"),
        (r"[\w-]{2,}", r"[0-9A-Za-z_-]{2,}"),
        (r"(a|b)(?:c)*?", r"(a|b)(?:c)*?"),
        (r"[[:alpha:]]", None),
        (r"[a&&b]", None),
        (r"a{,3}", None),
        (r"(?i)a", None),
        (r"\pL", None),
        (r"\x41", None),
        (r"a\n", None),
        (r"[\D]", None),
    ],
)
def test_only_what_both_read_alike_is_handed_on(pattern: str, expression: str | None) -> None:
    assert rust_expression(pattern, literal=False, ignore_case=False) == expression


def test_case_is_ignored_for_ascii_alone() -> None:
    assert rust_expression("a.b", literal=True, ignore_case=True) == r"(?i:a\.b)"
    assert rust_expression("é", literal=True, ignore_case=True) is None
    assert rust_expression("a\nb", literal=True, ignore_case=False) is None


@needs_ripgrep
@pytest.mark.parametrize(
    "arguments",
    [
        {"pattern": "def main"},
        {"pattern": "needle 7"},
        {"pattern": "needle", "limit": 5, "context": 1},
        {"pattern": "NEEDLE 1.$", "ignore_case": True},
        {"pattern": "(", "literal": True},
        {"pattern": "caf.", "glob": "*0*"},
        {"pattern": "^$", "limit": 1000},
        {"pattern": "nowhere at all"},
    ],
)
def test_the_answers_are_the_same_with_ripgrep_and_without(
    tmp_path: Path, call: Call, ripgrep: Ripgrep, arguments: dict[str, object]
) -> None:
    for number in range(150):
        (tmp_path / f"{number:03}").write_text(f"needle {number}\n\nother\n")
    for folder in ("sub", "zzz"):
        (tmp_path / folder).mkdir()
        for name, data in FILES.items():
            (tmp_path / folder / name).write_bytes(data)
    files = FileAccess(open_workspace(tmp_path), lambda _effect, path: not path.name.startswith("00"))
    assert call(create_grep_tool(files, ripgrep), **arguments) == call(create_grep_tool(files), **arguments)


@needs_ripgrep
def test_a_file_without_a_match_is_not_opened_when_there_are_many(tmp_path: Path, call: Call, ripgrep: Ripgrep) -> None:
    for number in range(300):
        (tmp_path / f"{number:03}").write_text("needle\n" if number == 250 else "hay\n")
    asked: Counter[str] = Counter()

    def permits(_effect: str, path: Path) -> bool:
        asked[path.name] += 1
        return True

    call(create_grep_tool(FileAccess(open_workspace(tmp_path), permits), ripgrep), pattern="needle")
    folder = {tmp_path.name: 1}
    assert asked == folder | {f"{number:03}": 2 if number == 250 else 1 for number in range(300)}


@needs_ripgrep
def test_configuration_and_ignore_files_do_not_reach_ripgrep(
    tmp_path: Path, ripgrep: Ripgrep, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("--invert-match\n--max-count=0\n")
    (tmp_path / ".ignore").write_text("*\n")
    (tmp_path / "a").write_text("x\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "config"))
    assert may_match(ripgrep, "x", tmp_path, ["a"], CancelToken()) == frozenset({"a"})


@pytest.mark.parametrize(
    "script", ["exit 2", "printf 'a\\0'; exit 2", "kill -9 $$", "head -c 9000000 /dev/zero", None], ids=str
)
def test_a_ripgrep_that_fails_narrows_nothing(processes: Processes, tmp_path: Path, script: str | None) -> None:
    program = tmp_path / "rg"
    if script is not None:
        program.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        program.chmod(0o755)
    assert may_match(Ripgrep(program, processes), "x", tmp_path, ["a"], CancelToken()) is None


def test_cancelling_ends_ripgrep(processes: Processes, tmp_path: Path) -> None:
    program = tmp_path / "rg"
    program.write_text("#!/bin/sh\nPATH=/usr/bin:/bin\nexec sleep 60\n")
    program.chmod(0o755)
    cancel = CancelToken()
    timer = threading.Timer(0.1, cancel.cancel, ["enough"])
    timer.start()
    with pytest.raises(Cancelled):
        may_match(Ripgrep(program, processes), "x", tmp_path, ["a"], cancel)
    timer.join()


def test_ripgrep_is_looked_for_on_the_path_and_never_in_the_workspace(processes: Processes, tmp_path: Path) -> None:
    workspace, outside = tmp_path / "ws", tmp_path / "bin"
    for folder in (workspace, outside):
        folder.mkdir()
        (folder / "rg").write_text("#!/bin/sh\n")
        (folder / "rg").chmod(0o755)
    (tmp_path / "sly").mkdir()
    (tmp_path / "sly/rg").symlink_to(workspace / "rg")
    access = open_workspace(workspace)
    path = os.pathsep.join([str(workspace), "", ".", "relative", str(tmp_path / "sly")])
    assert find_ripgrep(path, access, processes) is None
    assert find_ripgrep(f"{path}:{outside}", access, processes) == Ripgrep(outside / "rg", processes)
    assert find_ripgrep("", access, processes) is None
