"""What is said of a run beside how it ended."""

from typing import Any

import pytest

from ci_agent.reports.outcome import outcome_line, passed_limits


@pytest.mark.parametrize(
    ("limits", "cost_usd", "passed"),
    [
        ({}, 5.0, []),
        ({"max_tokens": None, "max_cost_usd": None}, 5.0, []),
        ({"max_tokens": 1230, "max_cost_usd": 5.0}, 5.0, []),
        ({"max_tokens": 10, "max_cost_usd": 2}, 5.0, ["1,230 tokens, 123 times the limit of 10", "5 USD, 2.5 times"]),
        ({"max_tokens": 1229}, None, ["1,230 tokens, just over the limit of 1,229"]),
        ({"max_cost_usd": 1}, None, []),
        ({"max_tokens": "odd", "max_cost_usd": 0}, 5.0, []),
    ],
    ids=str,
)
def test_limits_that_were_passed_are_told_with_how_far(
    records: Any, limits: Any, cost_usd: float | None, passed: list[str]
) -> None:
    document = records.transcript([])
    document["policy"]["limits"] = limits
    document["usage"]["cost_usd"] = cost_usd
    told = list(passed_limits(document))
    assert len(told) == len(passed)
    assert all(line.startswith(beginning) for line, beginning in zip(told, passed, strict=True))
    assert outcome_line(document).endswith("; ".join(["", *told]) if told else "cost unknown" * (cost_usd is None))
