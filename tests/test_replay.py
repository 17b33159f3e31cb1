"""A recorded run played again: the same calls, and a word for each that ends otherwise."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent import ConfigurationError, Limits, Observers, RunResult, RunSettings, load_policy, run
from ci_agent.json_types import JsonObject
from ci_agent.providers.settings import ModelSettings

Play = Callable[..., RunResult]

POLICY = """\
policy: 1
rules:
  - {id: look, allow: [read, ls]}
  - {id: shell, allow: bash, command: ["cat **", "printf **", "exit **", "touch **"]}
"""

STRICTER = POLICY + "  - {id: no-b, deny: read, path: b.txt}\n"

SCRIPT = """\
turns:
  - text: I look.
    tool_calls:
      - {id: a, name: read, arguments: {path: a.txt}}
      - {id: b, name: read, arguments: {path: b.txt}}
  - tool_calls:
      - {id: c, name: bash, arguments: {command: touch made.txt}}
      - {id: d, name: bash, arguments: {command: exit 3}}
      - {id: e, name: read, arguments_json: '{"pa'}
      - {id: f, name: write, arguments: {path: x, content: text}}
  - text: "It says {{ result.a }}"
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("alpha\n")
    (folder / "b.txt").write_text("beta\n")
    return folder


@pytest.fixture
def play(workspace: Path, tmp_path: Path) -> Play:
    """A run of a model in the workspace, under the policy or another."""

    def play_it(model: str, policy: str = POLICY, observers: Observers | None = None, **more: object) -> RunResult:
        ready = load_policy(text=policy, workspace=workspace)
        settings = RunSettings(prompt="Go.", policy=ready, model=model, environment={"PATH": "/usr/bin:/bin"}, **more)  # type: ignore[arg-type]  # each test names settings that there are
        return run(settings, observers=observers)

    return play_it


@pytest.fixture
def record(play: Play, tmp_path: Path) -> Path:
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    path = tmp_path / "record.json"
    play(f"scripted:{script}", transcript=path)
    return path


def notes(result: RunResult) -> list[str]:
    return [note["text"] for note in result.transcript["notes"] if note["about"] == "replay"]


def told(result: RunResult) -> list[tuple[str, str, list[JsonObject]]]:
    return [(call["tool"], call["status"], call["content"]) for call in result.transcript["tool_calls"]]


def test_a_replay_does_what_the_run_did(play: Play, record: Path, workspace: Path) -> None:
    (workspace / "made.txt").unlink()
    again = play(f"replay:{record}", fail_on_divergence="any")
    assert (again.reason, again.exit_code, notes(again)) == ("completed", 0, [])
    assert again.answer == "It says alpha\n"
    assert told(again) == [
        (call["tool"], call["status"], call["content"]) for call in json.loads(record.read_text())["tool_calls"]
    ]
    assert (workspace / "made.txt").exists()
    assert again.transcript["usage"] == json.loads(record.read_text())["usage"]


def test_answered_from_the_record_nothing_is_executed(play: Play, record: Path, workspace: Path) -> None:
    for name in ("made.txt", "a.txt", "b.txt"):
        (workspace / name).unlink()
    again = play(f"replay:{record}", fail_on_divergence="any", replay_tools=True)
    assert (again.exit_code, notes(again), again.answer) == (0, [], "It says alpha\n")
    assert list(workspace.iterdir()) == []


def test_another_policy_is_told_call_by_call(play: Play, record: Path) -> None:
    lines: list[str] = []
    again = play(f"replay:{record}", STRICTER, Observers(note=lines.append), fail_on_divergence="status")
    assert (again.reason, again.exit_code) == ("completed", 1)
    assert notes(again) == ["call 2, read b.txt: was ok, is denied by no-b"]
    assert f"replay  {notes(again)[0]}" in lines
    assert again.transcript["result"]["error"] == "1 divergence from the record, see the notes"


def test_a_call_that_was_denied_and_is_not_any_more_has_no_answer_in_the_record(play: Play, record: Path) -> None:
    looser = POLICY + "  - {id: write, allow: write, path: x}\n"
    again = play(f"replay:{record}", looser, replay_tools=True)
    assert notes(again) == ["call 6, write x: was denied, is an error"]
    assert told(again)[5][2][0] == {
        "type": "text",
        "text": "The record has no result for this call: it was denied then.",
    }


@pytest.mark.parametrize(("when", "exit_code"), [("never", 0), ("status", 0), ("any", 1)])
def test_another_result_is_told_with_its_first_line_that_differs(
    play: Play, record: Path, workspace: Path, when: str, exit_code: int
) -> None:
    (workspace / "a.txt").write_text("alpha\nomega\n")
    again = play(f"replay:{record}", fail_on_divergence=when)
    assert again.exit_code == exit_code
    assert notes(again) == ["call 1, read a.txt: the result differs in line 2: nothing became 'omega'"]


