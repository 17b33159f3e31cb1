"""Which files can get to each place of find's expression, as far as the tests before it say."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ci_agent.policy.programs.option_names import starred
from ci_agent.policy.programs.parsed import Operand, Parsed
from ci_agent.policy.programs.profile import Option
from ci_agent.policy.programs.selections import selection_of
from ci_agent.policy.words import EVERYTHING, Selection

COMMANDS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
TWO_VALUES = frozenset({"-fprintf"})

_ALTERNATIVE = frozenset({"-o", "-or", ","})
_AND = frozenset({"-a", "-and"})
_NOT = frozenset({"!", "-not"})
_NAMES = frozenset({"-name", "-iname"})


def selections(parsed: Parsed, start: int) -> tuple[Mapping[int, Selection], Selection]:
    """For each position from `start` on, which files get there; and which pass the expression as a whole.

    An `-o` or `,` begins anew. What stands in parentheses or behind a `!` is reached by what passed the tests before.
    """
    operands = parsed.operands
    reaching: dict[int, Selection] = {}
    passed, whole = EVERYTHING, True
    position = start
    while position < len(operands):
        text = operands[position].word.literal
        if text in _ALTERNATIVE:
            passed, whole = EVERYTHING, False
        end = _end(parsed, position)
        reaching.update(dict.fromkeys(range(position, end), passed))
        passed = _narrowed(passed, operands[position:end])
        position = end
    return reaching, passed if whole else EVERYTHING


def _end(parsed: Parsed, position: int) -> int:
    """Behind the test, action, operator or group at a position, and all that a `!` stands before."""
    operands = parsed.operands
    while position < len(operands) and operands[position].word.literal in _NOT:
        position += 1
    if position == len(operands):
        return position
    text = operands[position].word.literal or ""
    if text == "(":
        return _end_of_group(parsed, position)
    if text in COMMANDS:
        return end_of_command(operands, position + 1) + 1
    option = find_option(parsed, text)
    if option is None or option.arity == "bare":
        return position + 1
    return min(position + (3 if text in TWO_VALUES else 2), len(operands))


def find_option(parsed: Parsed, name: str) -> Option | None:
    return parsed.profile.options.get(name) or starred(parsed.profile, name)


def _end_of_group(parsed: Parsed, position: int) -> int:
    depth = 0
    while position < len(parsed.operands):
        text = parsed.operands[position].word.literal
        depth += (text == "(") - (text == ")")
        # A parenthesis that is the value of a test opens nothing.
        position = position + 1 if text in ("(", ")") else _end(parsed, position)
        if depth == 0:
            return position
    return position


def end_of_command(operands: Sequence[Operand], position: int) -> int:
    """Where the command of an `-exec` ends: at `;`, or at `+` behind `{}`."""
    while position < len(operands) and not _ends_command(operands, position):
        position += 1
    return position


def _ends_command(operands: Sequence[Operand], position: int) -> bool:
    text = operands[position].word.literal
    return text == ";" or (text == "+" and operands[position - 1].word.literal == "{}")


def _narrowed(passed: Selection, test: Sequence[Operand]) -> Selection:
    """What a test, or a group of alternative names, lets through."""
    texts = [operand.word.literal for operand in test]
    if texts == ["-type", "f"]:
        return replace(passed, plain_files=True)
    if texts[:1] == ["("]:
        names = _alternative_names(test[1:-1])
    else:
        names = [test[1]] if len(test) == 2 and texts[0] in _NAMES else []
    endings = selection_of([name.word for name in names]).endings if names else ()
    return replace(passed, endings=endings) if endings else passed


def _alternative_names(test: Sequence[Operand]) -> Sequence[Operand]:
    """The globs of `-name A -o -name B`; empty for anything else."""
    texts = [operand.word.literal for operand in test]
    are_names = all(text in _NAMES for text in texts[0::3]) and all(text in ("-o", "-or") for text in texts[2::3])
    return test[1::3] if are_names and len(test) % 3 == 2 else ()
