import pytest

from ci_agent.spelling import counted, did_you_mean, listed, nearest


@pytest.mark.parametrize(
    ("word", "meant"),
    [("alow", "allow"), ("ALLOW", "allow"), ("readme", "README"), ("xyz", None), ("a" * 100_000, None), ("", None)],
)
def test_the_known_word_that_was_probably_meant(word: str, meant: str | None) -> None:
    assert nearest(word, ["README", "deny", "allow"]) == meant


def test_who_asks_says_how_like_it_must_be() -> None:
    assert (nearest("tokens", ["max tokens"]), nearest("tokens", ["max tokens"], 0.8)) == ("max tokens", None)


def test_the_order_of_the_known_words_does_not_matter() -> None:
    assert nearest("ad", ["ac", "ab"]) == nearest("ad", ["ab", "ac"])


def test_a_suggestion_ends_an_error_or_is_none() -> None:
    assert did_you_mean("alow", ["allow", "deny"]) == "; did you mean 'allow'?"
    assert did_you_mean("xyz", ["allow", "deny"]) == ""


@pytest.mark.parametrize(("count", "text"), [(0, "0 turns"), (1, "1 turn"), (2, "2 turns")])
def test_one_is_no_plural(count: int, text: str) -> None:
    assert counted(count, "turn") == text


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d"], "a, b, c and 1 more")],
)
def test_a_long_list_is_cut_and_counted(names: str, text: str) -> None:
    assert listed(names) == text
