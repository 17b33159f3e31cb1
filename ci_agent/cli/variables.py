"""Options as variables: `CI_AGENT_` and the name of the flag."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import click

from ci_agent.ci_services.action_inputs import ACTION_VARIABLE
from ci_agent.spelling import nearest

PREFIX: Final = "CI_AGENT_"

_OTHER_VARIABLES = frozenset({ACTION_VARIABLE.removeprefix(PREFIX)})
"""Of ours, and none of an option."""

_SLIP: Final = 0.8
"""How like an option a variable must be to be taken for it."""


def values_of_variable(text: str) -> list[str]:
    """Of an option that may be repeated: one a line, so that a value can hold blanks."""
    return [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]


class Misspelt(NamedTuple):
    problem: str
    is_slip: bool
    """So near to an option that nothing else can be meant; else it may well be somebody else's."""


def misspelt_variables(command: click.Command, environment: Mapping[str, str]) -> Iterator[Misspelt]:
    """Variables that look like an option of the command and are none: a limit that is spelled wrong is no limit."""
    known = {each.envvar.removeprefix(PREFIX) for each in command.params if isinstance(each.envvar, str)}
    for name in sorted(name for name, value in environment.items() if value):
        word = name.removeprefix(PREFIX)
        meant = None if word == name or word in known | _OTHER_VARIABLES else nearest(word, known)
        if meant:
            problem = f"The variable {name} is no option; did you mean {PREFIX}{meant}?"
            yield Misspelt(problem, nearest(word, [meant], _SLIP) is not None)
