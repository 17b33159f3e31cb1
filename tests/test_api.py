"""The Python API: what is exported, and a run without the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

import ci_agent
from ci_agent import ConfigurationError, Observers, RunSettings, load_policy, run
from ci_agent.errors import RecordError
from ci_agent.transcript.recovery import recover
from ci_agent.transcript.verify import verify


def test_what_a_program_may_import_is_this() -> None:
    assert sorted(ci_agent.__all__) == [
        "CIAgentError",
        "CancelToken",
        "ConfigurationError",
        "ContextText",
        "Decision",
        "Limits",
        "Observers",
        "Policy",
        "RunResult",
        "RunSettings",
        "__version__",
        "load_policy",
        "run",
    ]
    assert all(hasattr(ci_agent, name) for name in ci_agent.__all__)
    assert not hasattr(ci_agent, "something_else")


def test_a_policy_decides_without_a_run(tmp_path: Path) -> None:
    (tmp_path / "policy.yml").write_text("policy: 1\nrules: [{id: git, allow: bash, command: ['git status']}]\n")
    policy = load_policy(tmp_path / "policy.yml", workspace=tmp_path)
    decisions = [policy.decide("bash", {"command": command}) for command in ("git status", "git push")]
    assert [(decision.effect, decision.code) for decision in decisions] == [("allow", "rule"), ("deny", "default")]


def test_a_run_returns_its_reason_its_exit_code_and_its_transcript(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("turns: [{tool_calls: [{name: ls, arguments: {}}]}, {text: Done.}]")
    policy = load_policy(text="policy: 1\nrules: [{id: look, allow: ls}]\n", workspace=tmp_path)
    settings = RunSettings(
        prompt="Look.", policy=policy, model=f"scripted:{tmp_path / 'script.yaml'}", transcript=tmp_path / "t.json"
    )
    result = run(settings)
    assert (result.reason, result.exit_code, result.answer) == ("completed", 0, "Done.")
    assert result.transcript["tool_calls"][0]["status"] == "ok"
    assert result.transcript_path == tmp_path / "t.json"


@pytest.mark.parametrize("prompt", ["", " \n"])
def test_a_run_that_asks_nothing_is_refused_before_anything_starts(tmp_path: Path, prompt: str) -> None:
    (tmp_path / "script.yaml").write_text("turns: [{text: hi}]")
    policy = load_policy("read-only", workspace=tmp_path)
    settings = RunSettings(
        prompt=prompt, policy=policy, model=f"scripted:{tmp_path / 'script.yaml'}", transcript=tmp_path / "t.json"
    )
    with pytest.raises(ConfigurationError, match=r"^the prompt is empty: say what is to be done$"):
        run(settings)
    assert not (tmp_path / "t.json").exists()


def test_a_policy_that_is_a_name_is_told_what_makes_one() -> None:
    name: Any = "policy.yml"
    with pytest.raises(TypeError) as caught:
        RunSettings(prompt="Go.", policy=name, model="scripted:script.yaml")
    assert str(caught.value) == "policy is a Policy, such as load_policy('policy.yml') returns, not str"


def test_a_run_can_be_cancelled_from_outside(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("turns: [{text: late, delay_s: 600}]")
    policy = load_policy("read-only", workspace=tmp_path)
    cancel = ci_agent.CancelToken()
    observers = ci_agent.Observers(observe=lambda _event: cancel.cancel("enough"))
    settings = RunSettings(prompt="Wait.", policy=policy, model=f"scripted:{tmp_path / 'script.yaml'}")
    result = run(settings, cancel=cancel, observers=observers)
    assert (result.reason, result.exit_code, result.transcript["result"]["error"]) == ("cancelled", 130, "enough")


def test_a_bug_closes_the_record_before_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("turns: [{text: hi}]")
    policy = load_policy("read-only", workspace=tmp_path)
    settings = RunSettings(
        prompt="Go.", policy=policy, model=f"scripted:{tmp_path / 'script.yaml'}", transcript=tmp_path / "t.json"
    )

    def broken(_event: object) -> None:
        raise ZeroDivisionError("planted")

    with pytest.raises(ZeroDivisionError, match="planted"):
        run(settings, observers=ci_agent.Observers(observe=broken))
    assert '"internal_error"' in (tmp_path / "t.json").read_text()


def test_what_cannot_start_is_a_configuration_error_and_leaves_nothing(tmp_path: Path) -> None:
    policy = load_policy("read-only", workspace=tmp_path)
    with pytest.raises(ConfigurationError, match="'nobody' names no model"):
        run(RunSettings(prompt="Go.", policy=policy, model="nobody", transcript=tmp_path / "t.json"))
    assert list(tmp_path.iterdir()) == []


def test_a_document_that_cannot_be_placed_is_recovered_with_the_exit_code_that_the_run_had(tmp_path: Path) -> None:
    """The journal has told of the end before anybody could know."""
    (tmp_path / "script.yaml").write_text("turns: [{text: Hello.}]\n")
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "work").mkdir()
    settings = RunSettings(
        prompt="Hello?",
        policy=load_policy("read-only", workspace=tmp_path / "work"),
        model=f"scripted:{tmp_path / 'script.yaml'}",
        transcript=out / "t.json",
        environment={},
    )
    with pytest.raises(RecordError, match="its journal is there"):
        run(settings, observers=Observers(observe=lambda _: (out / "t.json").mkdir(exist_ok=True)))
    (out / "t.json").rmdir()
    assert verify(out / "t.json.journal") == []
    result = json.loads(recover(out / "t.json").read_text())["result"]
    why = f"the transcript '{out / 't.json'}' cannot be written: Is a directory"
    assert (result["reason"], result["exit_code"], result["error"]) == ("completed", 3, why)
