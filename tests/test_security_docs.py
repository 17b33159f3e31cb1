"""The page of promises is true: every promise stands there once, and every test that it names is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import ci_agent

ROOT = Path(ci_agent.__file__).parent.parent

PAGE = (ROOT / "docs" / "security.md").read_text()

ROW = re.compile(r"^\| (?P<number>\d+) \| (?P<promise>[^|]+) \| (?P<held>[^|]+) \| (?P<shown>[^|]+) \|$", re.MULTILINE)

REFERENCE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")

NOT_PROMISED = "Not promised: "


@cache
def names_in(file: str) -> frozenset[str]:
    """The functions at the top of a file of tests."""
    module = ast.parse((ROOT / file).read_text())
    return frozenset(node.name for node in module.body if isinstance(node, ast.FunctionDef))


def test_every_promise_has_one_row_in_the_order_of_their_numbers() -> None:
    assert [int(row["number"]) for row in ROW.finditer(PAGE)] == list(range(1, 81))
    assert len(re.findall(r"^\| *\d", PAGE, re.MULTILINE)) == 80, "a row is not written like the others"


@pytest.mark.parametrize("row", [row.groupdict() for row in ROW.finditer(PAGE)], ids=lambda row: row["number"])
def test_a_row_names_tests_that_are_there_or_says_why_it_is_not_promised(row: dict[str, str]) -> None:
    references = REFERENCE.findall(row["shown"])
    as_a_list = "<br>".join(f"`{file}::{name}`" for file, name in references)
    assert row["shown"].startswith(NOT_PROMISED) or (as_a_list and row["shown"] == as_a_list)
    assert [(file, name) for file, name in references if name not in names_in(file)] == []
    assert all(name.startswith("test_") for _, name in references)


def test_nothing_that_looks_like_a_test_is_named_in_another_way() -> None:
    assert len(REFERENCE.findall(PAGE)) == PAGE.count("::test_")
