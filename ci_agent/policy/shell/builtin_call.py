"""The arguments of one of the shell's own commands, while it is read."""

import re
from typing import NamedTuple

from ci_agent.policy.shell.reader import Reader
from ci_agent.policy.shell.static_words import is_single, static_text
from ci_agent.policy.shell.syntax import SourceAssignment, SourceWord
from ci_agent.policy.shell.variables import check_assignable

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class BuiltinCall(NamedTuple):
    """A call of one of the shell's own commands, as it stands in the source."""

    reader: Reader
    name: str
    arguments: list[SourceWord]
    declared: dict[int, SourceAssignment]
    """The arguments of `export` and its like that have the form of an assignment, by their places."""
    assigned: list[str]
    """Receives the variables that the call gives values which nobody knows."""

    def assign(self, word: SourceWord | None, *, certain: bool = False) -> str:
        """Note that the command gives a value to the variable that `word` names; only a plain name is understood."""
        name = static_text(word) if word is not None else None
        if word is None or name is None or not NAME.fullmatch(name):
            span = word.span if word is not None else None
            self.reader.fail(f"`{self.name}` on something that is not the name of a variable", *(span or ()))
        check_assignable(self.reader, name)
        self.reader.notes.assign(name, certain=certain)
        self.assigned.append(name)
        return name

    def split(self, *, flags: str, with_value: str) -> tuple[dict[str, list[SourceWord]], list[SourceWord]]:
        """The options that take a value, each with its values, and the operands."""
        options: dict[str, list[SourceWord]] = {}
        words = iter(self.arguments)
        for word in words:
            text = static_text(word)
            if text is None or not text.startswith("-") or text == "-":
                return options, [word, *words]
            if text == "--":
                return options, list(words)
            for position, letter in enumerate(text[1:], 1):
                if letter in with_value:
                    value = (
                        next(words, None)
                        if text[position + 1 :] == ""
                        else SourceWord(text[position + 1 :], (), word.span)
                    )
                    if value is None or not is_single(value):
                        self.reader.fail(f"`{self.name} -{letter}` with a value that is not one word", *word.span)
                    options.setdefault(letter, []).append(value)
                    break
                if letter not in flags:
                    self.reader.fail(f"`{self.name} -{letter}` is not understood", *word.span)
        return options, []
