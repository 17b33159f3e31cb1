"""The file of a GitHub event."""

from pathlib import Path

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.github_event import MAX_EVENT_BYTES, read_github_event
from ci_agent.json_types import JsonObject


@pytest.mark.parametrize(("text", "event"), [('{"issue": {"number": 7}}', {"issue": {"number": 7}}), ("[1]", {})])
def test_an_event_is_read_from_the_runner_s_file(text: str, event: JsonObject, tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(text)
    assert read_github_event({"GITHUB_EVENT_PATH": str(tmp_path / "event.json")}) == event


@pytest.mark.parametrize("environment", [{}, {"GITHUB_EVENT_PATH": ""}])
def test_elsewhere_there_is_none(environment: dict[str, str]) -> None:
    assert read_github_event(environment) is None


@pytest.mark.parametrize(
    "text",
    ["{", "", '{"a": 1, "a": 2}', "[" * 100_000, " " * MAX_EVENT_BYTES + "{}"],
    ids=["half", "empty", "twice", "deep", "large"],
)
def test_what_is_no_event_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"event\.json'"):
        read_github_event({"GITHUB_EVENT_PATH": str(tmp_path / "event.json")})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read the event"):
        read_github_event({"GITHUB_EVENT_PATH": str(tmp_path / "gone")})
