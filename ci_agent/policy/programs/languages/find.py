"""find: where it starts, what its expression runs, writes or deletes."""

from collections.abc import Sequence
from dataclasses import replace

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.operands import selection_of
from ci_agent.policy.programs.options import Operand, Parsed
from ci_agent.policy.programs.profile import HAZARDS, Meaning
from ci_agent.policy.words import Selection, Word, literal_word

_BEFORE_PATHS = frozenset({"-H", "-L", "-P", "-O", "-O0", "-O1", "-O2", "-O3"})
_TWO_VALUES = frozenset({"-fprintf"})
_COMMANDS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})

_OPERATORS = frozenset({"(", ")", "!", ",", "-o", "-or", "-not"})

_MAX_ROOTS = 100


def read(parsed: Parsed, draft: Draft) -> None:
    """The profile lists the tests and actions; their order and the commands are read here."""
    operands = parsed.operands
    position = 0
    while position < len(operands) and operands[position].word.literal in _BEFORE_PATHS:
        position += 1
    start = position
    while position < len(operands) and not _begins_expression(operands[position].word, draft):
        position += 1
    roots = [operand.word for operand in operands[start:position]] or [literal_word(".")]
    for root in roots:
        draft.use("list", root, recursive=True)
    # Through a link the names lead anywhere: then nothing is known of them. Nor do many places fit every command.
    lost = follows_links([operand.word.literal for operand in operands]) or len(roots) > _MAX_ROOTS
    known: Sequence[Word] = [] if lost else roots
    joined_by_and = is_conjunction(operands[position:])
    while position < len(operands):
        if joined_by_and:
            known = _narrowed(known, operands, position)
        position = _read_primary(parsed, position, known, draft)
    if HAZARDS["delete"] in draft.hazards.values():
        for root in roots:
            draft.use("delete", root, recursive=True)


def is_conjunction(expression: Sequence[Operand]) -> bool:
    """Whether nothing but `and` joins the tests and actions, so that each is reached by what passed those before."""
    return not any(operand.word.literal in _OPERATORS for operand in expression)


def selection_before(parsed: Parsed, start: int, end: int) -> Selection:
    """Of the files that find comes by, those which pass the tests of names between two positions."""
    operands = parsed.operands
    known: Sequence[Word] = [literal_word(".")]
    position = start if is_conjunction(operands[start:]) else end
    while position < end:
        name = operands[position].word.literal or ""
        option = parsed.profile.options.get(name)
        if option is None or name in _COMMANDS:
            break
        known = _narrowed(known, operands, position)
        position += 1 if option.arity == "bare" else 3 if name in _TWO_VALUES else 2
    return known[0].selection


def _narrowed(roots: Sequence[Word], operands: Sequence[Operand], position: int) -> Sequence[Word]:
    """The places where find starts, with what the test at a position lets through of the files beneath."""
    test = operands[position].word.literal
    if test == "-type" and operands[position + 1 :][:1] and operands[position + 1].word.literal == "f":
        return [root._replace(selection=replace(root.selection, plain_files=True)) for root in roots]
    if test not in ("-name", "-iname") or position + 1 == len(operands):
        return roots
    selection = selection_of([operands[position + 1].word])
    if not selection.endings:
        return roots
    return [root._replace(selection=replace(root.selection, endings=selection.endings)) for root in roots]


def follows_links(words: Sequence[str | None]) -> bool:
    return "-L" in words or "-follow" in words


def _begins_expression(word: Word, draft: Draft) -> bool:
    if word.kind == "glob" and word.text[:1] in ("*", "?", "["):
        draft.doubt(f"a name that {word.text} becomes may be an action of find: write ./{word.text}")
    text = word.prefix if word.kind == "unknown" else word.text
    if word.kind == "choice" or (word.kind == "unknown" and (not text or word.splits)):
        draft.doubt(f"{word.text} may be an action of find")
    return text.startswith("-") or word.literal in ("(", ")", "!", ",")


def _read_primary(parsed: Parsed, position: int, known: Sequence[Word], draft: Draft) -> int:
    """Read one test or action; return the position after it and its values."""
    operand = parsed.operands[position]
    name = operand.word.literal
    if name in ("(", ")", "!", ","):
        return position + 1
    if name is None:
        draft.doubt(f"{operand.word.text} may be an action of find")
        return position + 1
    if name in _COMMANDS:
        return _read_command(parsed.operands, position, known, draft)
    option = parsed.profile.options.get(name) or next(
        (option for option in parsed.profile.prefixes if name.startswith(option.name[:-1])), None
    )
    if option is None:
        draft.hazard(operand.at, HAZARDS["unlisted"])
        return position + 1
    if option.why is not None:
        draft.hazard(operand.at, option.why)
    if option.arity == "bare":
        return position + 1
    if position + 1 < len(parsed.operands):
        _use_value(option.meaning, parsed.operands[position + 1].word, draft)
    return position + (3 if name in _TWO_VALUES else 2)


def _use_value(meaning: Meaning, value: Word, draft: Draft) -> None:
    if value.splits:
        draft.doubt(f"nobody knows how many words {value.text} becomes")
    if value.kind == "glob" and meaning == "data":
        draft.doubt(f"{value.text} becomes the names that match it: quote it")
    match meaning:
        case "read" | "write" | "list" as effect:
            draft.use(effect, value)
        case "names":
            draft.use("read", value)
        case _:
            pass


def _read_command(operands: Sequence[Operand], position: int, roots: Sequence[Word], draft: Draft) -> int:
    """The words up to `;`, or to `+` behind `{}`, are a command; `{}` stands for what was found."""
    name = operands[position].word.text
    end = position + 1
    while end < len(operands) and not _ends_command(operands, end):
        end += 1
    words = [_found_names(operand.word, roots, name) for operand in operands[position + 1 : end]]
    draft.run(words, folder=_unknown("the folder of each file", roots) if name.endswith("dir") else None)
    if any(word.splits and not word.beneath for word in words):
        draft.doubt(f"the command of {name} is not known")
    return end + 1


def _ends_command(operands: Sequence[Operand], position: int) -> bool:
    text = operands[position].word.literal
    return text == ";" or (text == "+" and operands[position - 1].word.literal == "{}")


def _found_names(word: Word, roots: Sequence[Word], action: str) -> Word:
    text = word.literal
    if text is None or "{}" not in text:
        return word
    if text == "{}":
        safe = _common_prefix(roots) if not action.endswith("dir") else "./"
        return Word("unknown", text, word.span, prefix=safe, beneath=tuple(roots))
    return Word("unknown", text, word.span, prefix=text.partition("{}")[0])


def _common_prefix(roots: Sequence[Word]) -> str:
    """What each name begins with for certain, so that none is taken for an option."""
    first = (roots[0].literal if roots else None) or ""
    return first if len(roots) == 1 else first[:1]


def _unknown(text: str, roots: Sequence[Word]) -> Word:
    return Word("unknown", text, (0, 0), beneath=tuple(roots))
