import random

import pytest
from pydantic import TypeAdapter, ValidationError

from ci_agent.policy.file.file_values import CommandWords
from ci_agent.policy.matchers.command_patterns import parse_command_pattern, split_command_pattern

ADAPTER: TypeAdapter[tuple[str, ...]] = TypeAdapter(CommandWords)


def read(text: str) -> tuple[str, ...] | None:
    try:
        return ADAPTER.validate_python(text)
    except ValidationError:
        return None


def read_in_full(text: str) -> tuple[str, ...] | None:
    try:
        words = split_command_pattern(text)
        parse_command_pattern(words)
    except ValueError:
        return None
    return None if words[0].startswith("-") else words


@pytest.mark.parametrize("seed", range(4))
def test_plain_commands_are_read_as_the_parser_reads_them(seed: int) -> None:
    random_source = random.Random(seed)
    pieces = [
        "git",
        "a.b/c",
        "x=1",
        "-f",
        "--all",
        "%h",
        "@",
        ":",
        "+",
        "é",
        "~",
        " ",
        " ",
        "  ",
        "**",
        "*",
        "{a,b}",
        "'",
        "#",
    ]
    texts = ["".join(random_source.choices(pieces, k=random_source.randint(1, 8))) for _ in range(400)]
    assert [read(text) for text in texts] == [read_in_full(text) for text in texts]


def test_a_pattern_of_plain_words_may_end_in_any_further_words() -> None:
    assert read("git log --oneline **") == ("git", "log", "--oneline", "**")
    assert read("git ** log") is None
