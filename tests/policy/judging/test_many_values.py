"""Tests held against many values at once say what they say held against each."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.json_types import Json
from ci_agent.policy.compiled.match import CompiledTest
from ci_agent.policy.compiled.net import host_set, may_be_host
from ci_agent.policy.judging.many_values import ManyValues
from ci_agent.policy.matchers.argument_tests import judge_plainly, parse_argument_selector, parse_argument_test
from ci_agent.urls import InvalidUrlError, Url, parse_url

_NUMBERS = st.sampled_from([0, 1, 1.0, 2, 2.5, -3, 10**20, 1e20])
_PLAIN: st.SearchStrategy[Json] = st.one_of(st.none(), st.booleans(), _NUMBERS, st.sampled_from(["", "a", "b", "1"]))
_VALUES = st.recursive(
    _PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["k", "l"]), inner, max_size=2)
    ),
    max_leaves=4,
)
_TESTS = st.one_of(
    st.builds(lambda options: {"enum": options}, st.lists(_VALUES, min_size=1, max_size=3)),
    st.builds(lambda least: {"min": least}, _NUMBERS),
    st.builds(lambda most: {"max": most}, _NUMBERS),
    st.builds(lambda least, most: {"min": least, "max": most}, _NUMBERS, _NUMBERS),
    st.builds(
        lambda names: {"type": names},
        st.lists(st.sampled_from(["string", "number", "integer", "null", "array"]), min_size=1),
    ),
)
_HOSTS = [
    "a.example.com",
    "example.com",
    "localhost",
    "x.localhost",
    "127.0.0.1",
    "10.1.2.3",
    "[::1]",
    "[::ffff:10.1.2.3]",
]
_PATTERNS = [
    "a.example.com",
    "*.example.com",
    "*.com",
    "127.0.0.0/8",
    "10.0.0.0/8",
    "10.1.2.3",
    "::1",
    "**",
    "other.org",
]


def _compiled(tests: dict[str, Any]) -> CompiledTest:
    test = parse_argument_test(tests)
    hosts = None if test.host is None else host_set(test.host)
    return CompiledTest(parse_argument_selector("x[]"), test, (), hosts, test.is_plain)


@given(_TESTS, st.lists(_VALUES, min_size=1, max_size=5))
def test_a_plain_test_means_the_same_for_all_values_at_once(tests: dict[str, Any], values: list[Json]) -> None:
    test = _compiled(tests)
    one_by_one = any(judge_plainly(test.test, value) != "fails" for value in values)
    assert ManyValues(values, []).any_may_pass(test) is one_by_one


@given(
    st.lists(st.sampled_from(_PATTERNS), min_size=1, max_size=3),
    st.lists(st.sampled_from([*(f"https://{host}/x" for host in _HOSTS), "no address"]), min_size=1, max_size=4),
)
def test_a_test_of_hosts_means_the_same_for_all_values_at_once(patterns: list[str], values: list[str]) -> None:
    test = _compiled({"host": patterns})
    urls = list(map(_url, values))
    assert test.hosts is not None
    one_by_one = any(url is None or may_be_host(test.hosts, url) for url in urls)
    assert ManyValues(list(values), urls).any_may_pass(test) is one_by_one


def _url(text: str) -> Url | None:
    try:
        return parse_url(text)
    except InvalidUrlError:
        return None


def test_a_value_that_is_no_text_may_be_any_host() -> None:
    assert (
        ManyValues([1, "https://b.org/"], [_url("https://b.org/")]).any_may_pass(_compiled({"host": "a.org"})) is True
    )


@pytest.mark.parametrize("more", [{"regex": "a.*"}, {"regex": ".*", "enum": ["a"]}, {"min": 1, "type": "integer"}])
def test_other_tests_are_held_against_each_value(more: dict[str, Any]) -> None:
    assert ManyValues(["a"], []).any_may_pass(_compiled(more)) is None
