"""What a step of a GitHub workflow is told, read as the runner reads it."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runner_files import read_outputs

from ci_agent.ci_services.github_step import (
    MAX_OUTPUT_UNITS,
    check_publishing,
    outputs_text,
    publish,
    publish_refusal,
    step_outputs,
)
from ci_agent.errors import ConfigurationError
from ci_agent.json_types import JsonObject
from ci_agent.reports.markdown import MAX_SUMMARY_BYTES
from ci_agent.reports.places import Place
from ci_agent.reports.refusal import Refusal
from ci_agent.transcript.read import read_transcript

KEPT = Path(__file__).parents[1] / "transcript" / "kept" / "transcript-1.json"


@pytest.fixture
def document() -> JsonObject:
    return read_transcript(KEPT)


@pytest.fixture
def step(tmp_path: Path) -> dict[str, str]:
    """The variables of a step, whose files hold what an earlier line wrote without a line end."""
    files = {name: tmp_path / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    files["GITHUB_OUTPUT"].write_text("earlier=1")
    files["GITHUB_STEP_SUMMARY"].write_text("# Earlier")
    return {name: str(path) for name, path in files.items()}


def test_the_outputs_of_a_run(document: JsonObject, tmp_path: Path) -> None:
    document["result"]["structured_output"] = {"ok": True}
    document["usage"]["cost_usd"] = 0.25
    assert step_outputs(document, tmp_path / "t.json") == {
        "conclusion": "completed",
        "exit-code": "0",
        "reason": "",
        "answer": "Changed one line; not pushed.",
        "structured-output": '{"ok":true}',
        "transcript": str(tmp_path / "t.json"),
        "denied": "1",
        "tool-errors": "3",
        "cost-usd": "0.250000",
        "turns": "3",
    }


def test_what_is_not_known_is_empty(document: JsonObject) -> None:
    document["result"] |= {"final_text": None, "exit_code": 143}
    told = step_outputs(document, None)
    assert [told[name] for name in ("answer", "structured-output", "transcript", "cost-usd")] == ["", "", "", ""]
    assert told["exit-code"] == "143"


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ({"exit_code": 5, "reason": "denied"}, "1 of 7 calls was denied"),
        ({"exit_code": 6, "reason": "limit", "error": "100 turns are used up"}, "100 turns are used up"),
        (
            {"exit_code": 9, "reason": "tampered"},
            "tampered, exit code 9: a tool changed what only the runner or ci-agent",
        ),
    ],
)
def test_a_step_that_failed_says_why(document: JsonObject, ending: JsonObject, reason: str) -> None:
    document["result"] |= ending
    assert step_outputs(document, None)["reason"].startswith(reason)


def test_a_run_that_was_refused_is_told_of_in_outputs_summary_and_annotation(step: dict[str, str]) -> None:
    lines: list[str] = []
    refusal = Refusal("p.yml:3:1: wrong\n```\n::error::x @somebody", 3, Place("p.yml", 3))
    assert publish_refusal(["github"], refusal, step, lines.append) == []
    told = {"conclusion": "configuration", "exit-code": "3", "reason": refusal.message}
    assert read_outputs(Path(step["GITHUB_OUTPUT"]).read_text()) == {"earlier": "1", **told}
    title = "ci-agent%3A configuration%2C exit code 3"
    said = "p.yml:3:1: wrong%0A```%0A::error::x @somebody"
    assert lines == [f"::error title={title},file=p.yml,line=3::{said}"]
    assert (
        Path(step["GITHUB_STEP_SUMMARY"])
        .read_text()
        .startswith(
            "# Earlier\n## ❌ ci-agent: configuration, exit code 3\n\nA policy, task, script or schema is invalid, the "
            "transcript cannot be written, or a required sandbox is missing.\n\n````text\np.yml:3:1: wrong\n```\n"
        )
    )


def test_where_no_step_is_a_refusal_is_told_to_nobody() -> None:
    assert publish_refusal(["github-outputs", "github-summary"], Refusal("x", 2), {}, print) == []


def test_the_runner_reads_what_was_written_beside_what_was_there(document: JsonObject, step: dict[str, str]) -> None:
    lines: list[str] = []
    assert publish(["github"], document, None, step, lines.append) == []
    told = read_outputs(Path(step["GITHUB_OUTPUT"]).read_text())
    assert told == {"earlier": "1", **step_outputs(document, None)}
    summary = Path(step["GITHUB_STEP_SUMMARY"]).read_text()
    assert summary.startswith("# Earlier\n## ")
    assert [line.split(" ")[0] for line in lines] == [*["::warning"] * 3, "::notice", "::notice"]


@pytest.mark.parametrize(
    ("kind", "written"),
    [("github-outputs", ["GITHUB_OUTPUT"]), ("github-summary", ["GITHUB_STEP_SUMMARY"]), ("github-annotations", [])],
)
def test_each_kind_can_be_asked_for_alone(
    document: JsonObject, step: dict[str, str], kind: Any, written: list[str]
) -> None:
    before = {name: Path(path).read_text() for name, path in step.items()}
    lines: list[str] = []
    publish([kind], document, None, step, lines.append)
    assert [name for name, path in step.items() if Path(path).read_text() != before[name]] == written
    assert bool(lines) == (kind == "github-annotations")


@given(st.text(alphabet=st.sampled_from("a=<\n\r\0 é\ud800") | st.characters(), max_size=40))
def test_no_value_can_end_itself_or_begin_another(value: str) -> None:
    text = outputs_text({"answer": value, "next": "x"}).encode("utf-8", "replace").decode()
    assert read_outputs(text) == {"answer": value.encode("utf-8", "replace").decode(), "next": "x"}


def test_a_value_that_holds_the_delimiter_is_refused() -> None:
    with pytest.raises(ValueError, match="no output can be called 'a'"):
        outputs_text({"a": "x\nci_agent_guess\nexit-code=0"}, lambda: "guess")


@pytest.mark.parametrize("name", ["", "a=b", "a<<b", "a\nb", "a\rb"])
def test_a_name_that_would_be_read_otherwise_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no output can be called"):
        outputs_text({name: "x"})


def test_a_long_answer_is_cut_between_characters_and_a_long_value_is_left_out(document: JsonObject) -> None:
    document["result"] |= {"final_text": "😀" * MAX_OUTPUT_UNITS, "structured_output": ["😀" * MAX_OUTPUT_UNITS]}
    told = step_outputs(document, None)
    assert told["answer"] == "😀" * (MAX_OUTPUT_UNITS // 2) + "\n[cut: the transcript has all of it]"
    assert told["structured-output"] == ""


def test_a_summary_without_room_stays_as_it_was(document: JsonObject, step: dict[str, str]) -> None:
    path = Path(step["GITHUB_STEP_SUMMARY"])
    path.write_bytes(b"x" * MAX_SUMMARY_BYTES)
    problems = publish(["github-summary"], document, None, step, print)
    assert problems == ["GITHUB_STEP_SUMMARY: the step's summary has no room left for that of ci-agent"]
    assert path.stat().st_size == MAX_SUMMARY_BYTES


def test_a_file_that_cannot_be_written_is_told_of(document: JsonObject, tmp_path: Path) -> None:
    gone = {"GITHUB_OUTPUT": str(tmp_path / "gone" / "output")}
    (problem,) = publish(["github-outputs"], document, None, gone, print)
    assert problem.endswith("cannot be written: No such file or directory")


@pytest.mark.parametrize("name", ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_attack_lead_the_runners_file_to_another_one(
    document: JsonObject, step: dict[str, str], tmp_path: Path, name: str, kind: str
) -> None:
    (tmp_path / "profile").write_text("before")
    Path(step[name]).unlink()
    if kind == "link":
        Path(step[name]).symlink_to(tmp_path / "profile")
    else:
        os.mkfifo(step[name])
    (problem,) = publish(["github-outputs", "github-summary"], document, None, step, print)
    assert problem.startswith(f"{name}: ")
    assert (tmp_path / "profile").read_text() == "before"


def test_where_no_step_is_the_run_does_not_begin() -> None:
    check_publishing([], {})
    check_publishing(["github-annotations"], {})
    with pytest.raises(ConfigurationError, match="needs the variable GITHUB_OUTPUT"):
        check_publishing(["github"], {})
