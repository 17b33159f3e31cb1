"""Counts in JSON that nobody has checked."""

import pytest

from ci_agent.json_types import Json
from ci_agent.providers.wire.usage_counts import count, count_at, first_count


@pytest.mark.parametrize(("value", "counted"), [(0, 0), (7, 7), (7.0, 7), (10**12, 10**12)])
def test_counts_are_read(value: Json, counted: int) -> None:
    assert count(value) == counted


@pytest.mark.parametrize("value", [None, True, -1, 1.5, "7", [], {}, float("nan"), float("inf"), 10**400, 1e308])
def test_what_is_no_count_is_none(value: Json) -> None:
    assert count(value) is None


def test_a_path_may_lead_nowhere() -> None:
    source = {"a": {"b": 3}, "c": [1], "d": None}
    assert [count_at(source, *path) for path in (("a", "b"), ("a",), ("c", "b"), ("d", "b"), ("e",))] == [
        3,
        None,
        None,
        None,
        None,
    ]
    assert count_at([], "a") is None


def test_the_first_path_with_a_count_wins() -> None:
    assert first_count({"a": None, "b": {"c": 0}, "d": 5}, ("a",), ("b", "c"), ("d",)) == 0
    assert first_count({}, ("a",), ("b",)) is None
