"""The words of a program sorted into options, with their values, and operands."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ci_agent.policy.programs.option_names import unlisted
from ci_agent.policy.programs.profile import Option, Profile
from ci_agent.policy.words import Word


class Found(NamedTuple):
    """An option where it stands. `value` is None when it has none."""

    option: Option
    spelled: str
    """As it is written, without its value: `--outp`, `-o`."""
    at: int
    """The index of the word that holds it."""
    value: Word | None = None
    value_index: int | None = None
    """Where the value stands when it is a word of its own."""
    value_offset: int = 0
    """Where the value begins in its word."""


class Operand(NamedTuple):
    word: Word
    at: int


@dataclass(slots=True)
class Parsed:
    """The words of one program, or of one subcommand, sorted."""

    profile: Profile
    start: int = 0
    """The index of the word behind the program's name, or the subcommand's."""
    called: Word | None = None
    """That name as it is written."""
    options: list[Found] = field(default_factory=list, init=False)
    operands: list[Operand] = field(default_factory=list, init=False)
    dash_dash: int | None = None
    """The index of the `--` that ends the options."""
    may_be_options: list[int] = field(default_factory=list, init=False)
    disguised: list[tuple[int, str]] = field(default_factory=list, init=False)
    """Values that look like options of consequence: where they stand, and what they would do."""
    problem: str | None = None

    def has(self, *names: str) -> bool:
        """Whether one of these options, as the profile spells them, is there."""
        return bool(names and self.options) and any(found.option.name in names for found in self.options)

    def surely(self, *names: str) -> bool:
        """As `has`, and nothing takes it back: neither a value (`--check=false`) nor a later `--no-check`."""
        if not (names and self.options):
            return False
        given = [found for found in self.options if found.option.name in names]
        plain = all(found.value is None or found.option.arity != "bare" for found in given)
        plain = plain and not any(map(self._may_be_value, given))
        return bool(given) and plain and not self.has(*(f"--no-{name[2:]}" for name in names if name[:2] == "--"))

    def _may_be_value(self, option: Found) -> bool:
        """It stands behind an option that nobody has listed, and which may take it (`--new-option --check`)."""
        before = (found for found in self.options if found.at == option.at - 1 and found.value is None)
        return any(unlisted(self.profile, found.option.name) == found.option for found in before)

    @property
    def dry(self) -> bool:
        """Whether an option says that nothing is written."""
        return self.surely(*self.profile.dry)

    def last(self, *names: str) -> Word | None:
        """The value of the last of these options, which is the one that counts."""
        return next((value for _, value in reversed(list(self.values(*names)))), None)

    def values(self, *names: str) -> Iterator[tuple[int, Word]]:
        """The values of these options, each with the index of the option."""
        for found in self.options:
            if found.option.name in names and found.value is not None:
                yield found.at, found.value
