"""A shell call becomes facts: every command that bash might run, wherever it stands, and every file it opens."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ci_agent.hooks import DecisionCode
from ci_agent.json_types import JsonObject
from ci_agent.policy.disk import DiskBudget, names_beneath
from ci_agent.policy.effects import Effects, FileEffect, FileUse, UrlUse
from ci_agent.policy.facts import ExecFact, Fact, FileFact, NetFact, Origin, Span, UnknownFact
from ci_agent.policy.file_facts import Place, possible_texts, reaches_no_file, use_facts
from ci_agent.policy.programs.environment import changes_what_runs
from ci_agent.policy.programs.names import names_printed
from ci_agent.policy.shell.program import BoundExceededError, Command, Redirect, RedirectMode, UnparsableError
from ci_agent.policy.site import Site
from ci_agent.policy.urls import InvalidUrlError, parse_url
from ci_agent.policy.words import Word, literal_word
from ci_agent.workspace import InvalidPathError

ARGUMENTS: Final = frozenset({"command", "timeout", "description"})
"""The only arguments that a shell call may carry."""

MAX_DEPTH: Final = 64
"""Commands inside commands, scripts inside scripts."""

MAX_COMMANDS: Final = 10_000

_CUT_BY_XARGS = re.compile(r"""[\s'"\\]""")

_NETWORK_FILES = ("/dev/tcp/", "/dev/udp/")

_REDIRECT_EFFECTS: dict[RedirectMode, tuple[FileEffect, ...]] = {
    "read": ("read",),
    "write": ("write",),
    "append": ("write",),
    "read_write": ("read", "write"),
}


@dataclass(slots=True)
class _Reading:
    """One call while it is read."""

    site: Site
    budget: DiskBudget = field(default_factory=DiskBudget)
    commands: int = MAX_COMMANDS

    def spend_command(self) -> None:
        self.commands -= 1
        if self.commands < 0:
            raise BoundExceededError(f"more than {MAX_COMMANDS} commands would run")


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the text around a command says about it."""

    folder: Path | None
    """Where it starts; None: not known."""
    inherited: tuple[str, ...] = ()
    """Names of variables that an outer command was given."""
    origin: Origin | None = None
    within: Span | None = None
    """Where the text stands in the argument, when it is not the argument itself."""
    depth: int = 0
    input_names: tuple[Word, ...] | None = None
    """The lines on standard input are paths of files at or beneath these; None: nothing is known of them."""

    def span(self, span: Span) -> Span:
        return self.within or span


def shell_facts(site: Site, arguments: JsonObject) -> tuple[Fact, ...]:
    """Everything that a call of the shell tool would do."""
    closed = [name for name in arguments if name not in ARGUMENTS]
    if closed:
        return (UnknownFact(f"the argument {closed[0]!r} is not one that bash takes", argument=closed[0]),)
    command = arguments.get("command")
    if not isinstance(command, str):
        return (UnknownFact("the command is missing or is no text", argument="command"),)
    return script_facts(site, command)


def script_facts(site: Site, text: str) -> tuple[Fact, ...]:
    """Everything that running the text in the workspace would do."""
    reading = _Reading(site)
    facts: list[Fact] = []
    try:
        facts.extend(_script(reading, text, _Scene(site.workspace.root)))
    except BoundExceededError as error:
        facts.append(UnknownFact(str(error), code="limit", argument="command"))
    return tuple(facts)


def _script(reading: _Reading, text: str, scene: _Scene) -> Iterator[Fact]:
    if scene.depth > MAX_DEPTH:
        raise BoundExceededError(f"commands are nested more than {MAX_DEPTH} levels deep")
    try:
        program = reading.site.analyse(text)
    except UnparsableError as error:
        yield UnknownFact(error.reason, argument="command", span=scene.span(error.span))
        return
    printed: list[tuple[Word, ...] | None] = []
    for command in program.commands:
        names = None if command.reads_from is None else printed[command.reads_from]
        known = command.words and not command.function
        printed.append(names_printed(command.words, names) if known else None)
        yield from _command(reading, command, replace(scene, input_names=names))


def _command(reading: _Reading, command: Command, scene: _Scene) -> Iterator[Fact]:
    reading.spend_command()
    folder, problem = _enter(reading.site, scene.folder, command.folder)
    here = replace(scene, folder=folder)
    if problem is not None:
        yield _unknown(problem, scene.span(command.span))
    inputs: list[FileFact | UnknownFact] = []
    for redirect in command.redirects:
        for fact in _redirect(reading, redirect, here):
            if isinstance(fact, FileFact) and fact.effect == "read" and command.words:
                inputs.append(fact)
            else:
                yield fact
    names = tuple(assignment.name for assignment in command.assignments)
    if command.words:
        here = replace(here, inherited=(*scene.inherited, *names))
        yield from _exec(reading, command.words, here, scene.span(command.span), inputs)
    else:
        yield from _bare_assignments(reading, command, scene)


def _enter(site: Site, start: Path | None, folder: str | None) -> tuple[Path | None, str | None]:
    """The folder that a command runs in; with None, why it is not known."""
    if folder == "" and start is not None:
        return start, None
    if folder is None or (start is None and not folder.startswith("/")):
        return None, "in which folder it runs is not known; join `cd` and what follows it with &&"
    try:
        where = os.path.join(start or "/", folder)
        reached = site.workspace.resolve(where)
        # `cd a/..` goes back by name, even when `a` is a link: bash remembers the way that it came.
        by_name = site.workspace.resolve(os.path.normpath(where))
    except InvalidPathError as error:
        return None, str(error)
    return (reached, None) if reached == by_name else (None, f"where cd leads with {folder!r} depends on the shell")


def _bare_assignments(reading: _Reading, command: Command, scene: _Scene) -> Iterator[Fact]:
    for assignment in command.assignments:
        if changes_what_runs(assignment.name) or assignment.name in reading.site.around.exported:
            yield _unknown(
                f"setting {assignment.name} changes what later commands do", scene.span(assignment.span), "hazard"
            )


def _redirect(reading: _Reading, redirect: Redirect, scene: _Scene) -> Iterator[FileFact | UnknownFact]:
    place = _place(reading, scene, redirect.span)
    texts = possible_texts(redirect.target, place)
    if texts is None or len(texts) != 1:
        yield place.unknown(f"which file {redirect.target.text} means is not known")
        return
    target = literal_word(texts[0], redirect.target.span)
    if texts[0].startswith(_NETWORK_FILES):
        yield place.unknown(f"bash opens a network connection for {texts[0]}")
        return
    for effect in _REDIRECT_EFFECTS[redirect.mode]:
        if not reaches_no_file(texts[0], effect):
            yield from use_facts(reading.site, FileUse(effect, target), place)


def _exec(
    reading: _Reading, words: tuple[Word, ...], scene: _Scene, span: Span, inputs: list[FileFact | UnknownFact]
) -> Iterator[Fact]:
    if scene.depth > MAX_DEPTH:
        raise BoundExceededError(f"commands are nested more than {MAX_DEPTH} levels deep")
    place = _place(reading, scene, span)
    words = _expanded(words, place)
    if scene.folder is None or words[0].literal is None:
        yield place.unknown(f"which program {words[0].text} means is not known")
        return
    effects = reading.site.interpret(words, input_names=scene.input_names)
    yield from _problems(words, effects, place, scene.origin)
    command, unknown = _exec_fact(reading, words, effects, scene, span)
    files = [fact for fact in inputs if isinstance(fact, FileFact)]
    command = replace(command, files=(*command.files, *files))
    yield command
    yield from unknown
    yield from _inner(reading, command, effects, scene, span)


def _expanded(words: tuple[Word, ...], place: Place) -> tuple[Word, ...]:
    """The words with each glob replaced by the names that it becomes here and now."""
    expanded: list[Word] = []
    for word in words:
        texts = possible_texts(word, place) if word.kind == "glob" else None
        expanded += [word] if texts is None else [literal_word(text, word.span) for text in texts]
    return tuple(expanded)


def _problems(words: tuple[Word, ...], effects: Effects, place: Place, origin: Origin | None) -> Iterator[UnknownFact]:
    if effects.problem is not None:
        yield place.unknown(effects.problem)
    for at in effects.may_be_options:
        if _may_be_option(words[at], place):
            yield place.unknown(f"{words[at].text} may become an option: put `--` or `./` before it")
    for word in words:
        if word.beneath and word.splits and not _ends_at_nul(origin) and _has_odd_name(word, place):
            yield place.unknown("a file name with blanks or quotes would be cut: use find -print0 and xargs -0")


def _may_be_option(word: Word, place: Place) -> bool:
    """Whether a name that the word becomes begins with a dash, as far as the disk tells."""
    if word.beneath:
        return any(name.startswith("-") for name in _names_beneath(word, place))
    texts = possible_texts(word, place)
    return texts is None or any(text.startswith("-") for text in texts)


def _has_odd_name(word: Word, place: Place) -> bool:
    return any(_CUT_BY_XARGS.search(name) for name in _names_beneath(word, place))


def _ends_at_nul(origin: Origin | None) -> bool:
    """The outer command, `xargs -0`, takes whole names."""
    return origin is not None and any(word.literal in ("-0", "--null") for word in origin.command.words)


def _names_beneath(word: Word, place: Place) -> Iterator[str]:
    """Every name, without its folder, that a word made of file names may end in; `-` when that is not known."""
    for base in word.beneath:
        for text in possible_texts(base, place) or ["-"]:
            yield text
            if place.folder is not None:
                yield from (names[-1] for names in names_beneath(place.folder / text, place.budget))


def _exec_fact(
    reading: _Reading, words: tuple[Word, ...], effects: Effects, scene: _Scene, span: Span
) -> tuple[ExecFact, list[UnknownFact]]:
    place = _place(reading, scene, span)
    found: list[FileFact | UnknownFact] = []
    if effects.folder is not None:
        found += use_facts(reading.site, FileUse("list", effects.folder), place)
        place = replace(place, folder=_work_folder(reading, effects.folder, place))
    for use in effects.files:
        found += use_facts(reading.site, use, replace(place, span=scene.span(use.path.span)))
    requests = [_request(use, scene.span(use.url.span)) for use in effects.urls]
    files = tuple(fact for fact in found if isinstance(fact, FileFact))
    plain = not (files or requests or effects.hazards or effects.scripts)
    command = ExecFact(
        words=words,
        assignments=scene.inherited,
        folder=scene.folder or reading.site.workspace.root,
        files=files,
        requests=tuple(fact for fact in requests if isinstance(fact, NetFact)),
        hazards=effects.hazards,
        looked_through=frozenset(effects.looked_through),
        needs_rule=not (effects.transparent and plain),
        origin=scene.origin,
        span=span,
    )
    return command, [fact for fact in (*found, *requests) if isinstance(fact, UnknownFact)]


def _work_folder(reading: _Reading, folder: Word, place: Place) -> Path | None:
    texts = possible_texts(folder, place)
    if texts is None or len(texts) != 1 or place.folder is None:
        return None
    try:
        return reading.site.workspace.resolve(texts[0], start=place.folder)
    except InvalidPathError:
        return None


def _request(use: UrlUse, span: Span) -> NetFact | UnknownFact:
    if use.url.literal is None:
        return _unknown(f"which address {use.url.text} means is not known", span)
    try:
        return NetFact(parse_url(use.url.text), use.method, argument="command", span=span)
    except InvalidUrlError as error:
        return _unknown(f"{use.url.text} is no plain URL: {error}", span)


def _inner(reading: _Reading, command: ExecFact, effects: Effects, scene: _Scene, span: Span) -> Iterator[Fact]:
    """The commands and scripts that the program starts."""
    for inner in effects.commands:
        reading.spend_command()
        folder = scene.folder
        if inner.folder is not None:
            folder = _work_folder(reading, inner.folder, _place(reading, scene, span))
        names = tuple(name for name, _ in inner.assignments)
        deeper = replace(
            scene,
            folder=folder,
            inherited=(*scene.inherited, *names),
            origin=Origin(command, _position(command.words, inner.words[0])),
            depth=scene.depth + 1,
            input_names=scene.input_names if effects.transparent else None,
        )
        yield from _exec(reading, inner.words, deeper, span, [])
    for script in effects.scripts:
        if script.literal is None:
            yield _unknown(f"the commands in {script.text} are not known", scene.span(script.span))
            continue
        origin = Origin(command, _position(command.words, script), is_script=True)
        deeper = replace(scene, origin=origin, within=scene.span(script.span), depth=scene.depth + 1)
        yield from _script(reading, script.text, deeper)


def _position(words: tuple[Word, ...], word: Word) -> int | None:
    return next((at for at, each in enumerate(words) if each == word), None)


def _place(reading: _Reading, scene: _Scene, span: Span) -> Place:
    return Place(scene.folder, reading.budget, "command", scene.span(span))


def _unknown(why: str, span: Span, code: DecisionCode = "unparsable") -> UnknownFact:
    return UnknownFact(why, code, "command", span)
