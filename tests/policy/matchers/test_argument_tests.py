from typing import Any

import pytest

from ci_agent.policy.matchers.argument_tests import (
    MISMATCH,
    MISSING,
    judge_plainly,
    parse_argument_selector,
    parse_argument_test,
    select,
    type_name,
)


@pytest.mark.parametrize(
    ("selector", "arguments", "values"),
    [
        ("title", {"title": "x"}, ["x"]),
        ("spec.image", {"spec": {"image": "a"}}, ["a"]),
        ("labels[]", {"labels": ["a", "b"]}, ["a", "b"]),
        ("labels[]", {"labels": []}, []),
        ("labels[]", {"labels": "a"}, [MISMATCH]),
        ("labels[]", {}, [MISSING]),
        ("files[].path", {"files": [{"path": "a"}, {}, 3]}, ["a", MISSING, MISMATCH]),
        ("rows[][]", {"rows": [[1], [2, 3]]}, [1, 2, 3]),
        ("spec.image", {"spec": None}, [MISMATCH]),
        (r"a\.b", {"a.b": 1}, [1]),
    ],
)
def test_a_selector_picks_every_value_it_names(selector: str, arguments: dict[str, Any], values: list[Any]) -> None:
    assert list(select(parse_argument_selector(selector), arguments)) == values


@pytest.mark.parametrize("text", ["", ".", "a.", "a..b", "[]", "a[0]", "a[].[]", "a]"])
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="selector"):
        parse_argument_selector(text)


@pytest.mark.parametrize(
    ("tests", "value", "verdict"),
    [
        ({"enum": ["a", "b"]}, "a", "passes"),
        ({"enum": ["a", "b"]}, "c", "fails"),
        ({"enum": ["a", "b"]}, ["a"], "cannot_judge"),
        ({"enum": "a"}, "a", "passes"),
        ({"enum": [1]}, True, "cannot_judge"),
        ({"enum": [1]}, 1.0, "passes"),
        ({"const": True}, True, "passes"),
        ({"const": True}, 1, "cannot_judge"),
        ({"const": None}, None, "passes"),
        ({"const": {"a": [1]}}, {"a": [1.0]}, "passes"),
        ({"const": {"a": [1]}}, {"a": [True]}, "fails"),
        ({"regex": "a+"}, "aaa", "passes"),
        ({"regex": "a+"}, "aaa\n", "fails"),
        ({"regex": "a+"}, "baaa", "fails"),
        ({"regex": "a|ab"}, "ab", "passes"),
        ({"regex": "a+"}, ["a"], "cannot_judge"),
        ({"regex": ".*"}, "\ud800", "cannot_judge"),
        ({"min": 0, "max": 100}, 100, "passes"),
        ({"min": 0, "max": 100}, 100.01, "fails"),
        ({"min": 0, "max": 100}, -1, "fails"),
        ({"min": 0, "max": 100}, True, "cannot_judge"),
        ({"min": 0, "max": 100}, "5", "cannot_judge"),
        ({"min": 0, "max": 100}, 10**400, "fails"),
        ({"type": "integer"}, 1.0, "passes"),
        ({"type": "integer"}, 1.5, "fails"),
        ({"type": "integer"}, True, "fails"),
        ({"type": ["string", "null"]}, None, "passes"),
        ({"type": "string", "regex": "a"}, ["a"], "fails"),
    ],
)
def test_a_test_judges_by_type_first(tests: dict[str, Any], value: object, verdict: str) -> None:
    assert judge_plainly(parse_argument_test(tests), value) == verdict


@pytest.mark.parametrize(
    ("tests", "problem"),
    [
        ({}, "no test"),
        ({"enmu": ["a"]}, "unknown test"),
        ({"enum": []}, "empty"),
        ({"enum": ["a"], "const": "a"}, "same thing"),
        ({"min": "1"}, "must be a number"),
        ({"max": True}, "must be a number"),
        ({"type": "text"}, "unknown type"),
        ({"regex": 1}, "must be text"),
        ({"regex": "("}, "no RE2 expression"),
        ({"regex": "(?=a)"}, "look-around"),
        ({"regex": r"(a)\1"}, "backreferences"),
        ({"regex": r"\C"}, "half a character"),
        ({"path": "a/"}, "ends in"),
        ({"host": "https://a"}, "is a URL"),
        ({"command": "a | b"}, "shell syntax"),
        ({"command": []}, "empty"),
        ({"path": "a", "command": "ls"}, "read in one way"),
        ({"absent": False}, "absent: true"),
        ({"absent": True, "enum": ["a"]}, "alone"),
    ],
)
def test_a_test_that_is_wrong_says_why(tests: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_argument_test(tests)


def test_a_hostile_regular_expression_takes_no_time() -> None:
    test = parse_argument_test({"regex": "(a+)+$"})
    assert judge_plainly(test, "a" * 50_000 + "!") == "fails"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("", "string"),
        (0, "integer"),
        (2.5, "number"),
        (False, "boolean"),
        ({}, "object"),
        ([], "array"),
        (None, "null"),
    ],
)
def test_types_are_those_of_json(value: object, name: str) -> None:
    assert type_name(value) == name
