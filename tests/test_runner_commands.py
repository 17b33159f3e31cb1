"""The port of the runner's parsers, held to lines whose fate is known: a port that sees nothing would prove nothing."""

from collections.abc import Callable

import pytest

Runner = Callable[[str], list[str]]


@pytest.mark.parametrize(
    "line",
    [
        "::error::x",
        "::ERROR file=a,line=1::x",
        "  \t::group::x",
        "\u00a0::debug::x",
        "\u2003\u200d::add-mask::x",
        "##[add-mask]x",
        "long before ##[Group]x",
        "##[nothing] ##[error a=b;]x",
        "text\r::notice::x",
        "text ##vso[task.complete]x",
        "##TeamCity[x]",
    ],
)
def test_the_runner_obeys(line: str, runner_commands: Runner) -> None:
    assert len(runner_commands(line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "> ::error::x",
        "::unknown::x",
        "::error:x",
        "##\\[error]x",
        "##vso\\[x]",
        "# #[error]",
        "##[unknown]x",
        "##[error",
        "std::error::x",
    ],
)
def test_the_runner_prints(line: str, runner_commands: Runner) -> None:
    assert runner_commands(line) == []
