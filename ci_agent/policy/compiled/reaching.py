"""Whether a rule's globs grant or forbid a file."""

from collections.abc import Iterable

from ci_agent.policy.facts import FileFact
from ci_agent.policy.matchers.open_names import may_cover
from ci_agent.policy.matchers.reach import AnchoredGlob, Names


def file_refusal(reach: Iterable[AnchoredGlob], fact: FileFact) -> str | None:
    """Why the globs of an allow rule do not grant the file; None: they do."""
    if fact.guarded.sealed is not None:
        return fact.guarded.sealed
    names = fact.names
    covering = _covering(reach, fact, names)
    changes_whole = fact.recursive and fact.effect in ("write", "delete")
    if not covering or (changes_whole and not any(glob.covers(names) for glob in reach)):
        if covering or any(glob.covers_listing(names) for glob in reach):
            own = "as `.` does for the workspace" if fact.recursive else "or name a file in it"
            return f"its paths cover what is in {fact.shown}, not the folder as a whole: spell the folder too, {own}"
        return f"{fact.shown} is outside its paths"
    if not fact.guarded.must_spell:
        return None
    # One glob must cover a file and spell it; what lies beneath a folder may be spelled by another.
    spelling = list(reach) if fact.recursive else covering
    for run in sorted(fact.guarded.must_spell):
        if not any(glob.spells(run) for glob in spelling):
            return _unspelled(run, covering[0], fact)
    return None


def _unspelled(run: Names, covering: AnchoredGlob, fact: FileFact) -> str:
    name = "/".join(run)
    if fact.recursive and fact.effect == "write":
        spelled = " and ".join(f"{covering.text}/{'/'.join(each)}/**" for each in sorted(fact.guarded.must_spell))
        return f"what is put there may bring {name}, which no wildcard reaches: its paths must spell {spelled}"
    return f"no wildcard reaches {name}: its paths must spell it"


def _covering(reach: Iterable[AnchoredGlob], fact: FileFact, names: Names) -> list[AnchoredGlob]:
    """The globs that cover the path, or all beneath it when that is meant."""
    if fact.recursive:
        return [glob for glob in reach if glob.covers_beneath(names)]
    if fact.is_folder and fact.effect in ("read", "list"):
        return [glob for glob in reach if glob.covers_listing(names)]
    return [glob for glob in reach if glob.covers(names)]


def forbids_path(reach: Iterable[AnchoredGlob], fact: FileFact, names: Iterable[Names]) -> bool:
    """Whether the globs of a deny rule are about the path itself; what lies beneath it is another question.

    `names`: the fact's `denied_names`, which many rules may ask for.
    """
    if fact.is_open:
        return any(may_cover(glob, each) for glob in reach for each in names)
    lists = fact.is_folder and fact.effect in ("read", "list")
    return any(glob.covers_listing(each) if lists else glob.covers(each) for glob in reach for each in names)
