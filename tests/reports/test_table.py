"""Every format over every kind of record, and ten thousand hostile outputs past the runner's parsers."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import log_parsers
import pytest

from ci_agent import load_policy
from ci_agent.json_types import JsonObject
from ci_agent.reports.comparison import render_comparison
from ci_agent.reports.decision import render_decision
from ci_agent.reports.table import FORMATS, renderer
from ci_agent.transcript.compare import compare_calls

Hostile = Callable[[int, int], Iterator[str]]
Runner = Callable[[str], list[str]]

OURS = re.compile(r"::(group::turn \d+: |endgroup::$|(error|warning|notice) title=ci-agent%3A )")


def kinds(records: Any) -> Iterator[JsonObject]:
    """A record without calls, of a denied run, of a killed one whose beginning is lost, of 5,000 calls."""
    yield records.transcript([], result=records.result("completed", 0))
    no = records.decision("deny", "default", "Blocked: no")
    denied = [records.call(n, "bash", {"command": "x"}, "denied", "no", decision=no) for n in range(1, 5)]
    yield records.transcript(denied, result=records.result("denied", 5))
    unknown = [records.call(1, "bash", None, "unknown", "", arguments_json="{", duration_s=None, started_at=None)]
    ending = records.result("unknown", None, "the run did not come to its end")
    yield records.transcript(unknown, run=None, model=None, policy=None, result=ending)
    yield records.transcript([records.call(n, "read", {"path": f"{n}"}, "ok", "") for n in range(1, 5_001)])


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_renders_every_kind_of_record_and_leaves_it_as_it_was(name: str, records: Any) -> None:
    for document in kinds(records):
        before = repr(document)
        report = renderer(name)(document)
        assert report
        report.encode()
        assert repr(document) == before
        assert renderer(name)(document) == report


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_renders_whatever_the_schema_allows(name: str, records: Any, runner_commands: Runner) -> None:
    render = renderer(name)
    for document in records.odd(400, 8):
        report = render(document)
        assert [line for line in runner_commands(report) if not OURS.match(line)] == []


@pytest.mark.parametrize("name", FORMATS)
def test_attack_no_hostile_output_is_a_command_to_the_runner(
    name: str, records: Any, hostile_texts: Hostile, runner_commands: Runner
) -> None:
    render = renderer(name)
    for document in records.hostile(hostile_texts(10_000 if name != "html" else 1_000, 4)):
        report = render(document)
        report.encode()
        obeyed = runner_commands(report)
        assert [line for line in obeyed if not OURS.match(line)] == []
        assert bool(obeyed) == (name == "github")


@pytest.mark.parametrize("name", ["text", "sarif", "codequality"])
@pytest.mark.parametrize("service", log_parsers.PARSERS)
def test_attack_no_report_in_a_log_is_a_command_to_another_service(name: str, service: str, records: Any) -> None:
    for document in records.hostile(iter(log_parsers.HOSTILE * 4)):
        assert log_parsers.PARSERS[service](renderer(name)(document)) == []


def test_attack_no_comparison_of_hostile_runs_is_a_command_to_the_runner(
    records: Any, hostile_texts: Hostile, runner_commands: Runner
) -> None:
    documents = list(records.hostile(hostile_texts(900, 9)))
    for before, after in pairwise(documents):
        assert runner_commands(render_comparison(before, after, compare_calls(before, after))) == []


def test_attack_no_explanation_of_a_hostile_call_is_a_command_to_the_runner(
    tmp_path: Path, hostile_texts: Hostile, runner_commands: Runner
) -> None:
    policy = load_policy("review", workspace=tmp_path)
    for text in hostile_texts(300, 10):
        for tool, arguments in (("bash", {"command": f'cat "{text}"'}), ("read", {"path": text}), (text, {})):
            assert runner_commands(render_decision(policy.decide(tool, arguments))) == []
