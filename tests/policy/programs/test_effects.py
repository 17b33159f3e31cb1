"""Each command line of the tables in `effects/` has exactly the effects that stand below it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ci_agent.policy.effects import Effects
from ci_agent.policy.programs.interpret import interpret
from ci_agent.policy.words import Word

_TABLES = Path(__file__).parent / "effects"


def _cases() -> Iterator[object]:
    for table in sorted(_TABLES.glob("*.txt")):
        for block in table.read_text(encoding="utf-8").split("\n$ ")[1:]:
            line, *effects = [line for line in block.splitlines() if line and not line.startswith("#")]
            yield pytest.param(line, [effect.strip() for effect in effects], id=f"{table.stem}: {line}")


@pytest.mark.parametrize(("line", "effects"), list(_cases()))
def test_command_line_has_exactly_these_effects(
    line: str,
    effects: list[str],
    read_words: Callable[[str], tuple[Word, ...]],
    describe: Callable[[Effects], list[str]],
) -> None:
    assert describe(interpret(read_words(line))) == effects


def test_tables_are_there() -> None:
    assert sum(1 for _ in _cases()) > 500
