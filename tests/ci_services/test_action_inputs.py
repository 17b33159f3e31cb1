"""Flags in a message, for whoever uses the action."""

from pathlib import Path

import pytest
import yaml

import ci_agent
from ci_agent.ci_services.action_inputs import INPUTS, inputs_for

ACTION = {"CI_AGENT_ACTION": "/action"}

NOT_FLAGS = {"prompt", "task-files", "summary", "annotations", "extra-args", "python"}
"""Inputs that no flag of `run` stands for."""


def test_the_table_is_that_of_the_action() -> None:
    action = yaml.safe_load((Path(ci_agent.__file__).parent.parent / "action.yml").read_text())
    assert set(INPUTS.values()) | NOT_FLAGS == set(action["inputs"])


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            "set X, or, for --model itself, give a file with --api-key-file",
            "--model is the input model, --api-key-file is the input api-key",
        ),
        ("or say --trust-head", '--trust-head is the input trust-head: "true"'),
        ("give it with --ca-file", "the input extra-args is for --ca-file"),
        ("--max-turns and --max-turns", "--max-turns is the input max-turns"),
    ],
)
def test_each_flag_is_told_once_as_the_input_that_it_is(message: str, line: str) -> None:
    assert inputs_for(message, ACTION, ["--ca-file"]) == f"In the action {line}."


@pytest.mark.parametrize(
    "message",
    ["", "git push --force", "--max-turns (the input max-turns): wrong", "--modelling", "x--model", "----model", "--"],
)
def test_what_is_no_flag_of_ours_or_said_already_is_left_alone(message: str) -> None:
    assert inputs_for(message, ACTION, ["--ca-file"]) is None


def test_outside_of_the_action_there_are_flags() -> None:
    assert inputs_for("give --model", {"GITHUB_ACTIONS": "true"}) is None
