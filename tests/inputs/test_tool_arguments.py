"""Whatever a model sends as arguments of whatever tool: an object that satisfies the schema, or a short refusal."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_agent import Limits, RunSettings, load_policy, run
from ci_agent.agent.arguments import InvalidArgumentsError, read_arguments
from ci_agent.explain import explain_call
from ci_agent.json_types import parse_json
from ci_agent.tools.table import tools_without_a_run
from ci_agent.transcript.records import document_problems

TOOLS = tools_without_a_run()

RULES = """
policy: 1
rules: [{id: f, allow: [read, write, edit, grep, find, ls]}, {id: b, allow: bash, command: [[echo, "**"]]}]
"""

PIECES = st.sampled_from(
    [
        *('"', "{", "}", "[", "]", ":", ",", "\\", " ", "\n", "\ufeff", "\x00", "\x1b[31m", "\u202e", "\u00e9", "-"),
        *("NaN", "Infinity", "1e999", "-0", "1.0", "true", "null", "9" * 10_000, "0.1e-99999", "1" * 400 + ".5"),
        *(
            '"\\ud800"',
            '"\\u0000"',
            '"\\q"',
            '"a": 1, "a": 2',
            '"__proto__": 1',
            '"path": "a"',
            "[" * 100_000,
            '{"a":' * 200,
        ),
        *("../" * 2_000, "/proc/self/environ", "~", "*" * 300, "(" * 300, "(a+)+$", "::error::x", "x" * 20_000, "{}{}"),
    ]
)

VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=20),
        st.sampled_from([10**40, 10**1200, "a.txt"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def raw_arguments(draw: st.DrawFn) -> tuple[str, str]:
    """A tool's name, and text: about right, about right and then changed, or anything."""
    name = draw(st.sampled_from(sorted(TOOLS)))
    fields = sorted(TOOLS[name].parameters["properties"])
    keys = st.one_of(st.sampled_from(fields), st.text(max_size=5))
    text = json.dumps(draw(st.dictionaries(keys, VALUES, max_size=4)))
    for where, piece in draw(st.lists(st.tuples(st.floats(0, 1), PIECES), max_size=2)):
        start = int(where * len(text))
        text = text[:start] + piece + text[start:]
    return name, draw(st.one_of(st.just(text), st.lists(PIECES, max_size=6).map("".join), st.text(max_size=20)))


def refusal(name: str, text: str) -> str | None:
    try:
        arguments = read_arguments(TOOLS[name], text)
    except InvalidArgumentsError as error:
        return str(error)
    assert isinstance(arguments, dict)
    json.dumps(arguments, allow_nan=False)
    return None


@given(raw_arguments())
@settings(max_examples=150, deadline=None)
def test_any_text_is_an_object_or_a_short_refusal(call: tuple[str, str]) -> None:
    message = refusal(*call)
    assert message is None or ("Nothing was executed" in message and len(message) < 4_000)


@pytest.fixture(scope="session")
def explain(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Any]:
    policy = load_policy(text=RULES, workspace=tmp_path_factory.mktemp("ws"))
    return lambda name, text: explain_call(policy, TOOLS, name, text)


@given(raw_arguments())
@settings(max_examples=100, deadline=None)
def test_any_text_is_decided(explain: Callable[[str, str], Any], call: tuple[str, str]) -> None:
    decision = explain(*call)
    assert decision.effect in {"allow", "deny"}
    assert decision.code != "engine_error"


@given(st.lists(raw_arguments(), min_size=1, max_size=30))
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_a_run_of_any_calls_has_one_result_each_and_a_strict_record(
    tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir(exist_ok=True)
    (workspace / "a.txt").write_text("one\n")
    sent = [(name, text) for name, text in calls if text.isprintable()]  # the script is YAML, and shows what it holds
    script = tmp_path / "script.yaml"
    said = [{"name": name, "arguments_json": text} for name, text in sent]
    script.write_text(yaml.safe_dump({"turns": [{"tool_calls": said}, {"text": "Done."}]}))
    policy = load_policy(text=RULES, workspace=workspace)
    place = tmp_path / "t.json"
    limits = Limits(max_tool_calls=100)
    settings = RunSettings(prompt="Go.", policy=policy, model=f"scripted:{script}", transcript=place, limits=limits)
    result = run(settings)
    assert parse_json(place.read_text()) == result.transcript
    assert document_problems(result.transcript) == []
    assert [each["tool"] for each in result.transcript["tool_calls"]] == [name for name, _ in sent]
    assert result.exit_code in {0, 5}
