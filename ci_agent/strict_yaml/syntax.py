"""What libyaml and PyYAML say about broken syntax, in words that tell a person what to do."""

import re
from contextlib import suppress
from dataclasses import dataclass

import yaml

from ci_agent.strict_yaml.text import find_line_starts, place_of, quote


@dataclass(frozen=True, slots=True)
class _Explanation:
    """Applies when the parser's context and problem contain these words (both parsers use them)."""

    context: str
    problem: str
    sentence: str
    """`{text}` is the offending text up to the end of its line, `{word}` its first word, `{char}` its first
    character, `{opened}` where the construct began."""
    at_start: bool = False
    """The place to name is where the construct began, not where the parser gave up."""


_EXPLANATIONS = (
    _Explanation("", "nesting depth", "nested more than 32 levels deep"),
    _Explanation(
        "scanning an alias",
        "",
        '{word} begins with "*", which YAML takes for an alias: put it in quotes',
        at_start=True,
    ),
    _Explanation(
        "scanning an anchor",
        "",
        '{word} begins with "&", which YAML takes for an anchor: put it in quotes',
        at_start=True,
    ),
    _Explanation(" tag", "", '{word} begins with "!", which YAML takes for a tag: put it in quotes', at_start=True),
    _Explanation(
        "directive", "", '{text} begins with "%", which YAML takes for a directive: put it in quotes', at_start=True
    ),
    _Explanation("quoted scalar", "end of stream", "the quote that opens here is never closed", at_start=True),
    _Explanation(
        "quoted scalar",
        "unexpected document",
        "the quote that opens here is not closed before a line that begins with --- or ...",
        at_start=True,
    ),
    _Explanation(
        "quoted scalar",
        "Unicode",
        "{text} holds half of a surrogate pair, which is no character: write the character itself, or all of it as "
        '"\\U0001f600"',
        at_start=True,
    ),
    _Explanation(
        "quoted scalar",
        "",
        "{text} holds a backslash sequence that double quotes do not know: "
        "double the backslash, or use single quotes, where a backslash is only itself",
        at_start=True,
    ),
    _Explanation(
        "block scalar",
        "",
        '{text}: after "|" or ">" the text begins on the next line; a value that begins with one of them needs quotes',
        at_start=True,
    ),
    _Explanation("", "node content", 'a value is missing here: write "" for empty text'),
    _Explanation("", "found ','", 'a value is missing here: write "" for empty text'),
    _Explanation("flow sequence", "", 'the list opened at {opened} is not closed: expected "," or "]" here'),
    _Explanation("flow mapping", "", 'the mapping opened at {opened} is not closed: expected "," or "}}" here'),
    _Explanation(
        "",
        "cannot start any token",
        'a value cannot begin with "{char}": put it in quotes ("{char}..." or \'{char}...\')',
    ),
    _Explanation(
        "",
        "mapping values are not allowed",
        'a ":" cannot stand here: put text that contains ": " in quotes, a mapping within a line in {{}}, or check the '
        "indentation",
    ),
    _Explanation(
        "simple key",
        "",
        '{text} stands where a key is expected, and no ":" follows it: add one, or check the indentation',
        at_start=True,
    ),
    _Explanation("", "sequence entries are not allowed", 'a list cannot begin here: put "- " on a line of its own'),
    _Explanation("", "mapping keys are not allowed", 'a "?" cannot stand here: put it in quotes'),
    _Explanation(
        "block mapping",
        "",
        "{text} does not fit the lines above: check the indentation, and that quotes enclose the whole value",
    ),
    _Explanation("block collection", "", '{text} stands where another "- " is expected: check the indentation'),
    _Explanation("", "<document start>", "{text} comes after the end of the document: check the indentation"),
)


def explain_syntax_error(error: yaml.YAMLError, text: str) -> tuple[int, str]:
    """Offset and problem."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return 0, f"this is not YAML: {error}"
    here = error.problem_mark.index
    start = error.context_mark.index if error.context_mark else here
    if text[here : here + 1] == "\t" or "tab character" in (error.problem or ""):
        return text.index("\t", here), TAB_PROBLEM
    glued = _glued_above(text, here) if "mapping values" in (error.problem or "") else None
    if glued is not None:
        return glued
    if "block collection" in (error.context or "") and (item := _GLUED_ITEM.match(text, here)):
        return here, f"{text_at(text, here)}: a blank belongs after the dash: write {quote(f'- {item[1]}')}"
    at_the_end = "node content" in (error.problem or "") and not text[here:].strip()
    if at_the_end and (unclosed := _unclosed(text)) is not None:
        return here, unclosed
    for known in _EXPLANATIONS:
        if known.context in (error.context or "") and known.problem in (error.problem or ""):
            offset = start if known.at_start else here
            return offset, _fill(known.sentence, text, offset, start)
    return here, f"this is not YAML: {error.problem}"


def _unclosed(text: str) -> str | None:
    """What the innermost bracket lacks, of a text that ends where a value could stand; None: that cannot be told."""
    opened: list[yaml.Token] = []
    with suppress(yaml.YAMLError):  # PyYAML's own scanner refuses tabs that libyaml lets pass
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            if isinstance(token, yaml.FlowSequenceStartToken | yaml.FlowMappingStartToken):
                opened.append(token)
            elif isinstance(token, yaml.FlowSequenceEndToken | yaml.FlowMappingEndToken) and opened:
                opened.pop()
        return _lacks_its_end(opened[-1]) if opened else None
    return None


def _lacks_its_end(opening: yaml.Token) -> str:
    what, end = ("list", "]") if isinstance(opening, yaml.FlowSequenceStartToken) else ("mapping", "}")
    mark = opening.start_mark
    return f'the {what} opened at line {mark.line + 1}, column {mark.column + 1} is not closed: "{end}" is missing'


_GLUED_ITEM = re.compile(r"-([A-Za-z_][^\n]*)")

_GLUED_KEY = re.compile(r"[ ]*(?:- +)*([A-Za-z_]+):(\S[^\n]*)")


def _glued_above(text: str, offset: int) -> tuple[int, str] | None:
    """The key without a blank after its colon on the line above, to which YAML adds the line of the offset."""
    line_start = text.rfind("\n", 0, offset)
    above = text.rfind("\n", 0, max(line_start, 0)) + 1
    key = _GLUED_KEY.match(text, above, max(line_start, 0))
    if key is None:
        return None
    return key.start(1), f"a blank belongs after the colon: write {quote(f'{key[1]}: {key[2]}')}"


TAB_PROBLEM = 'tab character: indent with spaces, and write "\\t" in double quotes where a tab is meant'


def text_at(text: str, offset: int) -> str:
    """What stands there, up to the end of its line, quoted for a message."""
    line, _, _ = text[offset : offset + 100].partition("\n")
    return quote(line.rstrip()) if line.strip() else "the end of the line"


def word_at(text: str, offset: int) -> str:
    """The word that stands there, quoted for a message."""
    return quote(re.split(r"[\s,\]}]", text[offset : offset + 100], maxsplit=1)[0])


def _fill(sentence: str, text: str, offset: int, start: int) -> str:
    opened = place_of(start, find_line_starts(text))
    return sentence.format(
        text=text_at(text, offset),
        word=word_at(text, offset),
        char=text[offset : offset + 1],
        opened=f"line {opened.line}, column {opened.column}",
    )
