"""Which variables may be changed, and what is known of their values while a text is followed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_agent.policy.shell.reader import Notes, Reader
from ci_agent.policy.shell.static_words import INTEGER, word_set
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
    """An array: its elements are the choices, one word each, or the lines that the command prints."""


@dataclass(slots=True)
class Variables:
    """The values known at the place that is being followed. What a scope defines is forgotten when it ends."""

    notes: Notes
    environment: Mapping[str, str]
    _known: dict[str, Known] = field(default_factory=dict)
    _defined: list[tuple[str, Known | None]] = field(default_factory=list)
    """The names that got a value, with what was known before."""

    def mark(self) -> int:
        return len(self._defined)

    def forget(self, mark: int) -> None:
        """Forget what was defined since `mark`."""
        while len(self._defined) > mark:
            name, before = self._defined.pop()
            if before is None:
                del self._known[name]
            else:
                self._known[name] = before

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

    def bind(self, name: str, value: Known) -> None:
        """Note the value of the variable of a loop whose body gives it no other."""
        if name not in _CHANGING and name not in self.notes.assigned_later and not self.notes.evaluates:
            self._set(name, value)

    def _set(self, name: str, value: Known) -> None:
        if len(value.choices) > _MAX_CHOICES:
            if value.array or not all(map(_is_integer, value.choices)):
                return
            value = Known((), integer=True)
        self._defined.append((name, self._known.get(name)))
        self._known[name] = value

    def lookup(self, name: str) -> Known | None:
        """What is known of the value of `name`; None: nothing."""
        if (known := self._known.get(name)) is not None:
            return None if known.array else known
        if name in INTEGERS:
            return None if self.notes.posix else Known((), integer=True)
        if name in self.notes.assigned or self.notes.evaluates:
            return None
        if name in _CHANGING and (name != "PWD" or self.notes.all_moves):
            return None
        value = self.environment.get(name)
        return None if value is None else Known((literal_word(value),))

    def elements(self, name: str) -> Known | None:
        """What is known of the array; None: nothing."""
        known = self._known.get(name)
        return known if known is not None and known.array else None

    def literal(self, name: str) -> str | None:
        """The one value that the variable has here; None: not known."""
        known = self.lookup(name)
        return known.choices[0].literal if known is not None and len(known.choices) == 1 else None

    def is_integer(self, name: str) -> bool:
        """Whether the variable certainly holds the text of an integer."""
        return name not in self.notes.may_be_empty and self.is_integer_or_empty(name)

    def is_count_or_empty(self, name: str) -> bool:
        """Whether it holds what a command printed that prints a number or nothing."""
        known = self.lookup(name)
        return known is not None and bool(known.stand_ins) and all(map(_COUNT.fullmatch, known.stand_ins))

    def is_integer_or_empty(self, name: str) -> bool:
        known = self.lookup(name)
        if known is None:
            return False
        return known.integer or (bool(known.choices) and all(map(_is_integer, known.choices)))


def _is_integer(word: Word) -> bool:
    return word.literal is not None and INTEGER.fullmatch(word.literal) is not None
