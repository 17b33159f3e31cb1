"""What the flags of `run` are called by whoever uses the GitHub action: there they are inputs."""

import re
from collections.abc import Collection, Mapping
from typing import Final

ACTION_VARIABLE: Final = "CI_AGENT_ACTION"
"""The action's step sets it, to where the action lies."""

_SAME_NAME: Final = (
    *("prompt-file", "task", "event-text", "policy", "trust-head", "model", "base-url", "tools", "workspace"),
    *("max-turns", "max-tool-calls", "max-tokens", "max-cost-usd", "timeout", "output-schema", "proposals"),
    *("fail-on-denied", "fail-on-error", "sandbox", "transcript"),
)

INPUTS: Final[Mapping[str, str]] = {
    **{f"--{name}": name for name in _SAME_NAME},
    "--api-key-file": "api-key",
    "--context-file": "context-files",
    "--input": "task-inputs",
}
"""The input that stands for a flag; what is not here goes into `extra-args`."""

_SWITCHES: Final = frozenset({"event-text", "trust-head"})

_FLAG: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z](?![\w-])")


def is_action(environment: Mapping[str, str]) -> bool:
    """Whether the run was started by the action's step."""
    return bool(environment.get(ACTION_VARIABLE))


def inputs_for(message: str, environment: Mapping[str, str], flags: Collection[str] = ()) -> str | None:
    """A line that says which inputs the flags in a message are; None outside of the action, and when it names none.

    `flags`: those that a run takes besides, which `extra-args` is for. Words that only look like flags stay what they
    are: they may be anybody's.
    """
    if not is_action(environment):
        return None
    named = dict.fromkeys(_FLAG.findall(message))
    told = [_told(flag) for flag in named if flag in INPUTS and f"the input {INPUTS[flag]}" not in message]
    others = [flag for flag in named if flag in flags and flag not in INPUTS]
    if others:
        told.append(f"the input extra-args is for {' and '.join(others)}")
    return f"In the action {', '.join(told)}." if told else None


def _told(flag: str) -> str:
    return f"{flag} is the input {INPUTS[flag]}" + (': "true"' if INPUTS[flag] in _SWITCHES else "")
