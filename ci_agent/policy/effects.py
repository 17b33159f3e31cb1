"""What running a program with given words would do, as its profile tells it."""

from typing import Literal, NamedTuple, TypeAlias

from ci_agent.policy.words import EVERYTHING, Selection, Word

FileEffect: TypeAlias = Literal["list", "read", "write", "delete"]
"""`list`: names and attributes alone (`ls`, `test -f`, `cd`), not the content. It must be within reach like a read, but
a rule that denies reading does not concern it."""


class Exclusion(NamedTuple):
    """What one of git's pathspecs leaves out for certain (`:!docs`)."""

    pattern: str
    """Paths, as a regular expression, relative to where git works."""
    from_top: bool = False
    """Relative to the top of the working tree (`:!/docs`)."""


class FileUse(NamedTuple):
    effect: FileEffect
    path: Word
    recursive: bool = False
    """Everything beneath the path is meant too (`grep -r`, `rm -r`, `cp -r`)."""
    selection: Selection = EVERYTHING
    """Which of the files beneath the path, when it is recursive."""
    into: tuple[Word, ...] = ()
    """When the path is an existing folder, the base names of these beneath it are meant (`cp a b FOLDER`)."""
    contents: tuple[Word, ...] = ()
    """For a recursive write: what lies beneath these comes to lie beneath the path (`cp -r a/. FOLDER`)."""
    if_there: bool = False
    """No file where nothing has the name (`git log main`): a revision, and no rule need grant it."""
    in_place: bool = False
    """For a recursive write: it changes what is there and puts nothing new there (`chmod -R`)."""
    from_top: bool = False
    """Relative to the top of the working tree that the folder is in (`:/path` of git)."""
    excluded: tuple[Exclusion, ...] = ()
    build_files: tuple[Word, ...] = ()
    """For a folder that is sent to a builder: the files that say how to build, where an option names them."""


class Tracked(NamedTuple):
    """Files that the repository tracks and that no word names: the content of any may be printed, or changed."""

    effect: Literal["read", "write"] = "read"
    beneath: Word | None = None
    """Those at or beneath this path; None: all of the working tree."""
    unless_there: tuple[Word, ...] = ()
    """When one of these is the path of something, only what is named is meant."""
    changed: bool = False
    """None that is as the index has it."""
    excluded: tuple[Exclusion, ...] = ()
    endings: tuple[str, ...] = ()
    """Those alone of which a name ends so; none: all."""
    if_there: Word | None = None
    """Nothing, unless this is the path of something."""
    submodules: bool = False
    """All that lies in the submodules, and nothing else."""


class UrlUse(NamedTuple):
    url: Word
    method: str = "GET"


class InnerCommand(NamedTuple):
    """A command that the program starts: `timeout 5 CMD`, `find -exec CMD`, `xargs CMD`."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    """Set for it by the program (`env NAME=value CMD`)."""
    folder: Word | None = None
    """Where it runs, when the program changes it (`env -C DIR`)."""


class Effects(NamedTuple):
    """Everything a profile knows of one simple command. Positions are indexes into its words."""

    files: tuple[FileUse, ...] = ()
    urls: tuple[UrlUse, ...] = ()
    commands: tuple[InnerCommand, ...] = ()
    scripts: tuple[Word, ...] = ()
    """Shell text that the program hands to a shell (`sh -c TEXT`, `eval`)."""
    hazards: tuple[tuple[int, str], ...] = ()
    """Words that make the program run another program, load code or configuration, or write or delete a file, each
    with what it does in a few words: only a pattern that spells the word covers it."""
    looked_through: tuple[int, ...] = ()
    """Words that a pattern need not name (`git --no-pager`, `git -C DIR`): they are taken out before matching."""
    transparent: bool = False
    """A wrapper that needs no rule of its own (`timeout`, `nice`): the commands it starts need theirs."""
    folder: Word | None = None
    """The folder that the program itself works in, when an option says so (`git -C DIR`, `make -C DIR`): `files` are
    relative to it, and it must itself be within reach, as for `list`."""
    may_be_options: tuple[int, ...] = ()
    """Globs, and words made of file names, that would be taken for an option of consequence should a name begin with
    `-`: whoever can look at the disk must see that none does."""
    code: tuple[tuple[int, int], ...] = ()
    """Words that name a file whose code will run, each with where in the word its path begins."""
    anything: tuple[Word, ...] = ()
    """Words of which nobody knows whether they name files; none looks like a way out of the workspace."""
    tracked: tuple[Tracked, ...] = ()
    """No rule need reach them, but one that forbids what is done to a file that is tracked forbids the command."""
    untracked: tuple[FileUse, ...] = ()
    """The same of files that git finds beside those that it tracks (`git add -A`)."""
    elsewhere: tuple[Word | None, ...] = ()
    """Folders, besides the present one, in which what it starts may work, and what `anything` names may lie; None: any
    folder that holds a package."""
    problem: str | None = None
    """Why the effects cannot be known (an unknown word where an option would matter); the call is then denied."""
    known: bool = True
    """False: no profile; operands that look like a way out of the workspace were taken for files."""
    tried: int = 1
    """How many combinations of a loop's values were looked at one by one."""
