"""Which variables may be changed, and what is known of their values while a text is followed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ci_agent.policy.shell.program import UnparsableError
from ci_agent.policy.shell.reader import Keyed, Notes, Reader
from ci_agent.policy.shell.static_words import INTEGER, only_part, word_set
from ci_agent.policy.shell.syntax import Parameter, SourceWord
from ci_agent.policy.words import Word, literal_word

_DIRECTING = word_set(
    "CDPATH ENV EXECIGNORE FUNCNEST GLOBIGNORE IFS POSIXLY_CORRECT PROMPT_COMMAND PS0 PS1 PS2 PS3 PS4 SHELLOPTS "
    "TEXTDOMAIN TEXTDOMAINDIR histchars"
)
"""They change how the shell reads, expands or finds commands."""
_EVALUATED = frozenset({"HISTCMD", "OPTIND"})
"""A value for them is evaluated as arithmetic."""
INTEGERS = frozenset({"BASHPID", "EPOCHSECONDS", "EUID", "LINENO", "PPID", "RANDOM", "SECONDS", "SRANDOM", "UID"})
"""The shell gives them integers."""
_CHANGING = INTEGERS | word_set(
    "COLUMNS DIRSTACK EPOCHREALTIME FUNCNAME GROUPS LINES OLDPWD OPTARG OPTIND PIPESTATUS PWD REPLY _"
)
"""The shell changes them itself."""
POSITIONAL = "@"
"""The positional parameters are an array of this name."""
_LOCALE = re.compile(r"LANG|LC_[A-Z]+|LANGUAGE")
_SAFE_LOCALE = re.compile(r"(?:C|POSIX|[A-Za-z_]+\.UTF-?8|C\.utf8|[a-z]{2}_[A-Z]{2}\.utf8)?")


def directs_shell(name: str) -> bool:
    """Whether the variable decides how a shell reads text, or what it does besides."""
    return name in _DIRECTING or name.startswith("BASH")


def may_change_encoding(name: str, value: str | None) -> bool:
    """Whether the value, None for an unknown one, makes the same bytes other characters."""
    return _LOCALE.fullmatch(name) is not None and not _SAFE_LOCALE.fullmatch("?" if value is None else value)


def check_assignable(reader: Reader, name: str) -> None:
    """Refuse a change to a variable that decides how the rest of the text is understood."""
    if directs_shell(name) or name in INTEGERS or name in _EVALUATED:
        reader.fail(f"a new value for {name}, which changes what the shell does")


def check_locale(reader: Reader, name: str, value: str | None) -> None:
    """Refuse another character encoding for the shell itself: the same bytes may then be other characters."""
    if name.startswith("L") and may_change_encoding(name, value):
        reader.fail(f"a new value for {name} that may change the character encoding")


_COUNT = re.compile(r"[01]?")
"""What stands for a number, or for nothing."""
_MAX_CHOICES = 32
"""How many values are remembered one by one."""
_ONE_DECLARATION = 2
"""What `assigned` says of a variable that a declaration makes and nothing else changes."""
_MAX_CONTENTS = 8
"""How many possible contents of an array are remembered."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a value: one of `choices`, or any integer."""

    choices: tuple[Word, ...]
    folder: str | None = None
    """The folder in which the globs among the choices stand for names."""
    integer: bool = False
    stand_ins: tuple[str, ...] = ()
    """Without choices: what stands for the value, as in a word."""
    printed_by: int | None = None
    """Without choices: the command whose output it is (`whole`), or is a line or a word of."""
    whole: bool = False
    line: bool = False
    array: bool = False
    """An array: its elements are one of `contents`, or the lines that the command prints."""
    contents: tuple[tuple[Word, ...], ...] = ()
    associative: bool = False
    """An associative array."""
    fresh: bool = False
    """That was made empty: what `declare -A m` makes has the value that the environment may have for m, under `0`."""


class Later(NamedTuple):
    """What held outside of something that runs at an unknown time."""

    known: dict[str, Known]
    later: bool
    in_function: bool


