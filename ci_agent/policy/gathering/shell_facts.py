"""A shell call becomes facts: every command that bash might run, wherever it stands, and every file it opens."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from ci_agent.json_types import JsonObject
from ci_agent.policy.disk import DiskBudget
from ci_agent.policy.effects import InnerCommand
from ci_agent.policy.facts import ExecFact, Fact, FileFact, Origin, Span, UnknownFact, files_in, possible_files_in
from ci_agent.policy.gathering.absent_places import is_absent, is_made
from ci_agent.policy.gathering.answers import answer, is_stale
from ci_agent.policy.gathering.entered_folders import entered_folder
from ci_agent.policy.gathering.exec_facts import Run, read_run
from ci_agent.policy.gathering.file_facts import possible_texts
from ci_agent.policy.gathering.indexed_files import goes_by_index, index_stays
from ci_agent.policy.gathering.landings import with_landings
from ci_agent.policy.gathering.printed_names import input_names, with_names
from ci_agent.policy.gathering.reading import Reading, Scene
from ci_agent.policy.gathering.redirects import redirect_facts
from ci_agent.policy.gathering.sent_files import sends_folders, sent_lists_stay
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.gathering.stale_paths import stale_paths
from ci_agent.policy.gathering.touched_files import with_touched_files
from ci_agent.policy.gathering.unhidden_files import STEERING, ignore_files_stay, passes_hidden_by
from ci_agent.policy.gathering.untracked_files import with_unsure_ignored
from ci_agent.policy.gathering.workplaces import other_folders, resolve_folder, stale_packages
from ci_agent.policy.shell.program import (
    BoundExceededError,
    Command,
    Dialect,
    Disk,
    Question,
    UnparsableError,
)
from ci_agent.policy.shell.variables import directs_shell, may_change_encoding
from ci_agent.policy.words import EVERYTHING, Word
from ci_agent.steering_names import matters_to_shell_alone

ARGUMENTS: Final = frozenset({"command", "timeout", "description"})
"""The only arguments that a shell call may carry."""

_SAME_SHELL: Final = frozenset({"eval", "trap"})
_BASH: Final = frozenset({"bash", "rbash"})
_POSIX_MODE: Final = frozenset({"posix", "--posix"})
_HAVE_SHELLS: Final = frozenset({"busybox", "toybox"})
"""Their shells are none of their own names."""

_MOVE_INDEX: Final = frozenset({"GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_COMMON_DIR"})
"""With these, git looks at another index than the one beside the files."""

_QUESTION: Final = 50
"""To look up what a command prints takes as long as to see this many entries of a folder."""


def shell_facts(site: Site, arguments: JsonObject, budget: DiskBudget) -> tuple[Fact, ...]:
    """Everything that a call of the shell tool would do."""
    stranger = next((name for name in arguments if name not in ARGUMENTS), None)
    if stranger is not None:
        return (UnknownFact(f"the argument {stranger!r} is not one that bash takes", argument=stranger),)
    command = arguments.get("command")
    if not isinstance(command, str):
        return (UnknownFact("the command is missing or is no text", argument="command"),)
    return script_facts(site, command, budget)


def script_facts(site: Site, text: str, budget: DiskBudget) -> tuple[Fact, ...]:
    """Everything that running the text in the workspace would do."""
    reading = Reading(site, budget)
    facts = _facts(reading, text)
    asks = not (reading.asked and (is_stale(reading.asked, facts) or is_made(budget.absent, facts)))
    picked = _picked(facts)
    if goes_by_index(picked) and not (index_stays(facts) and _MOVE_INDEX.isdisjoint(site.around.exported)):
        budget.index_changes = True
        budget.odd.clear()
        budget.links.clear()
    if budget.index_changes or not asks:
        facts = _facts(Reading(site, budget, asks=asks), text)
        picked = _picked(facts)
    if (folders := sends_folders(picked)) and not sent_lists_stay(folders, facts):
        budget.sent_lists_change = True
    if passes_hidden_by(picked):
        budget.ignore_files_change = not (ignore_files_stay(facts) and STEERING.isdisjoint(site.around.exported))
    return facts


def _picked(facts: Sequence[Fact]) -> list[FileFact]:
    """The folders of which not everything is meant."""
    return [file for file in files_in(facts) if file.selection is not EVERYTHING]


def _facts(reading: Reading, text: str) -> tuple[Fact, ...]:
    site, facts = reading.site, reading.facts
    try:
        _read_script(reading, text, Scene(site.workspace.root))
        files = possible_files_in(facts)
        facts.extend(stale_paths(facts, files, reading.budget))
        facts.extend(stale_packages(reading, facts))
        if any(map(_depends_on_others, files)):
            facts = list(with_touched_files(site, with_unsure_ignored(with_landings(site, facts, reading.budget))))
    except BoundExceededError as error:
        facts.append(UnknownFact(str(error), code="limit", argument="command"))
    return tuple(facts)


def _depends_on_others(file: FileFact) -> bool:
    """What is meant may be another file, or others besides, by what other commands of the call do."""
    return file.landing is not None or file.selection is not EVERYTHING or file.touched is not None


def _read_script(reading: Reading, text: str, scene: Scene) -> None:
    # Of what another shell starts with, and of what `eval` finds, nothing is certain.
    environment = reading.site.environment if scene.origin is None else {}
    try:
        names, answers = partial(_list_names, reading, scene), partial(_answer, reading, scene)
        disk = Disk(names, answers, partial(_is_absent, reading))
        program = reading.site.analyse(text, environment, scene.dialect, disk)
    except UnparsableError as error:
        reading.facts.append(scene.unknown(error.reason, error.span))
        return
    for command in with_names(program):
        _read_command(reading, command, scene, input_names(program.commands, command))


def _list_names(reading: Reading, scene: Scene, glob: Word, folder: str) -> list[str] | None:
    entered, problem = entered_folder(reading, scene.folder, folder)
    if problem is not None:
        return None
    return possible_texts(glob, scene.of_command(entered, (), None).place(reading, glob.span))


def _answer(reading: Reading, scene: Scene, question: Question, folder: str) -> tuple[str, ...]:
    entered, problem = entered_folder(reading, scene.folder, folder)
    if problem is not None or entered is None or not reading.asks:
        return ()
    reading.budget.spend_entries(_QUESTION)
    told = answer(reading.site, question, entered)
    if told is None:
        return ()
    reading.asked.append(told)
    return told[2]


def _is_absent(reading: Reading, path: str) -> bool:
    return is_absent(path, reading.budget)


def _read_command(reading: Reading, command: Command, scene: Scene, names_read: tuple[Word, ...] | None) -> None:
    reading.spend_command(scene.depth, command.words)
    folder, problem = entered_folder(reading, scene.folder, command.folder)
    if problem is not None:
        reading.facts.append(scene.unknown(problem, command.span))
    names = tuple([assignment.name for assignment in command.assignments]) if command.assignments else ()
    here = scene.of_command(folder, names, names_read)
    runs_program = bool(command.words) and not (command.function and not here.inherited)
    inputs = _read_redirects(reading, command, here, runs_program) if command.redirects else ()
    if runs_program:
        _read_program(reading, command.words, here, command.span, inputs)
    elif command.words:
        reading.facts.append(_function_call(reading, command, here))
    else:
        reading.facts.extend(_bare_assignments(reading.site, command, scene))


def _read_redirects(reading: Reading, command: Command, scene: Scene, runs_program: bool) -> tuple[FileFact, ...]:
    """The files that a program is given to read; all others stand for themselves."""
    inputs: list[FileFact] = []
    for redirect in command.redirects:
        for fact in redirect_facts(reading, redirect, scene):
            if isinstance(fact, FileFact) and fact.effect == "read" and runs_program:
                inputs.append(fact)
            else:
                reading.facts.append(fact)
    return tuple(inputs)


def _function_call(reading: Reading, command: Command, scene: Scene) -> ExecFact:
    """A function of the same text needs no rule: what it runs is among the commands."""
    folder = scene.folder or reading.site.workspace.root
    span = scene.span(command.span)
    return ExecFact(
        command.words, (), folder, (), (), (), frozenset(), needs_rule=False, origin=scene.origin, span=span
    )


def _bare_assignments(site: Site, command: Command, scene: Scene) -> Iterator[UnknownFact]:
    for assignment in command.assignments:
        name = assignment.name
        if matters_to_shell_alone(name) or name in site.around.exported:
            why = f"setting {name} changes what later commands do"
            yield UnknownFact(why, "hazard", "command", scene.span(assignment.span))


def _read_program(
    reading: Reading, words: tuple[Word, ...], scene: Scene, span: Span, inputs: tuple[FileFact, ...] = ()
) -> None:
    """A command, and all that it starts."""
    run = read_run(reading, words, scene, span, inputs)
    if isinstance(run, UnknownFact):
        reading.facts.append(run)
        return
    reading.facts.append(run.command)
    if not run.command.needs_rule:
        # A transparent wrapper leaves what is redirected to it to the command that it starts.
        reading.facts.extend(inputs)
    reading.facts.extend(run.unknown)
    if run.effects.commands or run.effects.scripts:
        _read_inner(reading, run, scene, span)


def _read_inner(reading: Reading, run: Run, scene: Scene, span: Span) -> None:
    """What a command starts, wherever it starts it."""
    scenes = [scene]
    if run.effects.elsewhere:
        folders = other_folders(reading, run.effects, scene)
        if isinstance(folders, UnknownFact):
            reading.facts.append(folders)
            return
        scenes += [scene._replace(folder=folder) for folder in folders]
    for where in scenes:
        for inner in run.effects.commands:
            _read_inner_command(reading, run, inner, where, span)
        for script in run.effects.scripts:
            _read_inner_script(reading, run, script, where)


def _read_inner_command(reading: Reading, run: Run, inner: InnerCommand, scene: Scene, span: Span) -> None:
    reading.spend_command(scene.depth + 1, inner.words, run.command.words)
    folder = scene.folder
    if inner.folder is not None:
        folder = resolve_folder(reading.site, inner.folder, scene.place(reading, span))
    names = tuple(name for name, _ in inner.assignments)
    origin = Origin(run.command, _position(run.command.words, inner.words[0]))
    # A transparent wrapper leaves standard input to the command that it starts.
    input_names = scene.input_names if run.effects.transparent else None
    deeper = scene._replace(
        folder=folder,
        inherited=scene.inherited + names,
        origin=origin,
        depth=scene.depth + 1,
        input_names=input_names,
    )
    for name, value in inner.assignments:
        if may_change_encoding(name, value.literal):
            why = f"a new value for {name} that may change the character encoding"
            reading.facts.append(scene.unknown(why, span))
    _read_program(reading, inner.words, deeper, span)


def _read_inner_script(reading: Reading, run: Run, script: Word, scene: Scene) -> None:
    if script.literal is None:
        reading.facts.append(scene.unknown(f"the commands in {script.text} are not known", script.span))
        return
    reading.spend_command(scene.depth + 1, (script,))
    for name in filter(directs_shell, scene.inherited):
        reading.facts.append(scene.unknown(f"{name} changes how the shell reads {script.text!r}", script.span))
    deeper = scene._replace(
        origin=Origin(run.command, _position(run.command.words, script), is_script=True),
        within=scene.span(script.span),
        depth=scene.depth + 1,
        dialect=_dialect(run, scene),
    )
    _read_script(reading, script.literal, deeper)


def _dialect(run: Run, scene: Scene) -> Dialect:
    """What the shell reads that gets a script of this program."""
    texts = [word.literal for word in run.command.words]
    name = os.path.basename(texts[0] or "")
    if name in _SAME_SHELL:
        return scene.dialect
    is_bash = name in _BASH and _POSIX_MODE.isdisjoint(texts)
    return "bash" if is_bash and _started_by(scene) not in _HAVE_SHELLS else "posix"


def _started_by(scene: Scene) -> str:
    return "" if scene.origin is None else os.path.basename(scene.origin.command.words[0].text)


def _position(words: tuple[Word, ...], word: Word) -> int | None:
    return next((at for at, each in enumerate(words) if each == word), None)
