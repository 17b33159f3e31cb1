"""Options on the command line and as variables: what is given twice, spelled wrong, or holds blanks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CIAgent = Callable[..., Any]
Write = Callable[[str], str]

TASK = """
task: 1
prompt: "Since {{ base }}, titled: {{ title }}"
inputs:
  base: {}
  title: {default: none}
policy: deny-all
"""


@pytest.fixture
def good(script: Write) -> tuple[str, ...]:
    return ("--policy", "deny-all", "--model", script("turns: [{text: hi}]"))


def last_line(done: Any) -> str:
    return str(done.stderr.splitlines()[-1])


@pytest.mark.parametrize(
    ("twice", "advice"),
    [
        (
            ("--policy", "deny-all", "--policy=read-only"),
            "a run has one policy. To combine several, write one that names them: `extends: [NAME, FILE]`.",
        ),
        (("--tools", "ls", "--tools", "bash"), "name all tools in one, with commas between."),
        (("--sandbox", "required", "--sandbox", "off"), "give it once."),
        (("--max-turns", "5", "--max-turns", "5"), "give it once."),
        (("--fail-on-denied=any", "--fail-on-denied=never"), "give it once."),
        (("--config", "a", "--config", "b"), "give it once."),
        (("--task", "a", "--task", "b"), "give it once."),
        (("--workspace", ".", "--workspace", ".."), "give it once."),
        (("--lock", "a", "--lock", "b"), "give it once."),
        (("--state-dir", "a", "--state-dir", "b"), "give it once."),
    ],
)
@pytest.mark.parametrize("command", ["run", "doctor"])
def test_what_bounds_a_run_is_said_once(ci_agent: CIAgent, command: str, twice: tuple[str, ...], advice: str) -> None:
    done = ci_agent(command, *twice, "Go.")
    flag = twice[0].partition("=")[0]
    values = ", ".join(word.rpartition("=")[2] for word in twice if word != flag)
    assert (done.returncode, last_line(done)) == (2, f"Error: {flag} is given more than once ({values}): {advice}")


@pytest.mark.parametrize("command", [("policy", "explain"), ("policy", "replay"), ("policy", "suggest"), ("apply",)])
def test_no_command_takes_the_last_of_two_policies(ci_agent: CIAgent, command: tuple[str, ...]) -> None:
    done = ci_agent(*command, "--policy", "deny-all", "--policy", "read-only", "x")
    assert (done.returncode, "--policy is given more than once (deny-all, read-only)" in done.stderr) == (2, True)


def test_of_what_bounds_nothing_the_last_counts(ci_agent: CIAgent, good: tuple[str, ...]) -> None:
    done = ci_agent("run", *good, "--output", "json", "--output", "text", "Go.")
    assert (done.returncode, done.stdout) == (0, "hi\n")


def test_a_flag_overrules_the_variable_of_an_option_that_is_given_once(
    ci_agent: CIAgent, good: tuple[str, ...]
) -> None:
    done = ci_agent("run", *good, "--output", "text", "Go.", env={"CI_AGENT_POLICY": "gone.yml"})
    assert (done.returncode, done.stdout) == (0, "hi\n")


@pytest.fixture
def task(workspace: Path, script: Write) -> tuple[str, ...]:
    (workspace / "task.yaml").write_text(TASK)
    return ("run", "--task", "task.yaml", "--model", script("turns: [{text: hi}]"))


def prompt_of(done: Any) -> str:
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["messages"][0]["content"][0]["text"])


def test_inputs_of_a_task_can_be_variables_one_a_line(
    ci_agent: CIAgent, task: tuple[str, ...], workspace: Path
) -> None:
    done = ci_agent(*task, env={"CI_AGENT_INPUT": "base=v1\ntitle=two words\n"})
    assert prompt_of(done) == "Since v1, titled: two words"
    (workspace / "a title.txt").write_text("three more words")
    done = ci_agent(*task, "--input", "base=v2", env={"CI_AGENT_INPUT_FILE": "title=a title.txt"})
    assert prompt_of(done) == "Since v2, titled: three more words"


def test_a_wrong_input_is_blamed_on_its_variable(ci_agent: CIAgent, task: tuple[str, ...]) -> None:
    done = ci_agent(*task, env={"CI_AGENT_INPUT": "base"})
    assert (done.returncode, "--input (the variable CI_AGENT_INPUT): 'base' is not NAME=VALUE" in done.stderr) == (
        2,
        True,
    )


def test_inputs_without_a_task_are_blamed_on_their_variable(ci_agent: CIAgent, good: tuple[str, ...]) -> None:
    done = ci_agent("run", *good, "Go.", env={"CI_AGENT_INPUT_FILE": "a=b"})
    said = "--input-file (the variable CI_AGENT_INPUT_FILE) gives inputs of a task: name it with --task FILE."
    assert (done.returncode, last_line(done)) == (2, f"Error: {said}")


def test_an_input_that_is_given_in_two_manners_is_refused(ci_agent: CIAgent, task: tuple[str, ...]) -> None:
    done = ci_agent(*task, "--input", "base=v1", "--input-file", "base=task.yaml")
    assert (done.returncode, "base is given by --input, too" in done.stderr) == (2, True)


def test_a_value_of_a_variable_is_a_line_and_may_hold_blanks(
    ci_agent: CIAgent, good: tuple[str, ...], workspace: Path
) -> None:
    (workspace / "a b.txt").write_text("first file")
    (workspace / "c.txt").write_text("second file")
    (workspace / "out").mkdir()
    env = {"CI_AGENT_CONTEXT_FILE": "a b.txt\r\n\nc.txt", "CI_AGENT_REPORT": "junit=out/a b.xml\nmarkdown=m d.md"}
    done = ci_agent("run", *good, "Go.", env=env)
    assert (done.returncode, "first file" in done.stdout, "second file" in done.stdout) == (0, True, True), done.stderr
    assert ((workspace / "out" / "a b.xml").exists(), (workspace / "m d.md").exists()) == (True, True)


def test_a_variable_of_blank_lines_says_nothing(ci_agent: CIAgent, good: tuple[str, ...], workspace: Path) -> None:
    (workspace / "config.yml").write_text("report: [junit=j.xml]\n")
    done = ci_agent("run", *good, "--config", "config.yml", "Go.", env={"CI_AGENT_REPORT": "\n \n"})
    assert (done.returncode, (workspace / "j.xml").exists()) == (0, True)


@pytest.mark.parametrize("flag", ["--secret-env", "--pass-env"])
def test_two_names_on_one_line_are_no_name(ci_agent: CIAgent, good: tuple[str, ...], flag: str) -> None:
    variable = "CI_AGENT_" + flag[2:].upper().replace("-", "_")
    done = ci_agent("run", *good, "Go.", env={variable: "ONE TWO"})
    said = f"Error: Invalid value for {flag} (the variable {variable}): 'ONE TWO' is not the name of a variable; "
    assert (done.returncode, last_line(done)) == (2, said + "several are given one by one.")


def test_two_models_on_one_line_are_no_model(ci_agent: CIAgent, good: tuple[str, ...], workspace: Path) -> None:
    both = {"CI_AGENT_FALLBACK_MODEL": "ollama:a ollama:b"}
    done = ci_agent("run", *good, "Go.", env=both)
    said = "--fallback-model (the variable CI_AGENT_FALLBACK_MODEL): 'ollama:a ollama:b' holds more than one model: "
    assert (done.returncode, said + "give 'ollama:b' and the others one by one" in done.stderr) == (2, True)
    (workspace / "b c.yaml").write_text("turns: [{text: hi}]\n")
    lines = {"CI_AGENT_FALLBACK_MODEL": "ollama:a\nscripted:b c.yaml"}
    assert ci_agent("run", *good, "Go.", env=lines).returncode == 0


@pytest.mark.parametrize("blank", [" ", "  ", "\t"])
def test_two_reports_on_one_line_are_no_report(
    ci_agent: CIAgent, good: tuple[str, ...], workspace: Path, blank: str
) -> None:
    both = f"junit=a.xml{blank}sarif=b.sarif"
    before = sorted(workspace.iterdir())
    said = f"--report: {both!r} holds more than one report: give 'sarif=b.sarif' and the others with a --report each, "
    for flags, variables in (((), {"CI_AGENT_REPORT": both}), (("--report", both), {})):
        done = ci_agent("run", *good, *flags, "Go.", env=variables)
        assert (done.returncode, said + "and in the variable CI_AGENT_REPORT one a line" in done.stderr) == (2, True)
    assert sorted(workspace.iterdir()) == before
    assert ci_agent("run", *good, "--report", "junit=a b=c.xml", "Go.").returncode == 0


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("CI_AGENT_MAX_TURN", "CI_AGENT_MAX_TURNS"),
        ("CI_AGENT_MAXTURNS", "CI_AGENT_MAX_TURNS"),
        ("CI_AGENT_MAX_COST", "CI_AGENT_MAX_COST_USD"),
        ("CI_AGENT_TIME_OUT", "CI_AGENT_TIMEOUT"),
        ("CI_AGENT_POLCY", "CI_AGENT_POLICY"),
        ("CI_AGENT_INPUTS", "CI_AGENT_INPUT"),
    ],
)
def test_a_slip_in_the_name_of_a_variable_is_refused(
    ci_agent: CIAgent, good: tuple[str, ...], name: str, meant: str
) -> None:
    said = f"The variable {name} is no option; did you mean {meant}?"
    done = ci_agent("run", *good, "Go.", env={name: "1"})
    assert (done.returncode, done.stdout, last_line(done)) == (2, "", f"Error: {said}")
    looked = ci_agent("doctor", *good, "Go.", env={name: "1"})
    assert (looked.returncode, f"missing  variable    {said}" in looked.stdout) == (3, True)


def test_a_policy_that_is_missing_for_a_slip_is_told_with_it(ci_agent: CIAgent) -> None:
    done = ci_agent("run", "--model", "scripted:x", "Go.", env={"CI_AGENT_POLCY": "deny-all"})
    said = "(ci-agent policy list). The variable CI_AGENT_POLCY is no option; did you mean CI_AGENT_POLICY?"
    assert (done.returncode, last_line(done).endswith(said)) == (2, True), done.stderr


def test_a_policy_that_is_missing_is_not_told_with_what_may_be_somebody_elses(ci_agent: CIAgent) -> None:
    done = ci_agent("run", "--model", "scripted:x", "Go.", env={"CI_AGENT_TOKEN": "deny-all"})
    assert (done.returncode, last_line(done).endswith("(ci-agent policy list).")) == (2, True), done.stderr


def test_a_variable_that_may_be_somebody_elses_is_warned_of_and_a_word_of_its_own_is_left_alone(
    ci_agent: CIAgent, good: tuple[str, ...]
) -> None:
    names = ("CI_AGENT_TOKEN", "CI_AGENT_ACTION", "CI_AGENT_QQQQQ", "CI_AGENT_MAX_TOKENS")
    done = ci_agent("run", *good, "Go.", env={**dict.fromkeys(names, "1000000"), "CI_AGENT_MAX_TURN": ""})
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if line.startswith("warning: ")] == [
        "warning: The variable CI_AGENT_TOKEN is no option; did you mean CI_AGENT_MAX_TOKENS?"
    ]
