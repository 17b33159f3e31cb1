"""A run that is refused says so to the step of a GitHub workflow, when it was asked to say how it ended."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from runner_files import read_outputs

CIAgent = Callable[..., Any]


@pytest.fixture
def step(tmp_path: Path) -> dict[str, str]:
    files = {"GITHUB_OUTPUT": tmp_path / "output", "GITHUB_STEP_SUMMARY": tmp_path / "summary"}
    for file in files.values():
        file.touch()
    return {"GITHUB_ACTIONS": "true", **{name: str(file) for name, file in files.items()}}


def outputs(step: Mapping[str, str]) -> dict[str, str]:
    return read_outputs(Path(step["GITHUB_OUTPUT"]).read_text())


@pytest.mark.parametrize(
    ("args", "code", "name", "reason"),
    [
        (["--bogus"], 2, "usage", "No such option '--bogus'."),
        (["--max-turns", "0"], 2, "usage", "Invalid value for '--max-turns'"),
        (["--policy", "gone.yml"], 3, "configuration", "cannot read the policy 'gone.yml'"),
        (["--policy", "read-only", "--config", "gone"], 3, "configuration", "cannot read the config file 'gone'"),
        (["--policy", "read-only", "--model", "scripted:gone"], 3, "configuration", "cannot read the script 'gone'"),
    ],
)
def test_usage_and_configuration_errors_are_outputs_summary_and_annotation(
    args: list[str], code: int, name: str, reason: str, ci_agent: CIAgent, step: dict[str, str]
) -> None:
    done = ci_agent("run", "--model", "scripted:x", *args, "--publish", "github", "Look.", env=step)
    assert done.returncode == code
    told = outputs(step)
    assert (told["conclusion"], told["exit-code"]) == (name, str(code))
    assert told["reason"].startswith(reason)
    annotation = f"::error title=ci-agent%3A {name}%2C exit code {code}::{reason}"
    assert [line.startswith(annotation) for line in done.stderr.splitlines() if line.startswith("::error")] == [True]
    assert reason in Path(step["GITHUB_STEP_SUMMARY"]).read_text()


def test_a_mistake_in_a_policy_is_annotated_at_its_line_from_the_top_of_the_repository(
    ci_agent: CIAgent, step: dict[str, str], workspace: Path
) -> None:
    (workspace.parent / ".git").mkdir()
    (workspace / "p.yml").write_text("policy: 1\nrules: [{id: a, alow: ls}]\n")
    done = ci_agent("run", "--policy", "p.yml", "--publish=github-annotations", "--model", "scripted:x", "x", env=step)
    assert ",file=ws/p.yml,line=2::p.yml:2:17: unknown key" in done.stderr.splitlines()[0]
    assert (outputs(step), Path(step["GITHUB_STEP_SUMMARY"]).read_text()) == ({}, "")


def test_the_variable_asks_for_it_too(ci_agent: CIAgent, step: dict[str, str]) -> None:
    ci_agent("run", "--bogus", env={**step, "CI_AGENT_PUBLISH": "github-outputs\ngithub-annotations"})
    assert outputs(step)["exit-code"] == "2"


def test_what_stands_behind_two_dashes_asks_for_nothing(ci_agent: CIAgent, step: dict[str, str]) -> None:
    done = ci_agent("run", "--bogus", "--", "--publish", "github", env=step)
    assert (done.returncode, outputs(step)) == (2, {})
    assert "::error" not in done.stderr


def test_no_key_is_in_what_is_said(ci_agent: CIAgent, step: dict[str, str]) -> None:
    key = "sk-canary-0123456789"
    done = ci_agent(
        "run",
        "--policy",
        f"{key}.yml",
        "--model",
        "scripted:x",
        "--publish",
        "github",
        "x",
        env={**step, "OPENAI_API_KEY": key},
    )
    assert key not in done.stderr + Path(step["GITHUB_STEP_SUMMARY"]).read_text() + outputs(step)["reason"]


def test_a_record_that_cannot_be_written_is_told_of(ci_agent: CIAgent, step: dict[str, str], workspace: Path) -> None:
    (workspace / "t.json").mkdir()
    (workspace / "s.yaml").write_text("turns: [{text: x}]\n")
    asked = ("--policy", "read-only", "--model", "scripted:s.yaml", "--transcript", "t.json", "--publish", "github")
    assert ci_agent("run", *asked, "x", env=step).returncode == 3
    assert "t.json" in outputs(step)["reason"]


ACTION = {"CI_AGENT_ACTION": "/action"}
NO_KEY = (
    "the provider anthropic needs a key: give it as the input api-key, `api-key: ${{ secrets.ANTHROPIC_API_KEY }}`, "
    "or, for a fallback, set ANTHROPIC_API_KEY by `env`; a pull request from a fork gets no secrets"
)


def test_a_key_that_is_missing_in_the_action_is_asked_for_as_its_input(ci_agent: CIAgent, step: dict[str, str]) -> None:
    flags = ("--policy", "read-only", "--model", "anthropic:m", "--publish", "github-outputs")
    done = ci_agent("run", *flags, "Look.", env={**step, **ACTION})
    assert (done.returncode, done.stderr.splitlines()[-1]) == (3, f"ci-agent: {NO_KEY}")
    assert outputs(step)["reason"] == NO_KEY


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--policy", "read-only"), "In the action --model is the input model."),
        (
            ("--policy", "read-only", "--model", "scripted:s", "--replay-tools"),
            "--model is the input model, the input extra-args is for --replay-tools and --fail-on-divergence.",
        ),
        (("--policy", "read-only", "--bogus"), "In the action the input extra-args is for --verbose."),
    ],
)
def test_flags_of_a_message_are_told_as_inputs_to_whoever_uses_the_action(
    args: tuple[str, ...], said: str, ci_agent: CIAgent, step: dict[str, str], workspace: Path
) -> None:
    (workspace / "s").write_text("turns: [{text: x}]\n")
    told = ci_agent("run", *args, "--publish=github-outputs", "Look.", env={**step, **ACTION})
    assert told.returncode in {2, 3}
    lines = [line for line in told.stderr.splitlines() if "In the action" in line]
    assert [line.endswith(said) for line in lines] == [True], told.stderr
    assert outputs(step)["reason"].splitlines()[-1].endswith(said)
    assert "the input" not in ci_agent("run", *args, "Look.").stderr


def test_a_wrong_input_is_not_called_a_variable(ci_agent: CIAgent, step: dict[str, str]) -> None:
    done = ci_agent("run", "--policy", "read-only", "x", env={**step, **ACTION, "CI_AGENT_MAX_TURNS": "ten"})
    assert "Invalid value for --max-turns (the input max-turns): 'ten'" in done.stderr
    assert "In the action" not in done.stderr


def test_a_run_that_failed_in_the_action_names_inputs_in_log_and_summary(
    ci_agent: CIAgent, step: dict[str, str], workspace: Path
) -> None:
    (workspace / "s").write_text("turns: [{tool_calls: [{name: ls, arguments: {path: gone}}]}, {text: x}]\n")
    flags = ("--policy", "read-only", "--model", "scripted:s", "--fail-on-error", "any", "--publish", "github")
    done = ci_agent("run", *flags, "Look.", env={**step, **ACTION})
    line = "In the action --fail-on-error is the input fail-on-error."
    assert (done.returncode, f"  {line}" in done.stderr.splitlines()) == (1, True)
    assert Path(step["GITHUB_STEP_SUMMARY"]).read_text().endswith(f"\n\n{line}\n")
