"""What a shell call that the policy allows needs of the machine, out of the facts and the rules that it was decided by.

A command whose profile tells what it writes gets exactly that. Any other (an interpreter, a test runner, a script) gets
what the rule reaches that granted it.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.policy.compiled.match import CompiledRule
from ci_agent.policy.decide import Policy
from ci_agent.policy.facts import ExecFact, FileFact
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.judging.judge import Call, Verdict, judge
from ci_agent.policy.judging.judge_arguments import CallArguments
from ci_agent.policy.matchers.path_globs import Part, parse_path_glob
from ci_agent.policy.matchers.reach import AnchoredGlob
from ci_agent.policy.programs.told_writes import TELLING, tells_writes
from ci_agent.policy.protected import GIT, WORKFLOWS, Run
from ci_agent.sandbox.access import Access, lies_in, may_be_there
from ci_agent.terminal import shortened

_PROTECTED: Final[tuple[tuple[Run, tuple[str, ...]], ...]] = (
    (GIT, (".git/hooks", ".git/config", ".git/config.worktree")),
    (WORKFLOWS, (".github/workflows",)),
)
"""What no wildcard reaches, by the names that a rule must spell, relative to the workspace."""


@dataclass(frozen=True, slots=True)
class Closed:
    """What programs must not read, whatever they are. Paths free of symlinks."""

    secrets: tuple[Path, ...] = ()
    """Closed unless a rule that grants a part of the call spells them, or the call itself names them."""
    denied: tuple[Path, ...] = ()


def judge_again(policy: Policy, arguments: JsonObject) -> Sequence[Verdict] | None:
    """What one call of `bash` does and is allowed by; None when the policy does not allow it, as things are now."""
    verdicts = judge(Call(policy.rules, CallArguments(policy.site, "bash", arguments)))
    return verdicts if verdicts and all(verdict.holds for verdict in verdicts) else None


def folders_of_git(verdicts: Sequence[Verdict]) -> Iterator[Path]:
    """Where a call may start git: where those of its commands run that may start others, and what git is told of."""
    for verdict in verdicts:
        fact = verdict.fact
        program = os.path.basename(fact.words[0].text) if isinstance(fact, ExecFact) else ""
        if isinstance(fact, ExecFact) and program not in TELLING:
            yield fact.folder
            yield from (file.path for file in fact.files if program == "git")


def pushes(verdicts: Iterable[Verdict]) -> bool:
    """Whether git is told to send something to another repository."""
    for verdict in verdicts:
        if isinstance(verdict.fact, ExecFact):
            program, *rest = (word.text for word in verdict.fact.words)
            if os.path.basename(program) in ("git-push", "git-send-pack"):
                return True
            if os.path.basename(program) == "git" and not {"push", "send-pack"}.isdisjoint(rest):
                return True
    return False


def call_access(policy: Policy, verdicts: Sequence[Verdict], closed: Closed) -> Access:
    """The access of one call of `bash` that is allowed.

    All programs of a call have the same. Raises ToolError where one of them would get what another was granted.
    """
    commands = [verdict for verdict in verdicts if isinstance(verdict.fact, ExecFact)]
    opaque = [verdict.granted_by for verdict in commands if verdict.granted_by and not _tells_writes(verdict.fact)]
    spelled = [glob for verdict in verdicts if verdict.granted_by for glob in verdict.granted_by.reach or ()]
    readable = _spelled_secrets(closed.secrets, spelled, _files_read(verdicts))
    writable = [*_told(verdicts), *(place for rule in opaque for place in _reached(rule, policy.site))]
    if opaque:
        starts = [policy.site.workspace.root, *map(_start, spelled)]
        writable = [path for path in writable if any(lies_in(str(path), str(start)) for start in starts)]
    missing = {path for rule in opaque for path in _missing(rule, policy.site)}
    access = Access(
        writable=tuple(dict.fromkeys(str(path) for path in writable if path != Path("/"))),
        missing=tuple(str(path) for path in dict.fromkeys(writable) if path in missing),
        hidden=tuple(str(path) for path in (*closed.secrets, *closed.denied) if str(path) not in readable),
        readable=tuple(readable),
        protected=tuple(_protected(policy.site, spelled)),
        network=any(_uses_network(verdict) for verdict in commands),
    )
    for verdict in commands:
        rule = verdict.granted_by
        if rule and not _tells_writes(verdict.fact):
            own = [verdict, *(other for other in verdicts if _is_output(other, rule))]
            _require_within(access, _access_by_itself(own, rule, closed, policy.site), verdict, policy.site)
    return access


def _is_output(verdict: Verdict, rule: CompiledRule) -> bool:
    """Where the shell leads output to: an open file gives a program nothing more, but the folder of a new one does."""
    fact = verdict.fact
    return isinstance(fact, FileFact) and (verdict.granted_by is rule or os.path.isfile(fact.path))


def _access_by_itself(own: Sequence[Verdict], rule: CompiledRule, closed: Closed, site: Site) -> Access:
    """What a program that does not tell what it does would have in a call of its own."""
    return Access(
        writable=tuple(str(path) for path in (*_told(own), *_reached(rule, site))),
        readable=tuple(_spelled_secrets(closed.secrets, rule.reach or (), _files_read(own))),
        network=any(_uses_network(verdict) for verdict in own),
    )


def _require_within(access: Access, by_itself: Access, program: Verdict, site: Site) -> None:
    more = [
        *(
            f"write {site.workspace.display(Path(path))}"
            for path in access.writable
            if not any(lies_in(path, place) for place in by_itself.writable)
        ),
        *(f"read {path}" for path in access.readable if path not in by_itself.readable),
        *(["use the network"] if access.network and not by_itself.network else []),
    ]
    if more:
        words = program.fact.words if isinstance(program.fact, ExecFact) else ()
        shown = shortened(" ".join(word.text for word in words), 60)
        raise ToolError(
            f"the call was not run: nothing lets `{shown}` {', '.join(more)}, which other parts of the call need, and "
            f"what one of them may do, all could. Run them in calls of their own"
        )


def closed_places(policy: Policy, secrets: Iterable[Path], denied: Iterable[Path] = ()) -> Closed:
    """These, what speaks to the CI runner, and the files that deny rules on `read` spell without a wildcard.

    Not what is in a `.git`, for git itself would be unable to read it, nor a folder that programs need as a whole.
    """
    by_rule = (path for rule in policy.rules.for_tool("read").deny for path in _literal_paths(rule, policy.site))
    narrow = (path for path in by_rule if not _is_wide(path, policy.site))
    return Closed(_resolved([*secrets, *policy.site.around.runner_files]), _resolved([*denied, *narrow]))


def _is_wide(path: Path, site: Site) -> bool:
    """Whether hardly a program would run without it: a folder like `/etc`, a whole home, one around the workspace."""
    return len(path.parts) <= 2 or path in (site.workspace.root, *site.workspace.root.parents, site.around.home)


def _resolved(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(Path(os.path.realpath(path)) for path in paths if ".git" not in path.parts))


def _literal_paths(rule: CompiledRule, site: Site) -> Iterator[Path]:
    if rule.args or rule.commands is not None or rule.has is not None or rule.net.is_written:
        return
    bases = {"workspace": site.workspace.root, "root": Path("/"), "home": site.around.home}
    for text in (*(rule.rule.path or ()), *(rule.rule.paths or ())):
        glob = parse_path_glob(text)
        base = bases[glob.anchor]
        for parts in glob.alternatives:
            names = _literal_names(parts)
            if base is not None and names:
                yield base.joinpath(*names)


def _literal_names(parts: Sequence[Part]) -> list[str]:
    """The names of a glob without wildcards, but for a closing `**`; empty when it has others."""
    if parts[-2:-1] == (None,) and parts[-1] is not None and parts[-1].is_star:
        parts = parts[:-2]
    names = [part.literal for part in parts if part is not None and part.literal is not None]
    return names if len(names) == len(parts) else []


def _tells_writes(fact: object) -> bool:
    """A wrapper or a function that needs no rule writes nothing of its own."""
    if not isinstance(fact, ExecFact) or not fact.needs_rule:
        return True
    hazards = {why for _, why in fact.hazards}
    return tells_writes([word.text for word in fact.words], fact.looked_through, hazards)


def _told(verdicts: Iterable[Verdict]) -> Iterator[Path]:
    """Where the files lie that the facts say are written or deleted."""
    for verdict in verdicts:
        fact = verdict.fact
        if isinstance(fact, FileFact) and fact.effect == "write":
            yield _nearest(fact.path)
        elif isinstance(fact, ExecFact):
            for file in fact.files:
                if file.effect in ("write", "delete"):
                    # Many programs put a new file in the old one's place.
                    yield _nearest(file.path if file.is_folder and file.effect == "write" else file.path.parent)


def _reached(rule: CompiledRule, site: Site) -> Iterator[Path]:
    """Where the rule begins to reach. Only in the workspace does what is not there count, and nowhere what a link leads
    to: another rule's program may have made it."""
    missing = list(_missing(rule, site))
    for glob in rule.reach or ():
        start = _start(glob)
        if start in missing:
            yield start
        elif site.workspace.contains(start) or os.path.lexists(start):
            place = _nearest_by_name(start)
            if not _is_linked(place):
                yield place


