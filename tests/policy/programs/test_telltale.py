"""Which names of options tell that they run, load, write or reach something."""

import pytest

from ci_agent.policy.programs.telltale import tells


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("--post-run-command", "runs another program"),
        ("--db-command", "runs another program"),
        ("-shellcheck", "runs another program"),
        ("--custom-syntax", "loads code or configuration"),
        ("--addon", "loads code or configuration"),
        ("--output.json.path", "writes a file"),
        ("--outFile", "writes a file"),
        ("--jsonfile-timing-events", "writes a file"),
        ("--autocorrect-all", "writes a file"),
        ("--proxyServer", "reaches another host"),
    ],
)
def test_a_name_that_tells(name: str, why: str) -> None:
    assert tells(name) == why


@pytest.mark.parametrize(
    "name",
    ["--all-files", "--output-format", "--log-level", "--profile", "--no-report", "--max-warnings", "-o", "--x", "--"],
)
def test_a_name_that_tells_nothing(name: str) -> None:
    assert tells(name) is None
