"""The vocabulary of program profiles: what an option or an operand means to the program that gets it.

They are named tuples, whose classes are made in a tenth of the time that a frozen dataclass takes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

Arity: TypeAlias = Literal["bare", "takes", "takes_two", "may_take"]
"""`bare`: no value. `takes`: the next word, or what is attached. `takes_two`: the next two words, of which the second
has the meaning. `may_take`: only what is attached."""

Meaning: TypeAlias = Literal[
    "data",  # nothing outside the program: a switch, a count, a format, a search pattern
    "anything",  # not known; a file when it looks like a way out of the workspace
    "list",  # a file whose name and attributes are looked at
    "read",
    "write",
    "delete",
    "target",  # a file or folder that the program writes by nature; it takes the place of the last operand
    "at",  # `@FILE` is read, other text is data
    "source",  # a URL, or a file or a whole folder to read
    "package",  # a URL, a repository or a file with a package
    "repository",  # `OWNER/NAME`, `HOST/OWNER/NAME` or a URL
    "names",  # a file with names of files to read
    "named",  # `NAME=FILE`, or a file: it is read
    "version",  # the version of an interpreter is data, anything else may be one to run
    "plugin",  # a name is data, a path loads code
    "run",  # another program
    "code",  # text that is run
    "load",  # a file with code or configuration
    "config",  # a setting that changes what runs or where it goes
    "reach",  # another host than the one that is spelled
    "script",  # shell text
    "url",
    "folder",  # where the program works
    "look",  # a pattern need not name it
    "look_folder",
    "recursive",  # all beneath the operands is meant
    "in_place",  # the operands that are read are written too
    "unlisted",  # the profile does not have it
]

HAZARDS: Mapping[Meaning, str] = {
    "write": "writes a file",
    "delete": "deletes files",
    "run": "runs another program",
    "code": "runs the code that it is given",
    "load": "loads code or configuration",
    "names": "takes names of files from a file",
    "version": "runs another program",
    "plugin": "loads code or configuration",
    "config": "changes what runs or where it goes",
    "reach": "reaches another host",
    "in_place": "changes its files in place",
    "unlisted": "is not known to the profile of this program",
}
"""Meanings that a wildcard never covers, each with what it does."""

Role: TypeAlias = Literal[
    "data",
    "anything",
    "list",
    "read",
    "write",
    "delete",
    "move",  # read, then deleted
    "rewrite",  # read and written
    "out",  # written, by a program that is not by nature a writer
    "load",  # a file that is run inside the shell
    "config",  # a setting: a hazard
    "code",
    "program",  # a script that the program runs by nature: read, and what follows is its own affair
    "script",  # shell text
    "pattern",  # data, unless an option stands in its place
    "url",
    "source",
    "package",  # a name, a URL, a repository or a file; `NAME @ SOURCE` too
    "node_package",  # the same, where `OWNER/NAME` is a repository
    "go_package",  # `HOST/PATH@VERSION`, or what is in the module
    "command",  # with all that follows: a command that is started
    "revision",  # of git: `REV`, `REV:PATH`, or a path when no `--` follows
]

Prints: TypeAlias = Literal["patch", "patch_if_asked", "hunks_if_asked", "lines", "objects", "all", "ids"]
"""What git prints of tracked files that no word names: changes, changes with an option that asks, lines, objects;
or what gives an object a name by which it may be printed later."""

Launch: TypeAlias = Literal["transparent", "launcher"]


class Syntax(NamedTuple):
    """How a program tells options from operands."""

    options: bool = True
    permutes: bool = True
    """Options may follow operands."""
    clusters: bool = True
    """`-ab` is `-a -b`; otherwise `-ab` is one option, and `--ab` the same one."""
    abbreviations: bool = True
    """A long option may be cut short."""
    negations: bool = False
    """`--no-x` undoes the listed `--x`."""


SYNTAXES: Mapping[str, Syntax] = {
    "gnu": Syntax(),
    "gnu_first": Syntax(permutes=False),
    "posix": Syntax(permutes=False, abbreviations=False),
    "modern": Syntax(abbreviations=False),
    "modern_first": Syntax(permutes=False, abbreviations=False),
    "git": Syntax(negations=True),
    "words": Syntax(clusters=False, abbreviations=False),
    "words_first": Syntax(clusters=False, abbreviations=False, permutes=False),
    "none": Syntax(options=False),
}


class Option(NamedTuple):
    name: str
    """With its dashes. A `*` at the end stands for anything (`-W*`)."""
    arity: Arity
    meaning: Meaning
    why: str | None = None
    """What it does when that makes it a hazard; None: it is harmless."""


class Operands(NamedTuple):
    """What the operands are: some at the start, any number in the middle, some at the end."""

    leading: tuple[Role, ...] = ()
    repeated: Role | None = None
    trailing: tuple[Role, ...] = ()


class Profile(NamedTuple):
    name: str
    """With the subcommand: `git stash list`."""
    syntax: Syntax
    operands: Operands
    options: Mapping[str, Option]
    long_names: tuple[str, ...] = ()
    """The options that begin with two dashes, in alphabetical order."""
    prefixes: tuple[Option, ...] = ()
    """The options whose names end in `*`, the longest first."""
    instead: frozenset[str] = frozenset()
    """Options that stand in place of the first operand (`grep -e`)."""
    alone: str | None = None
    """The operand that is meant when there is none."""
    alone_recursive: str | None = None
    """The same, when an option says that all beneath is meant."""
    recurses: bool = False
    """All beneath the operands is meant."""
    only: tuple[str, ...] = ()
    """Endings of the names of the files beneath its operands that it takes (`.py`); empty: all."""
    only_unless: frozenset[str] = frozenset()
    """Options that make it take others too."""
    picks: frozenset[str] = frozenset()
    """Options whose values are globs: of the files beneath, those are taken whose names match one."""
    passes_by: frozenset[str] = frozenset()
    """Options whose values are names of folders that are not entered."""
    leaves_out: frozenset[str] = frozenset()
    """Options whose values are names of files beneath that are not taken."""
    extensions: frozenset[str] = frozenset()
    """Options whose values are lists of endings, which stand in place of `only`."""
    lists: frozenset[str] = frozenset()
    """Options with which it looks at names alone (`rg --files`)."""
    globs: frozenset[str] = frozenset()
    """Options whose values are globs of which the last that matches decides; after a `!` it leaves files out."""
    numeric: bool = False
    """`-5` is a harmless option."""
    plus: bool = False
    """Words that begin with `+` are options."""
    short_equals: bool = False
    """`-f=FILE` is `-f FILE` for certain: to others that may be a file whose name begins with `=`."""
    file_addresses: bool = False
    """`file://X` and `fileb://X`, as or within a value, are files from where it works."""
    bundled: bool = False
    """The first word is a cluster without a dash, its values follow in order (`tar xf a.tar`)."""
    unlisted: Literal["hazard", "anything"] = "hazard"
    launches: Launch | None = None
    dry: frozenset[str] = frozenset()
    """Options with which nothing is written or deleted (`black --check`)."""
    delegates: frozenset[str] = frozenset()
    """Options whose value is a program to which all that follows goes (`python -m pytest`)."""
    starts_shell: bool = False
    """Without a command it starts a shell, which reads standard input."""
    prints: Prints | None = None
    language: str | None = None
    """The reader in `languages/` for what options and operands alone do not say."""
    commands: Mapping[str, str] = MappingProxyType({})
    """Subcommands: as written, to the section of the data that describes them; `*`: all others."""
    harmful: bool = False
    """A word that turns out to be an option could matter."""