@dataclass(slots=True)
class Variables:
    """The values known at the place that is being followed. What a scope defines is forgotten when it ends."""

    notes: Notes
    environment: Mapping[str, str]
    _known: dict[str, Known] = field(default_factory=dict)
    _defined: list[tuple[str, Known | None]] = field(default_factory=list)
    """The names that got a value, with what was known before."""
    later: bool = False
    """What is followed runs at an unknown time."""
    in_function: bool = False
    """What is followed is the body of a function, whose own variables nothing else has."""

    def mark(self) -> int:
        return len(self._defined)

    def forget(self, mark: int) -> None:
        """Forget what was defined since `mark`."""
        while len(self._defined) > mark:
            name, before = self._defined.pop()
            if before is None:
                del self._known[name]
            elif before.array and name in self.notes.appended:
                self._known[name] = _either(before, self._known[name])
            else:
                self._known[name] = before

    def enter_later(self, *, function: bool) -> "Later":
        """Begin with what runs at an unknown time; inside of a function it may run when the function's variables are
        gone."""
        before = Later(self._known, self.later, self.in_function)
        if self.in_function:
            self._known = {}
        self.later, self.in_function = True, function
        return before

    def leave_later(self, before: "Later") -> None:
        self._known, self.later, self.in_function = before

    def define(self, name: str, value: Known) -> None:
        """Note a value. A variable that several places change keeps only the knowledge that it is an integer."""
        if name in _CHANGING or self.notes.evaluates:
            return
        if self.notes.assigned.get(name) != 1:
            if name in self.notes.not_integers:
                return
            value = Known((), integer=True)
        if name not in self._known:
            self._set(name, value)

    def fill(self, name: str, elements: tuple[Word, ...], folder: str | None) -> None:
        """Note all elements of an array."""
        growing = name in self.notes.appended
        if name in _CHANGING:
            return
        if name == POSITIONAL and (self.later or name in self.notes.assigned_later):
            return
        if growing and self.notes.grows_here_alone(name) and not (self.later or self.notes.evaluates):
            self._set(name, Known((), folder, array=True, contents=(elements,)))
        elif not growing:
            self.define(name, Known((), folder, array=True, contents=(elements,)))

    def pass_arguments(self, arguments: tuple[Word, ...], folder: str | None) -> None:
        """Note the positional parameters of a function that is called."""
        changing = POSITIONAL in self.notes.assigned_later
        known = not (changing or any(word.pipe for word in arguments))
        self._set(POSITIONAL, Known((), folder, array=True, contents=(arguments,) if known else ()))

    def grow(self, name: str, elements: tuple[Word, ...] | None, folder: str | None) -> None:
        """Note what is added to an array; None: nobody knows."""
        known = self._known.get(name)
        if known is None or not known.array:
            return
        if elements is None or (known.folder != folder and any(map(_is_matched, elements))):
            contents: tuple[tuple[Word, ...], ...] = ()
        else:
            contents = tuple((*before, *elements) for before in known.contents)
        self._set(name, replace(known, contents=contents))

    def bind(self, name: str, value: Known) -> None:
        """Note the value of the variable of a loop whose body gives it no other."""
        if name not in _CHANGING and name not in self.notes.assigned_later and not self.notes.evaluates:
            self._set(name, value)

    def _set(self, name: str, value: Known) -> None:
        if len(value.choices) > _MAX_CHOICES:
            if not all(map(_is_integer, value.choices)):
                return
            value = Known((), integer=True)
        if any(len(each) > _MAX_CHOICES for each in value.contents):
            value = replace(value, contents=())
        self._defined.append((name, self._known.get(name)))
        self._known[name] = value

    def lookup(self, name: str) -> Known | None:
        """What is known of the value of `name`; None: nothing."""
        if (known := self._known.get(name)) is not None:
            return None if known.array else known
        if name.isdecimal():
            return self._argument(int(name))
        if name in INTEGERS or name == "OPTIND":
            return None if self.notes.posix else Known((), integer=True)
        if name in self.notes.assigned or self.notes.evaluates:
            return None
        if name in _CHANGING and (name != "PWD" or self.notes.all_moves):
            return None
        value = self.environment.get(name)
        return None if value is None else Known((literal_word(value),))

    def _argument(self, number: int) -> Known | None:
        """What is known of a positional parameter."""
        known = self.elements(POSITIONAL)
        if known is None or len(known.contents) != 1 or number == 0:
            return None
        arguments = known.contents[0]
        if any(word.splits or word.kind == "glob" for word in arguments[:number]):
            return None
        return held(arguments[number - 1], known.folder) if number <= len(arguments) else Known((literal_word(""),))

    def elements(self, name: str) -> Known | None:
        """What is known of the array; None: nothing."""
        known = self._known.get(name)
        if known is None or not known.array:
            return None
        if self.later and (name in self.notes.appended or name == POSITIONAL):
            return None
        return known if known.contents or known.printed_by is not None else None

    def make_associative(self, name: str, *, fresh: bool) -> None:
        """Note `declare -A`. An array that the shell has already, such as DIRSTACK, would stay what it is."""
        certain = self.notes.assigned.get(name) == _ONE_DECLARATION and name not in _CHANGING
        if certain and not self.notes.evaluates:
            self._set(name, Known((), array=True, associative=True, fresh=fresh))

    def check_key(self, name: str, key: SourceWord) -> None:
        """Refuse a key unless the array is certainly associative and the key not empty."""
        known = self._known.get(name)
        if known is None or not known.associative:
            raise UnparsableError(f"a key of {name}, which is not certainly an associative array here", key.span)
        if not self._keys(key):
            raise UnparsableError("a key that may be empty, at which bash would drop the rest of the line", key.span)

    def value_at(self, name: str, key: SourceWord) -> Known | None:
        """What is known of an element of an associative array."""
        known, keyed = self._known.get(name), self.notes.keyed.get(name, Keyed())
        if known is None or None in keyed.values or not (known.fresh or "0" not in self._keys(key)):
            return None
        return Known(tuple(literal_word(text) for text in (*keyed.values, "") if text is not None))

    def keys(self, name: str) -> tuple[str, ...]:
        """All keys that the associative array may have; empty when they are not known."""
        known, keyed = self._known.get(name), self.notes.keyed.get(name, Keyed())
        if known is None or not known.associative or None in keyed.keys:
            return ()
        return tuple(key for key in (*keyed.keys, *(() if known.fresh else ("0",))) if key is not None)

    def _keys(self, key: SourceWord) -> tuple[str, ...]:
        """The texts that the key may be; empty when they are not known, or one is empty."""
        if key.plain is not None:
            return (key.plain,)
        part = only_part(key)
        known = self.lookup(part.name) if isinstance(part, Parameter) else None
        texts = [word.literal or "" for word in known.choices] if known is not None else []
        return tuple(texts) if all(texts) else ()

    def literal(self, name: str) -> str | None:
        """The one value that the variable has here; None: not known."""
        known = self.lookup(name)
        return known.choices[0].literal if known is not None and len(known.choices) == 1 else None

    def is_integer(self, name: str) -> bool:
        """Whether the variable certainly holds the text of an integer."""
        return name not in self.notes.may_be_empty and self.is_integer_or_empty(name)

    def is_number_or_empty(self, name: str) -> bool:
        """Whether it holds an integer or nothing, such as what a command printed that counts."""
        known = self.lookup(name)
        if known is None or not (known.stand_ins or known.choices):
            return False
        texts = all(word.literal == "" or _is_integer(word) for word in known.choices)
        return texts and all(map(_COUNT.fullmatch, known.stand_ins))

    def is_integer_or_empty(self, name: str) -> bool:
        known = self.lookup(name)
        if known is None:
            return False
        return known.integer or (bool(known.choices) and all(map(_is_integer, known.choices)))


def held(word: Word, folder: str | None) -> Known | None:
    """What a variable holds that gets the value of one word; None: nobody knows."""
    if word.kind == "literal":
        return Known((word,))
    if word.kind == "choice":
        return Known(word.choices, folder)
    if word.stand_ins:
        return Known((), stand_ins=word.stand_ins)
    if word.printed_by is not None:
        return Known((), printed_by=word.printed_by, whole=word.whole, line=word.line)
    return None


def _either(before: Known, after: Known) -> Known:
    """An array that was added to, or not."""
    contents = tuple(dict.fromkeys((*before.contents, *after.contents)))
    if not (before.contents and after.contents) or len(contents) > _MAX_CONTENTS:
        contents = ()
    return replace(before, contents=contents)


def _is_matched(word: Word) -> bool:
    return any(each.kind == "glob" for each in word.choices or (word,))


def _is_integer(word: Word) -> bool:
    return word.literal is not None and INTEGER.fullmatch(word.literal) is not None
