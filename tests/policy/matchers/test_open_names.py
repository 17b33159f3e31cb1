"""Names that are known but for their digits, against the globs of rules."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.policy.matchers.open_names import OPEN, may_become, may_cover, opened
from ci_agent.policy.matchers.path_globs import parse_path_glob
from ci_agent.policy.matchers.reach import AnchoredGlob, Anchors, anchor_for_denial

_ANCHORS = Anchors(Path("/w"), Path("/home"))
_PIECES = st.sampled_from([OPEN, "a", "1", "-", ".", "x", "9e"])
_NAMES = st.lists(_PIECES, min_size=1, max_size=4).map("".join)
_VALUES = st.text("0123456789abcdef", min_size=1, max_size=3)
_GLOB_NAMES = st.lists(st.sampled_from(["*", "a", "1", "-", ".", "x", "9e", "f"]), min_size=1, max_size=4).map("".join)


def _globs(text: str) -> tuple[AnchoredGlob, ...]:
    return anchor_for_denial(parse_path_glob(text), _ANCHORS)


@pytest.mark.parametrize(
    ("stand_ins", "paths"),
    [
        (("a-.x", "a-2000-01-01.x"), (f"a-{OPEN}-{OPEN}-{OPEN}.x", "a-.x")),
        (("a-", "a-" + "0" * 40), (f"a-{OPEN}", "a-")),
        (("logs2/x-", "logs2/x-2000"), (f"logs2/x-{OPEN}", "logs2/x-")),
        (("2000/x",), (f"{OPEN}/x",)),
        (("out/" + "0" * 40 + "/x", "out/" + "0" * 40 + "/x2000"), (f"out/{OPEN}/x", f"out/{OPEN}/x{OPEN}")),
    ],
)
def test_digits_that_may_be_others_are_open(stand_ins: tuple[str, ...], paths: tuple[str, ...]) -> None:
    assert set(opened(stand_ins)) == set(paths)


@given(_NAMES, st.lists(_VALUES, min_size=4, max_size=4))
def test_an_open_name_may_become_whatever_its_open_places_hold(name: str, values: list[str]) -> None:
    become = name
    for value in values:
        become = become.replace(OPEN, value, 1)
    assert may_become(name, become)


@given(_NAMES, st.lists(_VALUES, min_size=4, max_size=4), _GLOB_NAMES, st.sampled_from(["", "**/", "w/", "*/"]))
def test_a_glob_that_covers_what_a_name_becomes_may_cover_the_name(
    name: str, values: list[str], glob: str, above: str
) -> None:
    become = name
    for value in values:
        become = become.replace(OPEN, value, 1)
    if "**" in glob or glob in (".", ".."):
        return
    for each in _globs(f"/{above}{glob}"):
        for names in (("w", become), (become,)):
            if each.covers(names):
                assert may_cover(each, tuple(name if part == become else part for part in names))


@pytest.mark.parametrize(
    ("glob", "name", "may"),
    [
        ("**/.env", f"out-{OPEN}.log", False),
        ("**/*.key", f"out-{OPEN}.log", False),
        ("**/*.key", f"out-{OPEN}", False),
        ("**/*secret*", f"out-{OPEN}.log", False),
        ("**/*1*", f"out-{OPEN}.log", True),
        ("out-2026-*", f"out-{OPEN}-{OPEN}", True),
        ("out-2026-01", f"out-{OPEN}-{OPEN}", True),
        ("out-", f"out-{OPEN}", False),
        ("out-x*", f"out-{OPEN}", False),
        ("sub/**", f"out-{OPEN}", False),
        ("**", f"out-{OPEN}", True),
    ],
)
def test_a_deny_rule_is_about_an_open_name_that_may_become_one_of_its_own(glob: str, name: str, may: bool) -> None:
    assert any(may_cover(each, ("w", name)) for each in _globs(glob)) is may


def test_many_open_places_take_no_time_to_speak_of() -> None:
    assert not may_become(f"a{OPEN}" * 60, "a" * 250 + "x")
