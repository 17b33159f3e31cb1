"""A word of a command after the shell has removed the quotes: known, known in part, or unknown."""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

WordKind: TypeAlias = Literal["literal", "glob", "choice", "unknown"]


class Sent(NamedTuple):
    """A folder is sent to a builder, but for what its lists leave out (`.dockerignore`)."""

    files: tuple[str, ...]
    """Build files, relative to the folder or absolute: a list of its own may lie beside each."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of the files beneath a path are meant; the path itself always is."""

    endings: tuple[str, ...] = ()
    """Those whose names end in one of these (`.py`); empty: all."""
    without: tuple[str, ...] = ()
    """Names of folders that are passed by, with all beneath them (`.git`); a file of such a name is not."""
    left_out: tuple[str, ...] = ()
    """Names of files that are not among them (`--exclude=.env`)."""
    plain_files: bool = False
    """Neither folders nor links are among them (`find -type f`)."""
    tracked: bool = False
    """What git tracks is among them, even if the disk does not hold it."""
    indexed: bool = False
    """Nothing else is among them than what git's index names."""
    stored: bool = False
    """Git takes them from what it has stored: also those that the disk does not hold, and no link is followed."""
    excluded: tuple[str, ...] = ()
    """Absolute paths, as regular expressions, that are not among those that are indexed."""
    unhidden: bool = False
    """Names that begin with a dot are not among them, unless an ignore file takes them in."""
    sent: Sent | None = None
    """It is sent to a builder, with all that is not left out."""
    listed: bool = False
    """They are printed by `ls`: of a folder, the names in it, without its own."""
    untracked: bool = False
    """Nothing that git's index names is among them."""
    unignored: bool = False
    """What git's ignore files certainly leave out is not among them."""
    gone: bool = False
    """Among them are names of which neither the disk nor git's index tells: of files that are gone."""


EVERYTHING: Final = Selection()

EditKind: TypeAlias = Literal["around", "plain", "prefix", "suffix", "basename", "dirname", "replace", "case"]


class Edit(NamedTuple):
    """What the shell makes of a value before it is a word: the text for each kind is in `edited.py`."""

    kind: EditKind
    before: str = ""
    behind: str = ""
    longest: bool = False
    """`##` and `%%` instead of `#` and `%`; `//`, `^^` and `,,` instead of `/`, `^` and `,`."""


class Word(NamedTuple):
    """What one word of the source becomes when bash runs the command.

    - `literal`: exactly `text`, one word.
    - `glob`: `text` is a pattern (special characters that were quoted are escaped by a backslash); it becomes the
      names that match when the command runs, one word each, or `text` without the backslashes when none does.
    - `choice`: one of `choices`, each a literal or a glob (the variable of a `for` over known words). `splits`: it
      stands unquoted, so that a file name with blanks or special characters becomes something else.
    - `unknown`: nobody knows. `prefix` is the text that it certainly begins with. `splits`: it stands unquoted and
      may become any number of words, none included; otherwise it is exactly one.
    """

    kind: WordKind
    text: str
    """The value for `literal` and `glob`; the source text otherwise, for messages."""
    span: tuple[int, int]
    """Where it stands in the text that was analysed, in characters."""
    choices: tuple["Word", ...] = ()
    prefix: str = ""
    splits: bool = False
    beneath: tuple["Word", ...] = ()
    """For `unknown` words that a program makes (`{}` of `find -exec`, what `xargs` reads): each is the path of a file
    at or beneath one of these; empty: nothing of the kind is known."""
    selection: Selection = EVERYTHING
    """For a word in another one's `beneath`: which of the files there can be meant."""
    stand_ins: tuple[str, ...] = ()
    """For an `unknown` word that is the name of a commit or a number for certain: texts that any program would take for
    an option, a path or anything else just as it takes the value. One of them is empty where it may be no word at all
    (`splits`) or an empty one."""
    edits: tuple[Edit, ...] = ()
    """For a `glob` among the `choices` of another word: what is made of each name, in this order."""
    printed_by: int | None = None
    """For an `unknown` word: the command, by its place in the program, of whose output it is a line or a word, or any
    number of words when it `splits`."""
    some: bool = False
    """For one of any number of words (`splits`): it is one at least."""
    line: bool = False
    """It is a whole line of the output: nothing has cut it at blanks."""
    whole: bool = False
    """It is all that the command printed, in one word."""
    failed: bool = False
    """For a literal among another word's `choices`: it is what is left when a command prints nothing."""
    pipe: bool = False
    """For an `unknown` word: the path of a pipe that the shell makes (`<(...)`), not of a file."""
    contents: tuple[tuple["Word", ...], ...] = ()
    """For an `unknown` word that `splits`: it is one of these lists of words (an array that was added to here or not);
    empty: nobody knows."""

    @property
    def literal(self) -> str | None:
        """The one value that it has; None when there is more than one possibility."""
        return self.text if self.kind == "literal" else None


def literal_word(text: str, span: tuple[int, int] = (0, 0)) -> Word:
    return Word("literal", text, span)