def _missing(rule: CompiledRule, site: Site) -> Iterator[Path]:
    """Folders of the workspace that the rule spells (`dist/**`) and that are not there: they can be made, where opening
    the folder that they will be in would open all that it holds. Not for one file, which its program makes."""
    for glob in rule.reach or ():
        start = _start(glob)
        if glob.tail and site.workspace.contains(start) and not may_be_there(start) and ".git" not in start.parts:
            above = _nearest_by_name(start)
            # Unless a link leads elsewhere, or a file stands in the way.
            if not _is_linked(above) and site.workspace.contains(above) and above.is_dir():
                yield start


def _start(glob: AnchoredGlob) -> Path:
    return Path("/").joinpath(*glob.prefix)


def _nearest(path: Path) -> Path:
    """The path, or the nearest folder above that is there; free of symlinks."""
    return Path(os.path.realpath(_nearest_by_name(path)))


def _is_linked(path: Path) -> bool:
    """Whether a symlink is on the way to it, or stands there."""
    return path != Path(os.path.realpath(path))


def _nearest_by_name(path: Path) -> Path:
    while not may_be_there(path):
        path = path.parent
    return path


def _files_read(verdicts: Iterable[Verdict]) -> Iterator[Path]:
    for verdict in verdicts:
        files = verdict.fact.files if isinstance(verdict.fact, ExecFact) else (verdict.fact,)
        yield from (file.path for file in files if isinstance(file, FileFact) and file.effect == "read")


def _spelled_secrets(secrets: Sequence[Path], globs: Sequence[AnchoredGlob], read: Iterable[Path]) -> dict[str, None]:
    """What is or lies in a secret place and is spelled: by a rule that grants a part of the call, or by the call."""
    spelled = [*("/" + "/".join(glob.prefix) for glob in globs), *map(str, read)]
    return {path: None for path in spelled if any(lies_in(path, str(secret)) for secret in secrets)}


def _protected(site: Site, globs: Sequence[AnchoredGlob]) -> Iterator[str]:
    root = site.workspace.root
    for run, names in _PROTECTED:
        if not any(glob.spells(run) for glob in globs):
            yield from (str(root / name) for name in names)
    yield from map(str, site.around.records)


def _uses_network(verdict: Verdict) -> bool:
    """The call names a host that is granted, or its rule names hosts for what a command does by itself."""
    asks = isinstance(verdict.fact, ExecFact) and bool(verdict.fact.requests)
    rule = verdict.granted_by
    return asks or (rule is not None and rule.net.hosts is not None and not _tells_writes(verdict.fact))
