"""Whatever the words: an answer, in time that grows with their number, and none less for knowing less."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent.policy.programs.interpret import interpret
from ci_agent.policy.programs.load import find_profile, program_names
from ci_agent.policy.programs.names import names_printed
from ci_agent.policy.programs.profile import HAZARDS
from ci_agent.policy.words import Word, literal_word

_TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from("- -- --output -o -e -c -f -x= --x=/y {} + ; ( ) ! [ ] = @f a b=c".split()),  # noqa: SIM905  # shorter
    st.sampled_from("/etc/x ../y ~ status run -C -m s/a/b/w {print} 1 *".split()),  # noqa: SIM905  # as above
)
_LITERALS = st.builds(literal_word, _TEXTS)
_UNKNOWN = st.builds(Word, st.just("unknown"), st.just("$x"), st.just((0, 0)), prefix=_TEXTS, splits=st.booleans())
_GLOBS = st.builds(Word, st.just("glob"), _TEXTS.map(lambda text: text + "*"), st.just((0, 0)))
_CHOICES = st.builds(
    Word,
    st.just("choice"),
    st.just("$f"),
    st.just((0, 0)),
    choices=st.lists(st.one_of(_LITERALS, _GLOBS), min_size=1, max_size=3).map(tuple),
)
_BENEATH = st.builds(
    Word,
    st.just("unknown"),
    st.just("{}"),
    st.just((0, 0)),
    beneath=st.just((literal_word("src"),)),
    splits=st.booleans(),
)
_WORDS = st.lists(st.one_of(_LITERALS, _LITERALS, _UNKNOWN, _GLOBS, _CHOICES, _BENEATH), max_size=8)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(program_names()), _WORDS, st.booleans())
def test_interpret_never_raises(program: str, words: list[Word], knows_input: bool) -> None:
    command = [literal_word(program), *words]
    effects = interpret(command, input_names=(literal_word("src"),) if knows_input else None)
    positions = [at for at, _ in effects.hazards] + [*effects.looked_through, *effects.may_be_options]
    assert all(0 < at < len(command) for at in positions)
    names_printed(command)


@settings(max_examples=150, deadline=None)
@given(_WORDS)
def test_any_first_word_is_answered(words: list[Word]) -> None:
    interpret(words)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["sort", "sed", "tar", "git", "cp", "curl", "find", "bash", "env"]), st.lists(_TEXTS, max_size=6)
)
def test_a_word_that_is_not_known_says_no_less_than_any_of_its_values(program: str, texts: list[str]) -> None:
    """When the last word is known only at run time, then its effects are among those said, or a problem is."""
    known = interpret([literal_word(program), *map(literal_word, texts), literal_word("-o"), literal_word("x")])
    hidden = Word("unknown", "$x", (0, 0))
    unknown = interpret([literal_word(program), *map(literal_word, texts), hidden, literal_word("x")])
    listed = {at for at, why in known.hazards if why != HAZARDS["unlisted"]}
    assert unknown.problem is not None or listed <= {at for at, _ in unknown.hazards}


def _seconds(words: list[Word]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        interpret(words)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize(
    "make",
    [
        lambda n: ["rm", *(f"f{i}" for i in range(n))],
        lambda n: ["cp", *(f"f{i}" for i in range(n))],
        lambda n: ["git", "log", *(f"--x{i}" for i in range(n))],
        lambda n: ["sort", *(["-k1"] * n)],
        lambda n: ["sort", "-" + "r" * n],
        lambda n: ["grep", *(["-e", "x"] * (n // 2))],
        lambda n: ["tar", *(["-C", "a"] * (n // 2)), "-cf", "x", "y"],
        lambda n: ["git", *(["-C", "a"] * (n // 2)), "status"],
        lambda n: ["env", *(f"A{i}=1" for i in range(n)), "x"],
        lambda n: ["find", ".", *(["-name", "x", "-o"] * (n // 3))],
        lambda n: ["find", *(["."] * (n // 2)), *(["-exec", "x", "{}", ";"] * 4)],
        lambda n: ["find", ".", *(["-exec", "x", "{}", ";"] * (n // 4))],
        lambda n: ["make", *(f"A{i}=x" for i in range(n))],
        lambda n: ["[", *(["-f", "x", "-a"] * (n // 3)), "]"],
        lambda n: ["sed", *(["-e", "s/a/b/"] * (n // 2))],
        lambda n: ["sed", "s/a/b/;" * n],
        lambda n: ["sed", "[" * n],
        lambda n: ["awk", "{print $1}" * n],
        lambda n: ["awk", "/[" * n],
        lambda n: ["jq", "include" * n],
        lambda n: ["frobnicate", *(f"--a=/b{i}" for i in range(n))],
        lambda n: ["curl", *(["-d", "@x"] * (n // 2))],
        lambda n: ["sqlite3", "x", ".tables" + " " * n],
        lambda n: ["sqlite3", "x", ".tables" + " " * n + "|"],
        lambda n: ["python", *(["-u"] * n)],
        lambda n: ["sed", *(["-e", "w x"] * (n // 2))],
        lambda n: ["sed", "s/" + "[" * n + "/x/"],
        lambda n: ["sed", "s/" + "[" * n + "\n]/x/"],
        lambda n: ["sed", "s/" + "[[:" * n + "]/x/"],
        lambda n: ["awk", "/" + "[]" * n],
        lambda n: ["awk", "/" + "[^]" * n],
        lambda n: ["awk", '"' + "\\" * n],
        lambda n: ["make", ":" * n],
        lambda n: ["make", "!" * n + "="],
        lambda n: ["find", *(["x"] * (n // 2)), *(["-delete"] * (n // 2))],
        lambda n: ["find", *(["x"] * (n // 2)), *(["-exec", "rm", "{}", ";"] * (n // 8))],
        lambda n: ["curl", "-F", "=" * n, "a" * n],
        lambda n: ["git", "clone", "a" * n + ":"],
        lambda n: ["let", "1+" * n],
        lambda n: ["env", "-S", "a " * n],
        lambda n: ["sed", "s/" + "[[:" * 4 * n + "/x/"],
        lambda n: ["sed", "s/" + "[[:a" * 4 * n + "/x/"],
        lambda n: ["sort", "-" + "b" * 4 * n],
        lambda n: ["pip", "install", "x@" * n],
        lambda n: ["git", "show", ":" * n],
        lambda n: ["git", "log", "-L", ":a" * n],
    ],
)
def test_time_grows_with_the_number_of_words(make: Callable[[int], list[str]]) -> None:
    small = _seconds([literal_word(text) for text in make(1_000)])
    large = _seconds([literal_word(text) for text in make(10_000)])
    assert large < 40 * small + 0.01
    assert large < 1.0


def test_many_choices_are_not_multiplied_out() -> None:
    choice = Word("choice", "$f", (0, 0), choices=tuple(literal_word(text) for text in ("-o", "-n", "x")))
    assert _seconds([literal_word("sort"), *[choice] * 40]) < 1.0


def test_profiles_are_loaded_once() -> None:
    assert find_profile("git") is find_profile("git")
