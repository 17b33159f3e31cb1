"""Bad input gets one clear line and its exit code, before anything starts."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[[str], str]


@pytest.fixture
def good(script: Write) -> dict[str, str]:
    return {"--policy": "read-only", "--model": script("turns: [{text: hi}]")}


def flags(options: dict[str, str]) -> list[str]:
    return [part for option in options.items() for part in option]


@pytest.mark.parametrize(
    ("change", "code", "line"),
    [
        ({"--policy": "missing.yml"}, 3, "cannot read the policy 'missing.yml': No such file or directory"),
        ({"--policy": "./folder"}, 3, "cannot read the policy 'folder': it is a folder"),
        ({"--policy": "./pipe"}, 3, "cannot read the policy 'pipe': it is not a regular file"),
        ({"--policy": "read-onyl"}, 3, "read-only"),
        ({"--policy": "latin.yml"}, 3, "latin.yml:1:11: byte 0xfc is not UTF-8: save the file as UTF-8"),
        ({"--policy": "wrong.yml"}, 3, "wrong.yml:3:5: "),
        (
            {"--model": "gpt-9"},
            2,
            "'gpt-9' names no model. Give PROVIDER:MODEL; the providers are scripted, replay, openai, ",
        ),
        (
            {"--model": "opnai:gpt-9"},
            2,
            "'opnai:gpt-9' names no model: no provider is called 'opnai'; did you mean 'openai:gpt-9'?",
        ),
        ({"--model": "deepseek-chat"}, 2, "names no model without its provider; did you mean deepseek:deepseek-chat"),
        ({"--model": "scripted:"}, 2, "'scripted:' names no model: write what it is called behind `scripted:`"),
        ({"--model": "ollama"}, 2, "'ollama' names no model: write what it is called behind `ollama:`"),
        ({"--model": "nobody:gpt-9"}, 2, "no provider is called 'nobody'. Give PROVIDER:MODEL; the providers are "),
        ({"--max-turns": "ten"}, 2, "'ten' is not a valid whole number."),
        ({"--timeout": "5m"}, 2, "'5m' is not a valid number: seconds are wanted, such as 300."),
        ({"--polcy": "x"}, 2, "No such option '--polcy'. Did you mean '--policy'?"),
        ({"--model": "scripted:gone.yaml"}, 3, "No such file or directory; it is named from the current folder, '/"),
        ({"--workspace": "nowhere"}, 3, "workspace 'nowhere' does not exist or cannot be entered"),
        ({"--transcript": "nowhere/t.json"}, 3, "nowhere"),
        ({"--transcript": "folder"}, 3, "folder"),
        ({"--answer-file": "nowhere/a.txt"}, 3, "the answer file 'nowhere/a.txt' cannot be written"),
        (
            {"--answer-file": "-"},
            3,
            "the answer file '-' is not written: it would be a file of that name and not stdout",
        ),
        ({"--report": "junit=-"}, 3, "the report '-' is not written: it would be a file of that name and not stdout"),
        ({"--transcript": "-"}, 3, "the transcript '-' would be a file of that name"),
        ({"--output-schema": "broken.json"}, 3, "output schema 'broken.json' is not JSON"),
        ({"--output-schema": "list.json"}, 3, "output schema 'list.json' is not a JSON object"),
        ({"--output-schema": "schema.json"}, 3, "schema.json: output schema is wrong at $.type"),
        ({"--tools": ""}, 2, "--tools: it names no tool: leave it out to offer all that the policy can allow"),
        ({"--tools": " , "}, 2, "--tools: it names no tool: leave it out to offer all that the policy can allow"),
        ({"--tools": "read,grpe"}, 2, "there is no tool 'grpe'; did you mean 'grep'?"),
        ({"--max-turns": "0"}, 2, "0 is not in the range"),
        ({"--max-cost-usd": "2"}, 3, "the price of scripted:script.yaml is not known, so the run cannot be limited to"),
        ({"--config": "config.yml"}, 3, "config.yml:2:1: no option is called 'polizy'; did you mean 'policy'?"),
        ({"--context-file": "gone.md"}, 3, "cannot read the context file 'gone.md'"),
        ({"--lock": "nowhere/lock"}, 3, "lock file 'nowhere/lock' cannot be opened"),
    ],
)
def test_one_clear_line_and_its_exit_code(
    ci_agent: Any, good: dict[str, str], workspace: Path, change: dict[str, str], code: int, line: str
) -> None:
    (workspace / "folder").mkdir()
    os.mkfifo(workspace / "pipe")
    (workspace / "latin.yml").write_bytes(b"policy: 1 \xfc\n")
    (workspace / "wrong.yml").write_text("policy: 1\nrules:\n  - alow: read\n    id: x\n")
    (workspace / "broken.json").write_text("{")
    (workspace / "list.json").write_text("[]")
    (workspace / "schema.json").write_text('{"type": "objekt"}')
    (workspace / "config.yml").write_text("max-turns: 3\npolizy: x\n")
    done = ci_agent("run", *flags({**good, **change}), "Go.")
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert line in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("file", "shown"), [("empty.md", "'empty.md'"), ("-", "stdin")])
def test_an_empty_prompt_file_is_named(
    ci_agent: Any, good: dict[str, str], workspace: Path, file: str, shown: str
) -> None:
    (workspace / "empty.md").write_text(" \n")
    done = ci_agent("run", *flags(good), "--prompt-file", file, stdin=b"\n")
    assert (done.returncode, f"The prompt is empty: nothing stands in {shown}." in done.stderr) == (2, True)


def test_quiet_and_verbose_are_one_or_the_other(ci_agent: Any, good: dict[str, str]) -> None:
    done = ci_agent("run", *flags(good), "--quiet", "--verbose", "Go.")
    assert (done.returncode, "--quiet and --verbose contradict each other: give one" in done.stderr) == (2, True)
    done = ci_agent("run", *flags(good), "--quiet", "Go.", env={"CI_AGENT_VERBOSE": "1"})
    assert (done.returncode, done.stderr) == (0, "")


def test_a_missing_model_is_answered_with_the_providers(ci_agent: Any) -> None:
    done = ci_agent("run", "--policy", "read-only", "Go.")
    assert done.returncode == 2
    assert "Missing option '--model'. Give PROVIDER:MODEL; the providers are scripted, replay, openai, " in done.stderr


def test_a_missing_policy_is_a_usage_error(ci_agent: Any) -> None:
    done = ci_agent("run", "--model", "scripted:x", "Go.")
    assert (done.returncode, "Missing option '--policy'. Give a policy's file, or a" in done.stderr) == (2, True)


def test_a_command_that_does_not_exist_is_answered_with_the_nearest(ci_agent: Any) -> None:
    for args, answer in (
        (["repot", "t.json"], "No such command 'repot'. Did you mean 'report'?"),
        (["policy", "sugest"], "No such command 'sugest'. Did you mean 'suggest'?"),
        (["qqqqq"], "No such command 'qqqqq'.\n"),
    ):
        done = ci_agent(*args)
        assert (done.returncode, answer in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("word", ["help", "version"])
def test_what_is_an_option_and_no_command_is_told_as_that(ci_agent: Any, word: str) -> None:
    done = ci_agent(word)
    assert (done.returncode, f"No such command '{word}'. Say ci-agent --{word}." in done.stderr) == (2, True)
    assert ci_agent("-V").stdout == ci_agent("--version").stdout


@pytest.mark.parametrize("prompt", [[], [""], [" \n"], [b"gr\xfc\xdfe"], ["a", "--prompt-file", "b"]])
def test_a_prompt_that_is_none_is_a_usage_error(ci_agent: Any, good: dict[str, str], prompt: list[str]) -> None:
    done = ci_agent("run", *flags(good), *prompt)
    assert (done.returncode, done.stdout) == (2, "")
    assert "rompt" in done.stderr


def test_a_prompt_file_that_is_not_utf8_is_named_with_its_place(
    ci_agent: Any, good: dict[str, str], workspace: Path
) -> None:
    (workspace / "p.txt").write_bytes(b"one\ngr\xfc\xdfe")
    done = ci_agent("run", *flags(good), "--prompt-file", "p.txt")
    assert (done.returncode, done.stderr.strip()) == (
        3,
        "ci-agent: p.txt:2:3: byte 0xfc is not UTF-8: save the file as UTF-8",
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_policy_that_may_not_be_read_is_named(ci_agent: Any, good: dict[str, str], workspace: Path) -> None:
    (workspace / "secret.yml").write_text("policy: 1\n")
    (workspace / "secret.yml").chmod(0)
    done = ci_agent("run", *flags({**good, "--policy": "secret.yml"}), "Go.")
    assert (done.returncode, done.stderr.strip()) == (
        3,
        "ci-agent: cannot read the policy 'secret.yml': Permission denied",
    )


def test_a_script_that_ends_early_is_the_providers_failure_with_its_record(
    ci_agent: Any, good: dict[str, str], script: Write, workspace: Path
) -> None:
    model = script("turns: [{tool_calls: [{name: ls, arguments: {}}]}]")
    done = ci_agent("run", *flags({**good, "--model": model, "--transcript": "t.json"}), "Go.")
    assert done.returncode == 4
    assert "the script script.yaml has 1 turn, and the loop asked for one more" in done.stderr
    assert (workspace / "t.json").exists()


def test_output_that_nobody_takes_is_never_a_success(ci_agent: Any, good: dict[str, str], workspace: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("only Linux has /dev/full")
    command = f"{sys.executable} -P -m ci_agent"
    run = f"{command} run {' '.join(flags(good))} --transcript t.json Go."
    codes = [
        subprocess.run(["bash", "-c", line], cwd=workspace, capture_output=True, check=False, timeout=110).returncode
        for line in (f"{run} > /dev/full", f"{run} 2> /dev/full", f"{command} policy list > /dev/full")
    ]
    assert codes == [1, 0, 1]
    assert json.loads((workspace / "t.json").read_text())["result"]["exit_code"] == 0


@pytest.mark.parametrize("place", ["nowhere/spill", "file", "file/spill", "dangling"])
def test_a_spill_folder_that_cannot_be_made_is_refused(
    ci_agent: Any, good: dict[str, str], workspace: Path, place: str
) -> None:
    (workspace / "file").touch()
    (workspace / "dangling").symlink_to("gone")
    done = ci_agent("run", *flags({**good, "--spill-dir": place}), "Go.")
    assert (done.returncode, f"the spill folder '{place}'" in done.stderr) == (3, True)
    looked = ci_agent("doctor", "--offline", *flags({**good, "--spill-dir": place}), "Go.")
    assert (looked.returncode, f"the spill folder '{place}'" in looked.stdout) == (3, True)


def test_a_spill_folder_that_is_missing_is_made_by_a_run_as_other_folders_are(
    ci_agent: Any, policy: Write, script: Write, workspace: Path
) -> None:
    asked = ("--policy", policy("rules: [{id: say, allow: bash, command: echo hello}]\n"), "--spill-dir", "spill")
    turns = "turns: [{tool_calls: [{name: bash, arguments: {command: echo hello}}]}, {text: hi}]"
    assert ci_agent("doctor", "--offline", *asked, "--model", script(turns), "Go.").returncode == 0
    assert not (workspace / "spill").exists()
    assert ci_agent("run", *asked, "--model", script(turns), "Go.").returncode == 0
    assert (workspace / "spill").stat().st_mode & 0o777 == 0o700
    assert [file.read_text() for file in (workspace / "spill").iterdir()] == ["hello\n"]


def test_a_secret_that_is_not_set_is_named(ci_agent: Any, good: dict[str, str]) -> None:
    done = ci_agent("run", *flags({**good, "--secret-env": "PLIAN"}), "Go.")
    assert (done.returncode, "--secret-env PLIAN: no such variable is set" in done.stderr) == (0, True)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("fail-on-denied: sometimes", "c.yml:1:17: --fail-on-denied: 'sometimes' is not one of"),
        ("max-turns: 0", "c.yml:1:12: --max-turns: 0 is not in the range"),
        ("timeout: ten", "c.yml:1:10: --timeout: 'ten' is not a valid number"),
        ("policy: [review]", "c.yml:1:9: --policy takes one value"),
        ("quiet: 1", "c.yml:1:8: --quiet is switched on or off: write true or false"),
        ("pass-env: CI", "c.yml:1:11: --pass-env takes a list of values: put it in []"),
        (
            "limits: {max_turns: 3}",
            "c.yml:1:1: no option is called 'limits'; keys are the names of flags, such as `max-turns",
        ),
        ("maxturns: 3", "c.yml:1:1: no option is called 'maxturns'; did you mean 'max-turns'?"),
        ("max-turns: 3\nmax_turns: 3", "c.yml:2:1: max-turns is given twice, also as max_turns"),
        ("max_turns: 0", "c.yml:1:12: --max-turns: 0 is not in the range"),
        ("max-turns: true", "c.yml:1:12: --max-turns takes a value of its own"),
        ("quiet: true\npolicy: nope", "(c.yml:2:9)"),
        ("tools: red", "--tools (c.yml:1:8): there is no tool 'red'"),
        ("model: nobody", "--model (c.yml:1:8): 'nobody' names no model"),
    ],
)
def test_a_wrong_value_in_the_config_file_is_named_with_its_place(
    ci_agent: Any, workspace: Path, line: str, told: str
) -> None:
    (workspace / "c.yml").write_text(line + "\n")
    given = {"policy": "read-only", "model": "scripted:x.yaml"}
    flags = [word for name, value in given.items() if f"{name}:" not in line for word in (f"--{name}", value)]
    done = ci_agent("run", "--config", "c.yml", *flags, "go")
    assert (done.returncode in {2, 3}, done.stdout) == (True, "")
    assert told in done.stderr


@pytest.mark.parametrize(
    ("command", "variable", "value"),
    [
        (["run", "--policy", "read-only", "--model", "scripted:x", "go"], "CI_AGENT_MAX_TURNS", "abc"),
        (["run", "--policy", "read-only", "go"], "CI_AGENT_MODEL", "nobody"),
        (["run", "--model", "scripted:x", "go"], "CI_AGENT_POLICY", "nope"),
        (["policy", "explain", "--tool", "ls", "--args", "{}"], "CI_AGENT_POLICY", "nope"),
    ],
)
def test_a_wrong_value_in_a_variable_is_named_with_it(
    ci_agent: Any, command: list[str], variable: str, value: str
) -> None:
    done = ci_agent(*command, env={variable: value})
    assert (done.returncode in {2, 3}, done.stdout) == (True, "")
    assert f"(the variable {variable})" in done.stderr


@pytest.mark.parametrize("option", ["workspace", "answer_file", "lock", "proposals", "spill_dir", "transcript"])
def test_a_name_that_no_file_can_have_is_no_bug(option: str, ci_agent: Any, workspace: Path) -> None:
    (workspace / "config.yml").write_text(f'{option}: "a\\0b"\n')
    (workspace / "script.yaml").write_text("turns: [{text: x}]\n")
    flags = ("--policy", "read-only", "--model", "scripted:script.yaml", "--config", "config.yml")
    done = ci_agent("run", *flags, "Go.")
    assert (done.returncode in (2, 3), "a\\x00b" in done.stderr, "Traceback" in done.stderr) == (True, True, False)
