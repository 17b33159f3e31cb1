"""Whatever the words: an answer, in time that grows with their number, and none less for knowing less."""

import time
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent.policy.programs.interpret import interpret
from ci_agent.policy.programs.load import find_profile, program_names
from ci_agent.policy.programs.names import names_printed
from ci_agent.policy.programs.profile import HAZARDS
from ci_agent.policy.words import Word, literal_word

_SPELLINGS = [
    *"- -- --output -o -e -c -f -x= --x=/y {} + ; ( ) ! [ ] = @f a b=c".split(),  # noqa: SIM905  # shorter
    *"/etc/x ../y ~ status run -C -m s/a/b/w {print} 1 *".split(),  # noqa: SIM905  # as above
]
_CHARACTERS = (*map(chr, range(0x180)), "\u2028", "\u3000", "\uff0d", "\U0001f600")


def _text(random: Random) -> str:
    return (
        random.choice(_SPELLINGS)
        if random.random() < 0.5
        else "".join(random.choices(_CHARACTERS, k=random.randrange(9)))
    )


def _literal(random: Random) -> Word:
    return literal_word(_text(random))


def _unknown(random: Random) -> Word:
    return Word("unknown", "$x", (0, 0), prefix=_text(random), splits=random.random() < 0.5)


def _glob(random: Random) -> Word:
    return Word("glob", _text(random) + "*", (0, 0))


def _choice(random: Random) -> Word:
    values = tuple(random.choice((_literal, _glob))(random) for _ in range(random.randint(1, 3)))
    return Word("choice", "$f", (0, 0), choices=values)


def _beneath(random: Random) -> Word:
    return Word("unknown", "{}", (0, 0), beneath=(literal_word("src"),), splits=random.random() < 0.5)


def _words(random: Random) -> list[Word]:
    kinds = (_literal, _literal, _unknown, _glob, _choice, _beneath)
    return [random.choice(kinds)(random) for _ in range(random.randrange(9))]


_SEEDS = st.integers(0, 2**32)  # drawing word by word took fifty times as long as reading them does


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(program_names()), _SEEDS, st.booleans())
def test_interpret_never_raises(program: str, seed: int, knows_input: bool) -> None:
    command = [literal_word(program), *_words(Random(seed))]
    effects = interpret(command, input_names=(literal_word("src"),) if knows_input else None)
    positions = [at for at, _ in effects.hazards] + [*effects.looked_through, *effects.may_be_options]
    assert all(0 < at < len(command) for at in positions)
    names_printed(command)


@settings(max_examples=150, deadline=None)
@given(_SEEDS)
def test_any_first_word_is_answered(seed: int) -> None:
    interpret(_words(Random(seed)))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["sort", "sed", "tar", "git", "cp", "curl", "find", "bash", "env"]), _SEEDS)
def test_a_word_that_is_not_known_says_no_less_than_any_of_its_values(program: str, seed: int) -> None:
    """When the last word is known only at run time, then its effects are among those said, or a problem is."""
    random = Random(seed)
    texts = [_text(random) for _ in range(random.randrange(7))]
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


def test_env_splits_so_many_words_and_no_more() -> None:
    read = interpret([literal_word("env"), literal_word("-S"), literal_word("A=1 " * 499 + "cat")])
    unread = interpret([literal_word("env"), literal_word("-S"), literal_word("A=1 " * 500 + "cat")])
    assert (read.problem, [command.words[0].text for command in read.commands]) == (None, ["cat"])
    assert unread.problem == "env -S of more than 500 words is not read: write the command plainly"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("program", program_names())
def test_a_long_word_is_read_in_a_time_that_grows_with_its_length(program: str) -> None:
    """A name of 32,000 dots held `docker pull` up for half a minute: an expression went back into what it had read."""
    profile = find_profile(program)
    assert profile is not None
    for before, pieces in (("", "a . - / a. : a@ 0 :// { ( <"), *((name, "a . a.") for name in profile.commands)):
        for piece in pieces.split():
            long = piece * (24_000 // len(piece)) + "!"
            interpret([literal_word(text) for text in (program, before, long, "b") if text])
