"""find: where it starts, what its expression runs, writes or deletes."""

from collections.abc import Sequence

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.languages.find_tests import COMMANDS, TWO_VALUES, end_of_command, find_option, selections
from ci_agent.policy.programs.parsed import Operand, Parsed
from ci_agent.policy.programs.profile import HAZARDS, Meaning
from ci_agent.policy.words import EVERYTHING, Selection, Word, literal_word

_BEFORE_PATHS = frozenset({"-H", "-L", "-P", "-O", "-O0", "-O1", "-O2", "-O3"})
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
    through_links = follows_links([operand.word.literal for operand in operands])
    lost = through_links or len(roots) > _MAX_ROOTS
    reaching, _ = selections(parsed, position)
    deleted: set[Selection] = set()
    while position < len(operands):
        selection = reaching[position]
        text = operands[position].word.literal
        found = text in COMMANDS and not lost
        known = [root._replace(selection=selection) for root in roots] if found else []
        if text == "-delete":
            chosen = selection if len(roots) <= _MAX_ROOTS else EVERYTHING
            for root in roots if chosen not in deleted else ():
                draft.use("delete", root, recursive=True, selection=chosen)
            deleted.add(chosen)
            if through_links:
                draft.doubt("with -L, find deletes what lies behind links too: leave it out")
        position = _read_primary(parsed, position, known, draft)


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
    if name in COMMANDS:
        return _read_command(parsed.operands, position, known, draft)
    option = find_option(parsed, name)
    if option is None:
        draft.hazard(operand.at, HAZARDS["unlisted"])
        return position + 1
    if option.why is not None:
        draft.hazard(operand.at, option.why)
    if option.arity == "bare":
        return position + 1
    if position + 1 < len(parsed.operands):
        _use_value(option.meaning, parsed.operands[position + 1].word, draft)
    return position + (3 if name in TWO_VALUES else 2)


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
    end = end_of_command(operands, position + 1)
    words = [_found_names(operand.word, roots, name) for operand in operands[position + 1 : end]]
    draft.run(words, folder=_unknown("the folder of each file", roots) if name.endswith("dir") else None)
    if any(word.splits and not word.beneath for word in words):
        draft.doubt(f"the command of {name} is not known")
    return end + 1


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
