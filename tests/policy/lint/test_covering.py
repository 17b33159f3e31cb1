"""Covering is claimed only where it holds: whatever fits the narrow pattern must fit the wide one."""

import random

import pytest

from ci_agent.policy.lint.covering import covers
from ci_agent.policy.matchers.command_patterns import CommandPattern, parse_command_pattern
from ci_agent.policy.matchers.path_globs import matches_parts, parse_path_glob
from ci_agent.policy.rules import Rule

NAMES = ["a", "b", "*", "**", "a*", "*b", "{a,b}", "ab"]
TEXTS = ["a", "b", "ab", "abb", "c"]


def rule(tool: str, **matchers: object) -> Rule:
    return Rule(id="r", effect="allow", tools=(tool,), source="f:1", **matchers)  # type: ignore[arg-type]  # by name


def path_matches(glob: str, names: list[str]) -> bool:
    return any(matches_parts(parts, names) for parts in parse_path_glob(glob).alternatives)


def command_matches(pattern: CommandPattern, words: list[str]) -> bool:
    size = len(pattern.tokens)
    if len(words) < size or (len(words) > size and not pattern.rest):
        return False
    return all(token.matches(word) for token, word in zip(pattern.tokens, words, strict=False))


@pytest.mark.parametrize("seed", range(4))
def test_a_glob_that_covers_another_matches_all_that_the_other_matches(seed: int) -> None:
    source = random.Random(seed)
    claims = 0
    for _ in range(600):
        wide, narrow = ("/".join(source.choices(NAMES, k=source.randint(1, 3))) for _ in range(2))
        if covers(rule("read", path=(wide,)), rule("read", path=(narrow,))):
            claims += 1
            paths = [source.choices(TEXTS, k=source.randint(1, 5)) for _ in range(40)]
            assert [path for path in paths if path_matches(narrow, path) and not path_matches(wide, path)] == []
    assert claims > 5


@pytest.mark.parametrize("seed", range(4))
def test_a_command_pattern_that_covers_another_matches_all_that_the_other_matches(seed: int) -> None:
    source = random.Random(seed)
    tokens = [name for name in NAMES if name != "**"]
    claims = 0
    for _ in range(600):
        wide, narrow = (
            (*source.choices(tokens, k=source.randint(1, 3)), *source.choice([(), ("**",)])) for _ in range(2)
        )
        if covers(rule("bash", command=(wide,)), rule("bash", command=(narrow,))):
            claims += 1
            wide_pattern, narrow_pattern = parse_command_pattern(wide), parse_command_pattern(narrow)
            lines = [source.choices(TEXTS, k=source.randint(1, 5)) for _ in range(40)]
            missed = [
                line
                for line in lines
                if command_matches(narrow_pattern, line) and not command_matches(wide_pattern, line)
            ]
            assert missed == []
    assert claims > 5
