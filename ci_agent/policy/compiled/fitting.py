"""Whether the patterns of a rule fit a command: by themselves, or by spelling it inside a command that starts it."""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Final, NamedTuple

from ci_agent.policy.compiled.coverage import ANOTHER_PROGRAM, Coverage, Gap, cover
from ci_agent.policy.facts import ExecFact, Origin
from ci_agent.policy.matchers.command_patterns import CommandPattern
from ci_agent.policy.words import Word


def next_gap(patterns: Sequence[CommandPattern], command: ExecFact) -> Gap | None:
    """Where the patterns stop, the one that comes farthest; None when one of them fits."""
    nearest = ANOTHER_PROGRAM if patterns else _NAMES_NO_COMMAND
    if command.origin is None:
        fits: Iterator[Coverage | _Fit | Gap] = map(cover, _worth_trying(patterns, command), repeat(command))
    else:
        fits = _fits(patterns, command)
    for fit in fits:
        if fit is ANOTHER_PROGRAM:
            continue
        if not isinstance(fit, Gap):
            return None
        if (fit.words, fit.is_hazard) > (nearest.words, nearest.is_hazard):
            nearest = fit
    return nearest


def _worth_trying(patterns: Sequence[CommandPattern], command: ExecFact) -> Sequence[CommandPattern]:
    """Without those that plainly name another program."""
    program = command.words[0]
    if program.kind != "literal" or "/" in program.text or command.located is not None:
        return patterns
    return [pattern for pattern in patterns if not pattern.tokens or pattern.tokens[0].matches(program.text)]


_NAMES_NO_COMMAND: Final = Gap(0, "it names no command")


class _Fit(NamedTuple):
    pattern: CommandPattern | None
    """None: the rule spells the whole script that the command stands in."""
    coverage: Coverage


_SPELLED = _Fit(None, Coverage(()))


def _fits(patterns: Sequence[CommandPattern], command: ExecFact) -> Iterator[_Fit | Gap]:
    """How each pattern covers the command, and how each that covers the command around it goes on inside."""
    for pattern in patterns:
        result = cover(pattern, command)
        yield result if isinstance(result, Gap) else _Fit(pattern, result)
    if command.origin is None:
        return
    for outer in _fits(patterns, command.origin.command):
        if isinstance(outer, _Fit):
            yield from _fits_inside(outer, command, command.origin)


def _fits_inside(outer: _Fit, command: ExecFact, origin: Origin) -> Iterator[_Fit | Gap]:
    """`xargs wc **` covers `xargs` and `wc`: the pattern goes on in the inner command, if it spells its name."""
    if outer.pattern is None:
        yield _SPELLED
        return
    at = None if origin.position is None else outer.coverage.tokens[origin.position]
    if origin.position is None or at is None or at >= len(outer.pattern.tokens):
        return
    if not outer.pattern.tokens[at].spells(origin.command.words[origin.position].text):
        return
    if origin.is_script:
        yield _SPELLED
        return
    end = _end_inside(outer, origin.command.words, origin.position + len(command.words))
    inner = CommandPattern(outer.pattern.tokens[at:end], outer.pattern.rest and end is None)
    result = cover(inner, command)
    yield result if isinstance(result, Gap) else _Fit(inner, result)


def _end_inside(outer: _Fit, words: Sequence[Word], behind: int) -> int | None:
    """The token that covers the `+` or `;` with which `find` ends the command; None: the pattern does not spell it."""
    if outer.pattern is None or behind >= len(words) or words[behind].literal not in ("+", ";"):
        return None
    token = outer.coverage.tokens[behind]
    return token if token is not None and token < len(outer.pattern.tokens) else None
