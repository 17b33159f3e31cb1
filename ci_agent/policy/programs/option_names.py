"""Which option a name means: as it is listed, cut short, undone, spelled otherwise, or not listed at all."""

from bisect import bisect_left
from itertools import islice, takewhile

from ci_agent.policy.programs.profile import HAZARDS, Option, Profile
from ci_agent.policy.programs.telltale import tells


def lookup(profile: Profile, name: str) -> tuple[Option, int | None]:
    """The option that a long name means, and how long its name is when its value is attached without `=`."""
    written = len(name)
    if not profile.syntax.clusters:
        name = "-" + name.lstrip("-")
    exact = profile.options.get(name)
    if exact is not None:
        return exact, None
    family = starred(profile, name)
    if family is not None:
        fixed = len(family.name) - 1
        return family, None if len(name) == fixed else written - len(name) + fixed
    cut_short = _cut_short(profile, name)
    if cut_short:
        return _most_harmful(name, cut_short), None
    if profile.syntax.negations and name.startswith("--no-") and "--" + name[5:] in profile.options:
        return Option(name, "bare", "data"), None
    return unlisted(profile, name), None


def _cut_short(profile: Profile, name: str) -> list[Option]:
    """The options whose names begin with this one."""
    if not profile.syntax.abbreviations or not name.startswith("--"):
        return []
    start = bisect_left(profile.long_names, name)
    following = islice(profile.long_names, start, None)
    return [profile.options[full] for full in takewhile(lambda full: full.startswith(name), following)]


def _most_harmful(name: str, candidates: list[Option]) -> Option:
    """The one option, or the worst of those that a name may be short for: which one depends on the version."""
    worst = max(candidates, key=lambda option: (option.why is not None, option.arity == "takes"))
    if worst.why is not None or all(option.arity == worst.arity for option in candidates):
        return worst
    return Option(name, worst.arity, "unlisted", "is short for several options")


def starred(profile: Profile, name: str) -> Option | None:
    """The family of options that a name belongs to (`-W*`)."""
    return next((option for option in profile.prefixes if name.startswith(option.name[:-1])), None)


def unlisted(profile: Profile, name: str) -> Option:
    """What an option counts as that the profile does not have."""
    if name in ("--help", "--version"):
        return Option(name, "bare", "data")
    if profile.unlisted == "anything":
        return _otherwise_spelled(profile, name) or Option(name, "may_take", "anything", tells(name))
    return Option(name, "may_take", "unlisted", HAZARDS["unlisted"])


def _otherwise_spelled(profile: Profile, name: str) -> Option | None:
    """Some programs take `--test-runner` for `--testRunner`."""
    if not name.startswith("--") or "-" not in name[2:]:
        return None
    first, *others = name[2:].split("-")
    return profile.options.get("--" + first + "".join(other[:1].upper() + other[1:] for other in others))
