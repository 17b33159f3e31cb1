import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.policy.matchers.wildcards import STAR, escape, expand, parse_wildcards


@pytest.mark.parametrize(
    ("pattern", "alternatives"),
    [
        ("plain", ("plain",)),
        ("a*b", (f"a{STAR}b",)),
        ("{a,b}", ("a", "b")),
        ("x{a,b}y{1,2}", ("xay1", "xay2", "xby1", "xby2")),
        ("{a,b{c,d}}", ("a", "bc", "bd")),
        ("{a,}b", ("ab", "b")),
        ("{}", ("{}",)),
        ("{{.Names}}", ("{{.Names}}",)),
        ("{a{b,c}}", ("{ab}", "{ac}")),
        ("a{b", ("a{b",)),
        ("a}b,c", ("a}b,c",)),
        (r"\*", ("*",)),
        (r"\{a,b\}", ("{a,b}",)),
        (r"{a\,b,c}", ("a,b", "c")),
        (r"\\*", ("\\" + STAR,)),
        (r"\d+\.\w", (r"\d+\.\w",)),
        ("end\\", ("end\\",)),
    ],
)
def test_a_pattern_stands_for_its_alternatives(pattern: str, alternatives: tuple[str, ...]) -> None:
    assert expand(pattern) == alternatives


@pytest.mark.parametrize("pattern", ["{a,b}" * 12, "{" * 20 + "a,b" + ",c}" * 20, "a\0b", "a\1b"])
def test_a_pattern_without_bounds_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"alternatives|levels|control"):
        expand(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("*", "", True),
        ("a*", "a", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("*b*c", "abbc", True),
        ("*b*c", "acb", False),
        ("a*b*a", "aba", True),
        ("a*b*a", "aa", False),
        ("x", "X", False),
        ("*\n", "a\n", True),
        ("x", "x\n", False),
    ],
)
def test_a_star_stands_for_any_characters(pattern: str, text: str, fits: bool) -> None:
    (wild,) = parse_wildcards(pattern)
    assert wild.matches(text) is fits


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10), st.integers(0, 2))
def test_matching_agrees_with_a_slow_and_simple_matcher(pattern: str, text: str, gap: int) -> None:
    (wild,) = parse_wildcards(pattern)
    assert wild.matches(text, gap) is _slowly(pattern, text, gap)


def _slowly(pattern: str, text: str, gap: int) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(_slowly(pattern[1:], text[taken:], gap) for taken in range(gap, len(text) + 1))
    return text[:1] == pattern[0] and _slowly(pattern[1:], text[1:], gap)


@given(st.text())
def test_an_escaped_text_matches_itself_alone(text: str) -> None:
    if all(char > "\3" for char in text):
        (wild,) = parse_wildcards(escape(text))
        assert wild.literal == text


def test_many_stars_take_no_time() -> None:
    (wild,) = parse_wildcards("*a" * 500 + "b")
    assert not wild.matches("a" * 100_000)
