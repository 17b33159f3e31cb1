"""JSON that nobody would send, for the tests of what reads it: any at all, made of some words, very deep."""

from collections.abc import Sequence

from hypothesis import strategies as st

from ci_agent.json_types import Json

JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def json_of(words: Sequence[str]) -> st.SearchStrategy[Json]:
    """Values whose texts and names are these words, which mean something to the reader."""
    word = st.sampled_from(words)
    return st.recursive(
        st.none() | st.booleans() | st.integers(-1, 2) | st.floats(allow_nan=False) | word,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(word, inner, max_size=4),
        max_leaves=12,
    )


def deep_json(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth
