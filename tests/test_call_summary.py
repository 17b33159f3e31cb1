"""A failed call in a line: what a person must read to know why."""

import pytest

from ci_agent.call_summary import summarise_failure

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
        ("(no output)\nexit status 1", "exit status 1"),
        ("exit status 1", "exit status 1"),
        ("started: error\nkilled by signal 9 (SIGKILL)", "killed by signal 9 (SIGKILL)"),
    ],
)
def test_a_failed_command_tells_its_status_and_the_line_that_says_why(printed: str, summary: str) -> None:
    assert summarise_failure(printed, {"exit_status": 1}) == summary


def test_another_failure_tells_its_first_line() -> None:
    assert summarise_failure("y is a folder\nuse ls", None) == "y is a folder"


def test_a_long_line_is_cut_and_stays_one_line() -> None:
    summary = summarise_failure("error \x1b[31m" + "x" * 10_000_000 + "\nexit status 1", {"exit_status": 1})
    assert len(summary) <= 200
    assert summary.startswith("exit status 1: error \\x1b[31mxxx")
