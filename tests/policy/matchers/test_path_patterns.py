"""Many patterns at once say what each by itself would, and what a look costs is told."""

from hypothesis import given
from hypothesis import strategies as st

from ci_agent.policy.matchers.path_globs import matches_parts
from ci_agent.policy.matchers.path_patterns import PathPatterns, path_pattern

_NAMES = st.lists(st.sampled_from(["a", "b", "ab", "aab", "b.c", ".c"]), min_size=1, max_size=5)
_PARTS = st.sampled_from(["a", "b", "ab", "*", "**", "a*", "*b", "*.c", "a*b", "*a*"])
_TEXTS = st.lists(st.lists(_PARTS, min_size=1, max_size=4).map("/".join), max_size=12)


def _free(cost: int) -> None:
    assert cost > 0


@given(_TEXTS, _NAMES)
def test_many_fit_where_one_of_them_does(texts: list[str], path: list[str]) -> None:
    each = [path_pattern(text) for text in texts]
    together = PathPatterns(each)
    sizes = range(1, len(path) + 1)
    assert together.fit(path, _free) == any(matches_parts(one.parts, path) for one in each)
    assert together.hold(path, _free) == any(matches_parts(one.parts, path[:size]) for one in each for size in sizes)
    assert together.hold_as_deep(path, _free) == any(
        matches_parts(one.parts, path[:size]) for one in each for size in {min(one.names, len(path)), len(path)}
    )


def test_each_pattern_that_is_tried_is_paid_for() -> None:
    spent: list[int] = []
    alike = PathPatterns(path_pattern(f"**/*aaaa*{number}") for number in range(300))
    assert not alike.fit(["a" * 100 + "b"], spent.append)
    assert sum(spent) > 300
    spent.clear()
    different = PathPatterns(path_pattern(f"**/name{number}") for number in range(300))
    assert not different.fit(["a" * 100 + "b"], spent.append)
    assert sum(spent) < 10


def test_what_is_tried_against_a_long_path_costs_more() -> None:
    short: list[int] = []
    long: list[int] = []
    deep = PathPatterns([path_pattern("**/a/**/a/**/b")])
    assert not deep.hold(["a"], short.append)
    assert not deep.hold(["a"] * 100, long.append)
    assert sum(long) > 10 * sum(short)
