"""Effects while they are being gathered, and the few ways in which they are added."""

import re
from collections.abc import Sequence

from ci_agent.policy.effects import Effects, FileEffect, FileUse, InnerCommand, Tracked, UrlUse
from ci_agent.policy.programs.options import tail
from ci_agent.policy.words import EVERYTHING, Selection, Word, literal_word

_NO_FILES = frozenset({"-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
"""Names that reach no file of anybody's."""
_STANDARD_INPUT = frozenset({"-", "/dev/stdin", "/dev/fd/0"})
CODE_FROM_INPUT = "runs the code that it reads from its input"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_FILE_ADDRESS = re.compile(r"fileb?://")
_VERSION = re.compile(
    r"(?:[A-Za-z]+[@-]?)?[0-9]+(?:\.[0-9]+)*(?:t|-dev|(?:-[a-z0-9_]+){3})?|latest"
    r"|(?:stable|beta|nightly)(?:-[0-9]{4}-[0-9]{2}-[0-9]{2})?(?:(?:-[a-z0-9_]+){3,4})?"
)
_PLAIN_NAME = re.compile(r"@?[A-Za-z0-9][A-Za-z0-9_@:,-]*(?:;verbosity=[a-z]+)?")


class Draft:
    def __init__(self, input_names: tuple[Word, ...] | None = None) -> None:
        """`input_names`: what is known of the lines on standard input, paths of files at or beneath these; None:
        nothing."""
        self.input_names = input_names
        self.files: list[FileUse] = []
        self.urls: list[UrlUse] = []
        self.commands: list[InnerCommand] = []
        self.scripts: list[Word] = []
        self.hazards: dict[int, str] = {}
        self.looked_through: list[int] = []
        self.may_be_options: list[int] = []
        self.code: list[tuple[int, int]] = []
        self.tracked: list[Tracked] = []
        self.untracked: list[FileUse] = []
        self.anything: list[Word] = []
        self.elsewhere: list[Word | None] = []
        self.transparent = False
        self.file_addresses = False
        """As the profile of the program says."""
        self.folder: Word | None = None
        self.problem: str | None = None

    def use(  # noqa: PLR0913 - most by name
        self,
        effect: FileEffect,
        path: Word,
        recursive: bool = False,
        into: Sequence[Word] = (),
        selection: Selection = EVERYTHING,
        *,
        in_place: bool = False,
    ) -> None:
        if path.beneath:
            # What was found is there already.
            in_place = in_place or (effect == "write" and not recursive and not into)
            self._use_beneath(FileUse(effect, path, recursive=True, in_place=in_place))
        elif effect == "delete" or not reaches_no_file(path):
            self.files.append(FileUse(effect, path, recursive, selection, tuple(into), (), False, in_place))

    def write_whole(self, path: Word, contents: Sequence[Word] = (), *, in_place: bool = False) -> None:
        """Write all beneath a path: with what lies in these folders, or only what is there."""
        use = FileUse("write", path, recursive=True, contents=tuple(contents), in_place=in_place)
        if path.beneath:
            self._use_beneath(use)
        else:
            self.files.append(use)

    def _use_beneath(self, use: FileUse) -> None:
        self.files += [use._replace(path=base, selection=base.selection) for base in use.path.beneath]

    def hazard(self, index: int, why: str) -> None:
        self.hazards.setdefault(index, why)

    def doubt(self, problem: str) -> None:
        """The effects cannot be known."""
        self.problem = self.problem or problem

    def run(
        self, words: Sequence[Word], assignments: Sequence[tuple[str, Word]] = (), folder: Word | None = None
    ) -> None:
        if words:
            self.commands.append(InnerCommand(tuple(words), tuple(assignments), folder))

    def script(self, text: Word) -> None:
        """Shell text that will run; it has to be known."""
        self.scripts.append(text)
        if text.literal is None:
            self.doubt(f"the commands in {text.text} are not known")

    def _start_in(self, folder: Word) -> None:
        """What is started works where the program does (`uv run --directory sub cat x`)."""
        self.commands = [each if each.folder else each._replace(folder=folder) for each in self.commands]
        if self.scripts:
            self.doubt(f"which files the commands mean that run in {folder.text} is not known")

    def work_in(self, folder: Word) -> None:
        """Later folders are relative to earlier ones."""
        before = self.folder.literal if self.folder else None
        if before is None or folder.literal is None or folder.text.startswith(("/", "~")):
            if self.folder is not None and not folder.text.startswith(("/", "~")):
                self.doubt(f"the folder {folder.text} is not known")
            self.folder = folder
        else:
            self.folder = literal_word(f"{before}/{folder.text}", folder.span)

    def finished(self) -> Effects:
        if self.folder is not None:
            self._start_in(self.folder)
        # By position: to make a named tuple by so many names takes several times as long.
        return Effects(
            tuple(self.files),
            tuple(self.urls),
            tuple(self.commands),
            tuple(self.scripts),
            tuple(sorted(self.hazards.items())) if self.hazards else (),
            tuple(self.looked_through),
            self.transparent and not self.hazards,
            self.folder,
            tuple(self.may_be_options),
            tuple(self.code),
            tuple(self.anything),
            tuple(self.tracked),
            tuple(self.untracked),
            tuple(self.elsewhere),
            self.problem,
        )


def use_at(draft: Draft, value: Word) -> None:
    """`@FILE` is a file, other text is not."""
    if value.kind == "unknown" and not value.prefix:
        draft.doubt(f"{value.text} may name a file to read")
    elif (value.prefix or value.text).startswith("@"):
        draft.use("read", tail(value, 1))


def use_anything(draft: Draft, word: Word) -> None:
    """Nobody knows what the word means to the program: a way out of the workspace counts as a file."""
    if word.pipe or (draft.file_addresses and _use_file_addresses(draft, word)):
        return
    if word.literal is not None:
        outside = looks_outside(word.text)
    elif word.stand_ins:
        outside = any(map(looks_outside, word.stand_ins))
    else:
        outside = not word.choices or any(looks_outside(choice.text) for choice in word.choices)
    for path in _paths_in(word) if outside else ():
        draft.use("read", path)
        draft.use("write", path)
    if not outside:
        draft.anything.append(word)


def _use_file_addresses(draft: Draft, word: Word) -> bool:
    """Whether the word names files by such addresses; in each the program puts values for variables and `~`."""
    texts = (word.prefix, *word.stand_ins, *(choice.text for choice in word.choices))
    if word.literal is None and any(map(_FILE_ADDRESS.search, texts)):
        # Of a few values, each is tried then.
        draft.doubt(f"which file {word.text} means is not known")
    rests = [word.text[match.end() :] for match in _FILE_ADDRESS.finditer(word.literal or "")]
    for path in dict.fromkeys(path for rest in rests for path in (rest, rest.partition(",")[0])):
        draft.use("read", literal_word(path, word.span))
        if "$" in path:
            draft.doubt(f"which file {word.text} means is not known")
    return bool(rests)


def _paths_in(word: Word) -> tuple[Word, ...]:
    """The path of a word such as `--config=/etc/x` or `-I/usr/include`; what `file://x` is, programs disagree about."""
    text = word.text
    if word.kind != "literal":
        return (word,)
    if "=" in text and not _leaves(text):
        word = tail(word, text.index("=") + 1)
    elif text.startswith("-"):
        word = tail(word, 2)
    if not word.text.startswith("file:"):
        return (word,)
    rest = word.text.removeprefix("file:")
    from_root = literal_word("/" + rest.lstrip("/"), word.span)
    relative = rest.removeprefix("//")
    return (from_root,) if relative.startswith("/") else (from_root, literal_word(relative, word.span))


def use_named(draft: Draft, value: Word) -> None:
    """`NAME=FILE`, and `FILE`, whose name may hold a `=` as well."""
    draft.use("read", value)
    equals = (value.prefix if value.kind == "unknown" else value.text).find("=")
    if equals >= 0:
        draft.use("read", tail(value, equals + 1))


def use_source(draft: Draft, word: Word) -> None:
    """A URL, or a file to read."""
    if word.pipe:
        return
    if word.kind == "unknown" and not word.prefix:
        draft.doubt(f"{word.text} may be a URL or a file")
    elif _URL.match(word.prefix or word.text):
        draft.urls.append(UrlUse(word))
    else:
        draft.use("read", word, recursive=True)


def is_url(word: Word) -> bool:
    return word.literal is not None and _URL.match(word.text) is not None


def is_plain_name(word: Word) -> bool:
    """A name of something installed, and no path."""
    return word.literal is not None and _PLAIN_NAME.fullmatch(word.text) is not None


def is_version(word: Word) -> bool:
    """`3.12`, `python3.12`, `pypy@3.10`."""
    return word.literal is not None and _VERSION.fullmatch(word.text) is not None


def reaches_no_file(word: Word) -> bool:
    return word.pipe or word.literal in _NO_FILES


def is_standard_input(word: Word) -> bool:
    """What it holds is what something else prints, or what stands in the line: nobody has seen it in a file."""
    return word.pipe or word.literal in _STANDARD_INPUT


def looks_outside(text: str) -> bool:
    """A path that is absolute, in a home folder, or climbs; also after a `=` or behind a short option."""
    return _leaves(text) or _leaves(text.partition("=")[2]) or _leaves(_attached(text))


def _attached(text: str) -> str:
    return text[2:] if text.startswith("-") and not text.startswith("--") else ""


def _leaves(path: str) -> bool:
    return path.startswith(("/", "~", "file:")) or (".." in path and ".." in path.split("/"))