def test_of_long_lines_the_place_is_told_where_they_part(play: Play, record: Path, workspace: Path) -> None:
    (workspace / "a.txt").write_text(f"{'x' * 500} before {'y' * 500}\n")
    play(f"scripted:{record.with_name('script.yaml')}", transcript=record)
    (workspace / "a.txt").write_text(f"{'x' * 500} after {'y' * 500}\n")
    again = play(f"replay:{record}")
    old, new = f"{'x' * 19} before {'y' * 52}…", f"{'x' * 19} after {'y' * 53}…"
    assert notes(again) == [f"call 1, read a.txt: the result differs in line 1: …'{old}' became …'{new}'"]


def test_calls_that_do_not_come_again_are_counted(play: Play, record: Path) -> None:
    again = play(f"replay:{record}", fail_on_divergence="status", limits=Limits(max_turns=1))
    assert notes(again) == ["4 calls of the record did not come again"]
    assert again.exit_code == 6


def test_a_secret_that_the_record_hides_is_no_divergence(play: Play, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text("key hunter2-hunter2-hunter2\n")
    script = tmp_path / "script.yaml"
    script.write_text("turns:\n  - tool_calls: [{name: read, arguments: {path: a.txt}}]\n  - text: Done.\n")
    secret = {"environment": {"PATH": "/usr/bin", "API_TOKEN": "hunter2-hunter2-hunter2"}}
    settings = RunSettings(
        prompt="Go.",
        policy=load_policy(text=POLICY, workspace=workspace),
        model=f"scripted:{script}",
        transcript=tmp_path / "record.json",
        **secret,  # type: ignore[arg-type]  # a setting that there is
    )
    assert run(settings).transcript["redactions"]["count"] > 0
    again = run(
        RunSettings(
            prompt="Go.",
            policy=settings.policy,
            model=f"replay:{tmp_path / 'record.json'}",
            fail_on_divergence="any",
            **secret,  # type: ignore[arg-type]  # a setting that there is
        )
    )
    assert (again.exit_code, notes(again)) == (0, [])


@pytest.mark.parametrize("more", [{"replay_tools": True}, {"fail_on_divergence": "any"}])
def test_without_a_record_there_is_nothing_to_part_from(play: Play, tmp_path: Path, more: JsonObject) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("turns:\n  - text: Done.\n")
    with pytest.raises(ConfigurationError, match="need a record to play: --model replay:FILE"):
        play(f"scripted:{script}", **more)


def test_a_record_that_is_not_there_ends_the_run_before_it_begins(play: Play, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read the transcript"):
        play(f"replay:{tmp_path / 'gone.json'}")


def test_a_run_that_a_limit_ended_is_ended_there_again(play: Play, tmp_path: Path) -> None:
    call = "tool_calls: [{name: ls, arguments: {path: .}}], usage: {input_tokens: 600, output_tokens: 1}"
    (tmp_path / "s.yaml").write_text(f"turns:\n  - {{{call}}}\n  - {{{call}}}\n  - text: Never said.\n")
    first = play(f"scripted:{tmp_path / 's.yaml'}", transcript=tmp_path / "r.json", limits=Limits(max_tokens=1000))
    again = play(f"replay:{tmp_path / 'r.json'}", limits=Limits(max_tokens=1000), fail_on_divergence="any")
    assert (first.reason, first.exit_code) == (again.reason, again.exit_code) == ("limit", 6)
    assert again.transcript["usage"] == first.transcript["usage"]


@pytest.mark.parametrize("fallbacks", [(), ("ollama:paid",)])
def test_a_record_whose_cost_is_not_known_is_refused_under_a_limit_of_cost(
    play: Play, record: Path, fallbacks: tuple[str, ...]
) -> None:
    settings = ModelSettings(fallbacks=fallbacks)
    with pytest.raises(ConfigurationError) as caught:
        play(f"replay:{record}", limits=Limits(max_cost_usd=1), model_settings=settings)
    assert str(caught.value) == (
        f"the record {record} holds messages whose cost is not known, so the run cannot be limited to 1 USD: "
        "limit tokens or turns"
    )


def test_a_replay_that_goes_on_where_the_record_ends_has_a_known_cost(play: Play, record: Path, tmp_path: Path) -> None:
    document = json.loads(record.read_text())
    document["messages"] = [priced(message) for message in document["messages"][:-1]]
    cut = tmp_path / "cut.json"
    cut.write_text(json.dumps(document))
    again = play(f"replay:{cut}", limits=Limits(max_cost_usd=10))
    assert (again.reason, again.transcript["usage"]["cost_usd"]) == ("provider_error", 1.0)


def priced(message: JsonObject) -> JsonObject:
    return message | {"usage": message["usage"] | {"cost_usd": 0.5}} if message["role"] == "assistant" else message
