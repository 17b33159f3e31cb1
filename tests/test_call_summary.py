"""A failed call in a line: what a person must read to know why."""

import pytest

from ci_agent.call_summary import summarise_arguments, summarise_failure
from ci_agent.json_types import Json

NOTE = "[The sandbox refused something if it says so above: this call may write $TMPDIR and nothing else.]"
TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1\nurllib.error.URLError: <urlopen error>\n'


@pytest.mark.parametrize(
    ("printed", "summary"),
    [
        ("fatal: bad revision 'x'\nUse '--' to separate\nexit status 128", "exit status 128: fatal: bad revision 'x'"),
        (
            f"cp: cannot create 'a': Permission denied\nmake: *** [Makefile:7: install] Error 1\n{NOTE}\nexit status 2",
            "exit status 2 (perhaps the sandbox): cp: cannot create 'a': Permission denied",
        ),
        (f"{TRACEBACK}make: *** [f] Error 1\nexit status 2", "exit status 2: urllib.error.URLError: <urlopen error>"),
        (
            f"FAILED t.py::t - PermissionError: [Errno 13] Permission denied\n1 failed\n{NOTE}\nexit status 1",
            "exit status 1 (perhaps the sandbox): FAILED t.py::t - PermissionError: [Errno 13] Permission denied",
        ),
        ("Error: it broke\n\nNode.js v20\nexit status 1", "exit status 1: Error: it broke"),
        ("cc\na.c:1: oops\n\nexit status 2", "exit status 2: a.c:1: oops"),
        (
            "warning: Not a git repository\nusage: git diff\n\n    --ws  highlight errors\nexit status 129",
            "exit status 129: warning: Not a git repository",
        ),
        (
            "usage: tool [-h]\n\noptions:\n  --strict  errors\ntool: error: unknown argument\nexit status 2",
            "exit status 2: tool: error: unknown argument",
        ),
        ("error: failed to push\nhint: it is missing here\nexit status 1", "exit status 1: error: failed to push"),
        ("(no output)\nexit status 1", "exit status 1"),
        ("exit status 1", "exit status 1"),
        ("started: error\nkilled by signal 9 (SIGKILL)", "killed by signal 9 (SIGKILL)"),
    ],
)
def test_a_failed_command_tells_its_status_and_the_line_that_says_why(printed: str, summary: str) -> None:
    assert summarise_failure(printed, {"exit_status": 1}) == summary


def test_another_failure_tells_its_first_line() -> None:
    assert summarise_failure("y is a folder\nuse ls", None) == "y is a folder"


def test_of_several_mistakes_the_first_is_told() -> None:
    text = "The arguments of edit do not satisfy its schema.\n- old: missing, and required\n- new: missing"
    assert (
        summarise_failure(text, None) == "The arguments of edit do not satisfy its schema. old: missing, and required"
    )


def test_the_reason_is_told_that_stands_behind_what_became_of_it() -> None:
    text = "src/a.py was not changed.\nEdit 1: its old text does not occur.\nThe nearest is line 3."
    assert summarise_failure(text, None) == "src/a.py was not changed. Edit 1: its old text does not occur."


def test_colours_are_left_out() -> None:
    printed = "\x1b[1m\x1b[31mE   assert 1 == 2\x1b[0m\n\x1b[38;5;9m1 failed\x1b[m in 0.12s\nexit status 1"
    assert summarise_failure(printed, {"exit_status": 1}) == "exit status 1: 1 failed in 0.12s"


@pytest.mark.parametrize(
    ("arguments", "summary"),
    [
        ({"pattern": "return", "path": "app"}, "return in app"),
        ({"pattern": "return"}, "return"),
        ({"path": "app", "pattern": 5}, "app"),
        ({"command": "ls"}, "ls"),
        ({"pattern": "x" * 200, "path": "app"}, f"{'x' * 79}…"),
    ],
)
def test_a_search_is_told_by_what_is_looked_for_and_where(arguments: Json, summary: str) -> None:
    assert summarise_arguments(arguments, "") == summary


def test_a_long_line_is_cut_and_stays_one_line() -> None:
    summary = summarise_failure("error \x1b[2J" + "x" * 10_000_000 + "\nexit status 1", {"exit_status": 1})
    assert len(summary) <= 200
    assert summary.startswith("exit status 1: error \\x1b[2Jxxx")
