"""A word of the source becomes words of a command: braces, tilde, variables, splitting, names of files."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from ci_agent.policy.edited import edit_all
from ci_agent.policy.shell.braces import BraceError, expand_braces, may_expand
from ci_agent.policy.shell.printed_words import path_part, prints_a_line, stand_ins
from ci_agent.policy.shell.program import Question, UnparsableError
from ci_agent.policy.shell.questions import question
from ci_agent.policy.shell.static_words import is_list
from ci_agent.policy.shell.syntax import Arithmetic, Parameter, Part, SourceWord, Span, Substitution, Text
from ci_agent.policy.shell.variables import Known, Variables
from ci_agent.policy.words import Edit, Word, literal_word

_TILDE = re.compile(r"~([^/]*)")
_TILDE_BEHIND = re.compile(r"[=:]~")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_BLANKS = re.compile(r"[ \t\n]+")
_GLOB = re.compile(r"[*?]|\[.+\]", re.DOTALL)
_ACTIVE = re.compile(r"[*?\[]")
_SPECIAL = re.compile(r"([*?\[\]\\])")
_SPECIAL_IN_SET = re.compile(r"([*?\[\]\\!^-])")
_DIGITS = frozenset({"#", "?", "$"})
_MAX_STAND_INS = 32
_MAX_COMBINED = 32


class Surroundings(NamedTuple):
    """What the expansion of a word depends on. `folder` is where globs are matched."""

    source: str
    variables: Variables
    folder: str | None
    printers: Mapping[int, int]
    """For the programs of substitutions, by their ids, the commands that print what is substituted."""
    answers: Callable[[Question, str | None], tuple[str, ...]]
    """Every text that a command may print in a folder, as far as the disk tells."""


class _Unknown(NamedTuple):
    splits: bool
    stand_ins: tuple[str, ...] = ()
    """What stands for its value; it holds nothing that is split or matched, and only an empty one is no word."""
    printed_by: int | None = None
    whole: bool = False
    line: bool = False


class _Several(NamedTuple):
    """One of these, in quotes."""

    choices: tuple[Word, ...]
    splits: bool = False
    """It stands unquoted, and among them are an empty text or names of files, of which the disk tells whether one would
    be split."""


_Value = Text | _Unknown | _Several
"""Of a stretch of a word; what of a text is not quoted may be split and matched."""


def expand_word(word: SourceWord, around: Surroundings) -> list[Word]:
    """The words that an argument becomes."""
    if word.plain is not None:
        return [Word("literal", word.plain, word.span)]
    if not may_expand(word):
        return _expand_parts(word.parts, word.span, around)
    try:
        alternatives = expand_braces(word.parts)
    except BraceError:
        raise UnparsableError("braces that can be read in more than one way", word.span) from None
    return [made for parts in alternatives for made in _expand_parts(parts, word.span, around)]


def expand_value(word: SourceWord, around: Surroundings) -> Word:
    """The one value of a word that is not split, matched or brace-expanded: of an assignment, of `[[`, of `case`."""
    if word.plain is not None:
        return Word("literal", word.plain, word.span)
    values = _evaluate(word.parts, around, quoted=True)
    made = _combine(values, word.span, around)
    return _unknown(values, word.span, around, splits=False) if made is None else made


def _expand_parts(parts: Sequence[Part], span: Span, around: Surroundings) -> list[Word]:
    if len(parts) == 1 and isinstance(parts[0], Substitution) and parts[0].process:
        return [Word("unknown", around.source[span[0] : span[1]], span, pipe=True)]
    if (elements := _elements(parts, span, around)) is not None:
        return elements
    values = _evaluate(parts, around, quoted=False)
    texts = [value for value in values if isinstance(value, Text)]
    if len(texts) == len(values):
        return _split(texts, span)
    if not any(isinstance(value, Text) and _may_split(value) for value in values):
        made = _combine(values, span, around)
        if made is not None:
            return [made]
    return [_unknown(values, span, around, splits=_splits(values))]


def _elements(parts: Sequence[Part], span: Span, around: Surroundings) -> list[Word] | None:
    """The words of `"${name[@]}"`, as far as they are known."""
    before, part = parts[:-1], parts[-1] if parts else None
    if not isinstance(part, Parameter) or not is_list(part) or not (part.quoted and part.plain):
        return None
    known = around.variables.elements(part.name.removesuffix("[@]"))
    # The opening quote leaves an empty text, and so does a pair of quotes, which an empty array makes a word.
    if known is None or any(each != Text("", quoted=True) for each in before) or len(before) > 1:
        return None
    if known.printed_by is not None:
        text = around.source[span[0] : span[1]]
        return [Word("unknown", text, span, splits=True, printed_by=known.printed_by, line=True)]
    matched = any(each.kind == "glob" for words in known.contents for word in words for each in word.choices or (word,))
    if matched and (known.folder != around.folder or around.folder is None):
        return None
    contents = tuple(tuple(word._replace(span=span) for word in words) for words in known.contents)
    if len(contents) == 1:
        return list(contents[0])
    text = around.source[span[0] : span[1]]
    return [Word("unknown", text, span, splits=True, contents=contents)]


def _splits(values: list[_Value]) -> bool:
    if any(_may_split(value) if isinstance(value, Text) else value.splits for value in values):
        known = _stand_ins(values)
        return not known or "" in known
    return False


def _stand_ins(values: list[_Value]) -> tuple[str, ...]:
    """What stands for a whole word; empty when a part of it may be anything, or be split."""
    options: list[tuple[str, ...]] = []
    for value in values:
        if isinstance(value, Text) and not _may_split(value):
            options.append((value.text,))
        elif isinstance(value, _Unknown) and value.stand_ins:
            options.append(value.stand_ins)
        else:
            return ()
    if prod(map(len, options)) > _MAX_STAND_INS:
        return ()
    return tuple(dict.fromkeys(map("".join, product(*options))))


def _may_split(piece: Text) -> bool:
    return not piece.quoted and (_ACTIVE.search(piece.text) is not None or _BLANKS.search(piece.text) is not None)


def _evaluate(parts: Sequence[Part], around: Surroundings, *, quoted: bool) -> list[_Value]:
    """The values of the parts; `quoted`: nothing is split, as in an assignment."""
    values: list[_Value] = []
    for index, part in enumerate(parts):
        if isinstance(part, Text):
            if part.quoted or "~" not in part.text:
                values.append(part)
            else:
                values += _expand_tilde(parts, index, around, assigns=quoted or _is_assignment(parts[0]))
        elif isinstance(part, Parameter):
            values.append(_evaluate_parameter(part, around, quoted=quoted or part.quoted))
        elif isinstance(part, Arithmetic):
            values.append(_Unknown(splits=False))
        else:
            values.append(_evaluate_substitution(part, around, quoted=quoted or part.quoted))
    return values


def _evaluate_substitution(part: Substitution, around: Surroundings, *, quoted: bool) -> _Value:
    notes = around.variables.notes
    if part.process or notes.evaluates:
        return _Unknown(splits=not (quoted or part.process))
    taken = path_part(part.program, notes.functions)
    if taken is not None and (value := _part_of_path(*taken, around, quoted)) is not None:
        return value
    known = stand_ins(part.program, notes.functions)
    if known:
        return _Unknown(splits=not quoted, stand_ins=known)
    if (asked := question(part.program, notes.functions)) and (texts := around.answers(asked, around.folder)):
        # As above, it may have failed.
        printed = [literal_word(text) for text in dict.fromkeys(texts) if text]
        choices = (*printed, literal_word("")._replace(failed=True))
        return _evaluate_known(Known(choices, around.folder), around, quoted)
    printer = around.printers.get(id(part.program))
    one = prints_a_line(part.program)
    return _Unknown(not quoted, printed_by=printer, whole=not one, line=one and quoted)


def _part_of_path(word: SourceWord, edit: Edit, around: Surroundings, quoted: bool) -> _Value | None:
    """A part of a path, one of several perhaps; None when it is not known."""
    words = expand_word(word, around)
    if len(words) != 1 or words[0].kind not in ("literal", "choice"):
        return None
    edits = (Edit("plain"), edit) if words[0].splits else (edit,)
    # When the program cannot be started, it prints nothing.
    failed = Word("literal", "", word.span)
    choices = edit_all(words[0].choices or (words[0],), edits)
    if choices is None:
        return None
    return _evaluate_known(Known((*choices, failed), around.folder), around, quoted)


def _is_assignment(part: Part) -> bool:
    return isinstance(part, Text) and not part.quoted and _ASSIGNMENT.match(part.text) is not None


def _expand_tilde(parts: Sequence[Part], index: int, around: Surroundings, *, assigns: bool) -> list[_Value]:
    """Unquoted text with a tilde, which counts at the beginning of a word, and in a value also behind `=` and `:`."""
    part = parts[index]
    text = part.text if isinstance(part, Text) else ""
    values: list[_Value] = []
    if index == 0 and (match := _TILDE.match(text)):
        if match[1] or (match.end() == len(text) and len(parts) > 1):
            return [_Unknown(splits=False)]
        home = around.variables.literal("HOME")
        # To dash, an empty home folder is no word; to bash it is an empty one.
        values.append(Text(home, quoted=True) if home else _Unknown(splits=around.variables.notes.posix))
        text = text[1:]
    if assigns and (match := _TILDE_BEHIND.search(text)):
        return [*values, Text(text[: match.end() - 1], quoted=False), _Unknown(splits=False)]
    return [*values, Text(text, quoted=False)]


def _evaluate_parameter(part: Parameter, around: Surroundings, *, quoted: bool) -> _Value:
    if part.length or (part.plain and part.name in _DIGITS):
        return _Unknown(splits=False)
    if (not part.plain and part.edit is None) or is_list(part):
        return _Unknown(splits=not quoted or is_list(part))
    variables = around.variables
    known = variables.lookup(part.name) if part.key is None else variables.value_at(part.name, part.key)
    if part.edit is not None:
        choices = edit_all(known.choices, (part.edit,)) if known is not None else None
        if known is None or not choices:
            return _Unknown(splits=not quoted)
        return _evaluate_known(Known(choices, known.folder), around, quoted)
    if known is None:
        return _Unknown(splits=not quoted)
    if known.integer:
        return _Unknown(splits=not quoted and part.name in variables.notes.may_be_empty)
    if known.stand_ins or known.printed_by is not None:
        return _Unknown(not quoted, known.stand_ins, known.printed_by, known.whole, known.line)
    return _evaluate_known(known, around, quoted)


def _evaluate_known(known: Known, around: Surroundings, quoted: bool) -> _Value:
    if len(known.choices) == 1 and (text := known.choices[0].literal) is not None:
        if not quoted and "\\" in text:
            return _Unknown(splits=True)
        return Text(text, quoted)
    names = any(word.literal is None for word in known.choices)
    if names and (known.folder != around.folder or around.folder is None):
        return _Unknown(splits=not quoted)
    literals = [word.text for word in known.choices if word.literal is not None]
    if not quoted and any(map(_is_split, literals)):
        return _Unknown(splits=True)
    return _Several(known.choices, splits=not quoted and (names or "" in literals))


def _is_split(text: str) -> bool:
    return "\\" in text or _ACTIVE.search(text) is not None or _BLANKS.search(text) is not None


def _combine(values: list[_Value], span: Span, around: Surroundings) -> Word | None:
    """One word of known pieces and choices; None when the value is not known."""
    several = [value for value in values if isinstance(value, _Several)]
    if any(isinstance(value, _Unknown) for value in values):
        return None
    if len(several) > 1:
        return _combine_several(values, span, around)
    pieces = ["" if isinstance(value, _Several) else value.text for value in values if not isinstance(value, _Unknown)]
    if not several:
        return Word("literal", "".join(pieces), span)
    index = values.index(several[0])
    before, behind = "".join(pieces[:index]), "".join(pieces[index:])
    choices = several[0].choices
    if before or behind:
        choices = tuple(_between(before, word, behind, span) for word in choices)
    splits = several[0].splits and not all(word.literal for word in choices)
    return Word("choice", around.source[span[0] : span[1]], span, choices, splits=splits)


def _combine_several(values: list[_Value], span: Span, around: Surroundings) -> Word | None:
    """One word of several parts that each have a few spelled values."""
    options: list[tuple[str, ...]] = []
    for value in values:
        if isinstance(value, Text):
            options.append((value.text,))
        elif isinstance(value, _Several) and all(word.literal is not None for word in value.choices):
            options.append(tuple(word.text for word in value.choices))
        else:
            return None
    if prod(map(len, options)) > _MAX_COMBINED:
        return None
    texts = dict.fromkeys(map("".join, product(*options)))
    choices = tuple(Word("literal", text, span) for text in texts)
    # Unquoted ones hold nothing that is split, and only nothing at all is no word.
    splits = any(isinstance(value, _Several) and value.splits for value in values) and "" in texts
    return Word("choice", around.source[span[0] : span[1]], span, choices, splits=splits)


def _between(before: str, word: Word, behind: str, span: Span) -> Word:
    if word.literal is None:
        return word._replace(edits=(*word.edits, Edit("around", before, behind)))
    return Word("literal", before + word.text + behind, span, failed=word.failed)


def _unknown(values: list[_Value], span: Span, around: Surroundings, *, splits: bool) -> Word:
    text = around.source[span[0] : span[1]]
    word = Word("unknown", text, span, prefix=_prefix(values), splits=splits, stand_ins=_stand_ins(values))
    parts = [value for value in values if not isinstance(value, Text) or value.text not in ("", "./")]
    if len(parts) != 1 or not isinstance(parts[0], _Unknown) or word.prefix not in ("", "./"):
        return word
    value = parts[0]
    whole = value.whole and not splits
    return word._replace(printed_by=value.printed_by, whole=whole, line=value.line and not splits)


def _prefix(values: list[_Value]) -> str:
    """The text that the word certainly begins with."""
    known: list[str] = []
    for value in values:
        if not isinstance(value, Text):
            break
        stop = None if value.quoted else re.search(r"[*?\[ \t\n]", value.text)
        if stop is not None:
            known.append(value.text[: stop.start()])
            break
        known.append(value.text)
    return "".join(known)


def _split(pieces: list[Text], span: Span) -> list[Word]:
    """Split what is not quoted at blanks. Text of the source holds none outside of quotes; values may."""
    fields: list[list[Text]] = []
    current: list[Text] = []
    for piece in pieces:
        if piece.quoted or not _BLANKS.search(piece.text):
            if piece.quoted or piece.text:
                current.append(piece)
            continue
        first, *rest = _BLANKS.split(piece.text)
        if first:
            current.append(Text(first, quoted=False))
        for text in rest:
            if current:
                fields.append(current)
            current = [Text(text, quoted=False)] if text else []
    if current:
        fields.append(current)
    return [_match(field, span) for field in fields]


def _match(pieces: list[Text], span: Span) -> Word:
    """A glob when an unquoted character makes it one."""
    shape = "".join(["x" * len(piece.text) if piece.quoted else piece.text for piece in pieces])
    if not _GLOB.search(shape):
        return Word("literal", "".join([piece.text for piece in pieces]), span)
    special = _SPECIAL_IN_SET if "[" in shape else _SPECIAL
    pattern = "".join([special.sub(r"\\\1", piece.text) if piece.quoted else piece.text for piece in pieces])
    return Word("glob", pattern, span)
