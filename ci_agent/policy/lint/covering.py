"""Whether one rule is about everything that another one is about, as far as their patterns show it.

Never says yes wrongly for what it compares; says no whenever it would take more than comparing.
"""

from collections.abc import Sequence
from typing import TypeVar

from ci_agent.policy.lint.samples import command_patterns, path_glob, tool_pattern
from ci_agent.policy.matchers.command_patterns import CommandPattern, TokenPattern
from ci_agent.policy.matchers.path_globs import Part, PathGlob, matches_parts
from ci_agent.policy.rules import Rule

Value = TypeVar("Value")


def covers(wide: Rule, narrow: Rule) -> bool:
    """`narrow` is an allow rule, `wide` an allow or a deny rule."""
    return (
        all(any(_covers_tool(theirs, ours) for theirs in wide.tools) for ours in narrow.tools)
        and _covers_commands(wide, narrow)
        and _covers_globs(wide, (*(narrow.path or ()), *(narrow.paths or ())))
        and _covers_values(wide, narrow)
        and wide.has is None
        and wide.max_calls is None
        and (not wide.only or narrow.only)
        and (wide.args is None or wide.args == narrow.args)
        and (wide.effect == "deny" or set(narrow.env or ()) <= set(wide.env or ()))
    )


def _covers_tool(wide: str, narrow: str) -> bool:
    names = tool_pattern(narrow).literals
    if names is None:
        return wide == narrow
    pattern = tool_pattern(wide)
    return all(pattern.covers(name) for name in names)


def _covers_commands(wide: Rule, narrow: Rule) -> bool:
    if wide.command is None:
        return True
    theirs = command_patterns(wide)
    return all(any(_covers_command(pattern, ours) for pattern in theirs) for ours in command_patterns(narrow))


def _covers_command(wide: CommandPattern, narrow: CommandPattern) -> bool:
    size = len(wide.tokens)
    if len(narrow.tokens) < size or not all(map(_covers_token, wide.tokens, narrow.tokens)):
        return False
    return wide.rest or (len(narrow.tokens) == size and not narrow.rest)


def _covers_token(wide: TokenPattern, narrow: TokenPattern) -> bool:
    if wide.text == narrow.text or wide.is_any:
        return True
    words = [wild.literal for wild in narrow.alternatives]
    return all(word is not None and wide.matches(word) for word in words)


def _covers_globs(wide: Rule, narrow: Sequence[str]) -> bool:
    theirs = (*(wide.path or ()), *(wide.paths or ()))
    if not theirs and wide.effect == "deny":
        return True
    globs = [path_glob(text) for text in theirs or ("**",)]
    return all(any(_covers_glob(glob, path_glob(text)) for glob in globs) for text in narrow or ("**",))


def _covers_glob(wide: PathGlob, narrow: PathGlob) -> bool:
    if wide.anchor != narrow.anchor:
        return False
    return all(any(_covers_parts(theirs, ours) for theirs in wide.alternatives) for ours in narrow.alternatives)


def _covers_parts(wide: Sequence[Part], narrow: Sequence[Part]) -> bool:
    if tuple(wide) == tuple(narrow):
        return True
    names = [part.literal for part in narrow if part is not None and part.literal is not None]
    if len(names) == len(narrow):
        return matches_parts(wide, names)
    folder = _tree(wide)
    return folder is not None and len(narrow) > len(folder) and tuple(narrow[: len(folder)]) == folder


def _tree(parts: Sequence[Part]) -> tuple[Part, ...] | None:
    """The folder of a glob that means everything beneath one."""
    if len(parts) < 2 or parts[-2] is not None or parts[-1] is None or not parts[-1].is_star:
        return None
    return tuple(parts[:-2])


def _covers_values(wide: Rule, narrow: Rule) -> bool:
    if wide.host is None and wide.effect == "allow" and narrow.host is not None:
        return False
    if wide.host is not None and not _is_subset(narrow.host, wide.host) and wide.host != ("**",):
        return False
    if wide.effect == "deny" and wide.scheme is None and wide.port is None and wide.method is None:
        return True
    return (wide.scheme, wide.port, wide.method) == (narrow.scheme, narrow.port, narrow.method)


def _is_subset(narrow: Sequence[Value] | None, wide: Sequence[Value]) -> bool:
    return narrow is not None and set(narrow) <= set(wide)
