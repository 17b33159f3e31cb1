"""YAML text to plain data, by parse events: nothing is built that a limit would have refused."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import yaml
from pydantic import BaseModel

from ci_agent.errors import InvalidFileError
from ci_agent.json_types import Json
from ci_agent.strict_yaml.document import ListMarks, MappingMarks, Marks, YamlDocument, raise_problems
from ci_agent.strict_yaml.model_paths import scalars_at
from ci_agent.strict_yaml.scalars import AmbiguousScalarError, parse_plain
from ci_agent.strict_yaml.syntax import TAB_PROBLEM, explain_syntax_error, text_at, word_at
from ci_agent.strict_yaml.text import check_text, find_line_starts, place_of, quote
from ci_agent.text_files import read_text_file

MAX_DEPTH = 32
MAX_VALUES = 300_000
"""Values of one file. Four mebibytes hold over a million empty lists, which take seconds and hundreds of megabytes."""
MAX_COLLECTED = 100
"""After so many problems reading stops: whoever reads the message mends the first ones and tries again."""


_COLON_AND_PUNCTUATION = frozenset((":,", ":?", ":[", ":]", ":{", ":}"))

_TEXT_BLOCK_HEADER = re.compile(r"[|>][-+1-9]{0,2}(?: +#.*| *)")
_LEADING_TAB = re.compile(r"\n(?: *\n)*+ *+\t")

_Found: TypeAlias = str | AmbiguousScalarError
"""A problem; of a value that may be this or that it depends on its place what to say."""

_Event: TypeAlias = Any
"""An event of PyYAML. Its stubs call every mark optional; those of parsed events are always there."""


class EventParser(Protocol):
    """PyYAML's parsers, libyaml's or its own."""

    def __init__(self, stream: str) -> None: ...
    def get_event(self) -> _Event: ...


def read_yaml(path: str | Path, what: str, *, model: type[BaseModel] | None = None) -> YamlDocument:
    """The document in a file; `what` names its role in messages ("policy", "script").

    Raises ConfigurationError for what is no readable file, InvalidFileError as `load_yaml` does.
    """
    return load_yaml(read_text_file(path, what), str(path), model=model)


def load_yaml(
    text: str, file: str, *, model: type[BaseModel] | None = None, parser: type[EventParser] | None = None
) -> YamlDocument:
    """Read one document; raise InvalidFileError that names every problem found, each on a line of its own.

    `model`: what the file will be read into, so that messages can say what belongs in a place.
    `parser`: libyaml's where PyYAML has it, otherwise PyYAML's own, which answers the same, slower.
    An empty file is a document whose value is None.
    """
    text = check_text(text, file)
    reader = _Reader(text, file, parser or _default_parser())
    value, marks = reader.read_document()
    line_starts = find_line_starts(text)
    document = YamlDocument(file, value, marks, line_starts)
    told = [
        (place_of(offset, line_starts), _told(problem, offset, document, model)) for offset, problem in reader.problems
    ]
    raise_problems(file, told)
    return document


def _told(problem: _Found, offset: int, document: YamlDocument, model: type[BaseModel] | None) -> str:
    if isinstance(problem, str):
        return problem
    path = document.path_at(offset)
    return problem.where(scalars_at(model, path) if model is not None and path is not None else ())


class _TooManyProblemsError(Exception):
    pass


class _Reader:
    """Holds what the recursive descent shares: the parser, the text, and the problems found so far."""

    def __init__(self, text: str, file: str, parser: type[EventParser]) -> None:
        self.text = text
        self.file = file
        self.next_event = parser(text).get_event
        self.problems: list[tuple[int, _Found]] = []
        self.text_blocks: list[tuple[int, int]] = []
        self.flow_depth = 0
        self.values = 0

    def read_document(self) -> tuple[Json, Marks]:
        value: Json = None
        marks: Marks = 0
        try:
            value, marks = self._document()
        except yaml.YAMLError as error:
            self.problems.append(explain_syntax_error(error, self.text))
        except _TooManyProblemsError:
            pass
        if "\t" in self.text:
            self._check_tabs()
        return value, marks

    def _document(self) -> tuple[Json, Marks]:
        self.next_event()
        start = self.next_event()
        if type(start) is yaml.StreamEndEvent:
            return None, 0
        if start.version or start.tags:
            self._report(start, "lines that begin with % are not supported: delete this one")
        value, marks = self._node(self.next_event(), 0)
        self.next_event()
        after = self.next_event()
        if type(after) is yaml.DocumentStartEvent:
            self._report(after, "a second document begins here: one file holds one document")
        return value, marks

    def _check_tabs(self) -> None:
        """Report the first tab that is not content of a text block (`|` or `>`)."""
        offset = self.text.find("\t")
        for start, end in self.text_blocks:
            if offset < start:
                break
            if offset < end:
                offset = self.text.find("\t", end)
        if offset >= 0:
            self.problems.append((offset, TAB_PROBLEM))

    def _node(self, event: _Event, depth: int) -> tuple[Json, Marks]:
        self.values += 1
        if self.values > MAX_VALUES:
            raise self._refusal(event, f"the file holds more than {MAX_VALUES:,} values")
        if type(event) is yaml.ScalarEvent:
            return self._scalar(event)
        if type(event) is yaml.SequenceStartEvent:
            return self._sequence(event, depth + 1)
        if type(event) is yaml.MappingStartEvent:
            return self._mapping(event, depth + 1)
        self._refuse_prefix(event, "*", "an alias")
        return None, event.start_mark.index

    def _scalar(self, event: _Event) -> tuple[Json, Marks]:
        self._refuse_properties(event)
        start = event.start_mark.index
        if not event.style:
            self._check_flow_scalar(event)
            return self._plain(event), start
        if event.style in "|>":
            self._text_block(start, event)
        elif event.style == '"' and not event.value.isascii() and any(map(_is_surrogate, event.value)):
            self._report(event, f"{self._shown(event)} holds half of a surrogate pair, which is no character")
        return event.value, start

    def _plain(self, event: _Event) -> Json:
        try:
            return parse_plain(event.value)
        except AmbiguousScalarError as error:
            self._report(event, error)
            return event.value
        except ValueError as error:
            self._report(event, str(error))
            return event.value

    def _text_block(self, start: int, event: _Event) -> None:
        header_end = self.text.index("\n", start)
        if not _TEXT_BLOCK_HEADER.fullmatch(self.text, start, header_end):
            self._report(event, f"{self._shown(event)}: the text begins on the next line, and a comment after a space")
        # A tab that begins the first line is content to one parser and bad indentation to the other.
        content = header_end if not _LEADING_TAB.match(self.text, header_end) else event.end_mark.index
        self.text_blocks.append((content, event.end_mark.index))

    def _check_flow_scalar(self, event: _Event) -> None:
        """Inside brackets the parsers disagree on a bare `?` and on a `:` before punctuation."""
        if not self.flow_depth:
            return
        end = event.end_mark.index
        if "?" in event.value or self.text[end : end + 2] in _COLON_AND_PUNCTUATION:
            self._report(event, f"{self._shown(event)}: inside [] and {{}} put text with ? or : in quotes")

    def _sequence(self, event: _Event, depth: int) -> tuple[Json, Marks]:
        self._enter(event, depth)
        items: list[Json] = []
        marks: list[Marks] = []
        while type(child := self.next_event()) is not yaml.SequenceEndEvent:
            value, mark = self._node(child, depth)
            items.append(value)
            marks.append(mark)
        self.flow_depth -= bool(event.flow_style)
        return items, ListMarks(event.start_mark.index, marks)

    def _mapping(self, event: _Event, depth: int) -> tuple[Json, Marks]:
        self._enter(event, depth)
        result: dict[str, Json] = {}
        marks = MappingMarks(event.start_mark.index, {}, {})
        while type(child := self.next_event()) is not yaml.MappingEndEvent:
            key = self._key(child, marks, depth)
            value, mark = self._node(self.next_event(), depth)
            if key is not None and key not in result:
                result[key], marks.values[key] = value, mark
                marks.keys[key] = child.start_mark.index
        self.flow_depth -= bool(event.flow_style)
        return result, marks

    def _key(self, event: _Event, marks: MappingMarks, depth: int) -> str | None:
        key = self._key_text(event, depth)
        if key is not None and key in marks.keys:
            line = self.text.count("\n", 0, marks.keys[key]) + 1
            self._report(event, f"the key {quote(key)} appears twice: the first is on line {line}")
        return key

    def _key_text(self, event: _Event, depth: int) -> str | None:
        """None when it is none, which is then on the list of problems."""
        problems = len(self.problems)
        if type(event) is yaml.ScalarEvent and not event.style:
            key = self._plain_key(event)
        else:
            key, _ = self._node(event, depth)
        if isinstance(key, str) or len(self.problems) > problems:
            return key if isinstance(key, str) else None
        self._report(event, _key_problem(key, self._shown(event)))
        return None

    def _plain_key(self, event: _Event) -> Json:
        self._refuse_properties(event)
        self._check_flow_scalar(event)
        try:
            return _parse_key(event.value)
        except AmbiguousScalarError as error:
            self._report(event, error.as_text)
            return event.value
        except ValueError as error:
            self._report(event, str(error))
            return event.value

    def _enter(self, event: _Event, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self._refusal(event, f"nested more than {MAX_DEPTH} levels deep")
        self._refuse_properties(event)
        self.flow_depth += bool(event.flow_style)

    def _refuse_properties(self, event: _Event) -> None:
        if event.anchor is not None:
            self._refuse_prefix(event, "&", "an anchor")
        elif event.tag is not None:
            self._refuse_prefix(event, "!", "a tag")

    def _refuse_prefix(self, event: _Event, prefix: str, meaning: str) -> None:
        word = word_at(self.text, event.start_mark.index)
        self._report(event, f'{word} begins with "{prefix}", which YAML takes for {meaning}: put it in quotes')

    def _refusal(self, event: _Event, problem: str) -> InvalidFileError:
        """To raise where reading on would cost too much."""
        return InvalidFileError(self.file, *place_of(event.start_mark.index, find_line_starts(self.text)), problem)

    def _report(self, event: _Event, problem: _Found) -> None:
        self.problems.append((event.start_mark.index, problem))
        if len(self.problems) >= MAX_COLLECTED:
            raise _TooManyProblemsError

    def _shown(self, event: _Event) -> str:
        return text_at(self.text, event.start_mark.index)


_parse_key = lru_cache(maxsize=256)(parse_plain)
"""The keys of a file are few, and each is there many times."""


def _is_surrogate(char: str) -> bool:
    return "\ud800" <= char <= "\udfff"


def _key_problem(key: Json, shown: str) -> str:
    if isinstance(key, dict | list):
        kind = "mapping" if isinstance(key, dict) else "list"
        return f"a key must be text, and {shown} is a {kind}: put it in quotes"
    if key is None:
        return "a key is missing before the colon"
    return f"a key must be text: write {quote(str(key).lower())} in quotes"


def _default_parser() -> type[EventParser]:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)
