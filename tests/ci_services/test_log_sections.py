"""Sections of each service's log, and the ports of their parsers held to lines whose fate is known."""

import log_parsers
import pytest

from ci_agent.ci_services.log_sections import folded


@pytest.mark.parametrize(
    ("service", "lines"),
    [
        ("github", ["::group::ci-agent run", "inside", "::endgroup::"]),
        (
            "gitlab",
            [
                "\x1b[0Ksection_start:7:ci_agent_run[collapsed=true]\r\x1b[0Kci-agent run",
                "inside",
                "\x1b[0Ksection_end:8:ci_agent_run\r\x1b[0K",
            ],
        ),
        ("azure", ["##[group]ci-agent run", "inside", "##[endgroup]"]),
        ("buildkite", ["--- ci-agent run", "inside", "+++ ci-agent outcome"]),
        (
            "teamcity",
            ["##teamcity[blockOpened name='ci-agent run']", "inside", "##teamcity[blockClosed name='ci-agent run']"],
        ),
        ("jenkins", ["inside"]),
        (None, ["inside"]),
    ],
)
def test_lines_are_folded_where_the_service_can(service: str | None, lines: list[str]) -> None:
    written: list[str] = []
    times = iter((7.9, 8.1))
    with folded(written.append, service, lambda: next(times)):
        written.append("inside")
    assert written == lines


def test_a_section_is_closed_when_the_run_fails() -> None:
    written: list[str] = []
    with pytest.raises(KeyError), folded(written.append, "azure"):
        raise KeyError
    assert written == ["##[group]ci-agent run", "##[endgroup]"]


@pytest.mark.parametrize("line", log_parsers.HOSTILE)
def test_each_hostile_line_is_obeyed_by_some_service(line: str) -> None:
    assert sum(len(parse(f"before\n{line}\nafter\n")) for parse in log_parsers.PARSERS.values()) >= 1


@pytest.mark.parametrize(
    "line", ["| --- x", "##vso\\[x]", "section_start:1:x\\r", "---x", "## teamcity[x]", "##\\[error]", "^^^ x"]
)
def test_what_is_broken_or_behind_a_prefix_is_obeyed_by_none(line: str) -> None:
    assert [found for parse in log_parsers.PARSERS.values() for found in parse(line)] == []
