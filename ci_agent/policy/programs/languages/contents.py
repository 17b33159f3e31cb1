"""What git prints of the files that it tracks, without a word that names them."""

import re
from dataclasses import replace
from functools import lru_cache

from ci_agent.policy.effects import Exclusion, Tracked
from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.exclusions import exclusions
from ci_agent.policy.programs.parsed import Operand, Parsed
from ci_agent.policy.programs.pathspecs import OBJECT_ID, WORK_TREE, ends_of_range, possible_texts
from ci_agent.policy.programs.profile import Prints
from ci_agent.policy.shell.printed_words import HASH
from ci_agent.policy.words import Selection

_PATCH = (
    *("-p", "-u", "--patch", "-U", "--unified", "--patch-with-raw", "--patch-with-stat", "--binary", "--check"),
    *("--word-diff", "--word-diff-regex", "--color-words", "--cc", "-c", "-m", "--dd", "--remerge-diff", "-L"),
)
_SUMMARY = (
    *("--stat", "--shortstat", "--numstat", "--dirstat", "--name-only", "--name-status", "--raw", "--summary"),
    *("--compact-summary", "--cumulative", "--dirstat-by-file", "-X", "-s", "--no-patch", "--quiet"),
)
_OF_CHANGES = frozenset(
    {"-p", "-u", "--patch", "-U", "--unified", "--stat", "--shortstat", "--numstat", "--summary", "--compact-summary"}
    | {"--color", "--no-color", "--word-diff", "--color-words", "-w", "-b", "--ignore-all-space"}
    | {
        "--ignore-space-change",
        "--ignore-blank-lines",
        "--exit-code",
        "--no-ext-diff",
        "--no-textconv",
        "--no-renames",
        "--minimal",
    }
    | {
        "--check",
        "--patience",
        "--histogram",
        "--diff-algorithm",
        "-W",
        "--function-context",
        "--no-prefix",
        "--diff-filter",
    }
)
"""With these alone, `git diff` prints of a file that changed nothing of another one."""
_FROM_TOP = re.compile(r":(?:/|\(top\))[^./:*?\[(].*")
_BY_INDEX = frozenset({"git diff", "git log", "git show", "git grep"})
_NOT_BY_INDEX = ("--untracked", "--no-index", "--no-exclude-standard", "--recurse-submodules", "--submodule")
_MAGIC = re.compile(r":[!^/(:]")
"""To git no path in the index, but a pattern for paths, unless there is a file of such a name."""
_HUNKS = ("-p", "--patch", "-i", "--interactive", "-v", "--verbose")
_NAMES = ("-l", "-L", "-q", "-c", "--files-with-matches", "--name-only", "--files-without-match", "--quiet", "--count")


def read_printed(parsed: Parsed, draft: Draft) -> None:
    """All that is tracked may be printed, unless the operands say which files are meant."""
    prints = parsed.profile.prints
    excluded = exclusions(parsed)
    if parsed.profile.name in _BY_INDEX and parsed.operands:
        _take_from_index(parsed, draft, excluded)
    if prints is not None and _prints(parsed, prints):
        candidates = _narrowing(parsed)
        if candidates is not None:
            named = tuple(operand.word for operand in candidates)
            changed = parsed.profile.name == "git diff" and _compares_with_index(parsed)
            draft.tracked.append(Tracked(unless_there=named, changed=changed, excluded=excluded))


def _take_from_index(parsed: Parsed, draft: Draft, excluded: tuple[Exclusion, ...]) -> None:
    """Of the folders that are named, what lies there and is not tracked is not read."""
    if parsed.has(*_NOT_BY_INDEX) or not all(found.option.name in parsed.profile.options for found in parsed.options):
        return
    draft.files = [
        use._replace(selection=_from_index(use.selection), excluded=excluded)
        if use.effect == "read" and use.recursive and use.selection.without == WORK_TREE.without
        else use
        for use in draft.files
    ]


@lru_cache(maxsize=64)
def _from_index(selection: Selection) -> Selection:
    return replace(selection, indexed=True, stored=True)


def _compares_with_index(parsed: Parsed) -> bool:
    """The files on the disk, no revision, and no other file is looked at to explain what is new in one."""
    excludes = [_MAGIC.match(operand.word.literal or "") for operand in _before(parsed)]
    return all(excludes) and all(found.option.name in _OF_CHANGES for found in parsed.options)


def _prints(parsed: Parsed, prints: Prints) -> bool:
    match prints:
        case "patch":
            return parsed.has(*_PATCH) or not parsed.surely(*_SUMMARY)
        case "patch_if_asked":
            return parsed.has(*_PATCH, "--diff-merges")
        case "hunks_if_asked":
            return parsed.has(*_HUNKS)
        case "lines":
            return not parsed.surely(*_NAMES)
        case "objects":
            return not parsed.surely("-e", "-t", "-s", "--batch-check")
        case "ids":
            return any(_may_be_id(operand, parsed) or _may_name_path(operand) for operand in parsed.operands[1:])
        case "all":
            return True


def _narrowing(parsed: Parsed) -> list[Operand] | None:
    """Operands that narrow it if they are paths and no revisions; None: some do for certain."""
    has_pattern = "pattern" in parsed.profile.operands.leading and not parsed.has(*parsed.profile.instead)
    operands = parsed.operands[1 if has_pattern else 0 :]
    end = parsed.dash_dash
    before = _before(parsed)[1 if has_pattern else 0 :]
    ids = [operand for operand in before if _may_be_id(operand, parsed)]
    if ids or parsed.has("--full-diff", "--stdin"):
        # A file of such a name is meant in place of the object, if git does not ask which.
        return ids if end is None and len(ids) == 1 and parsed.profile.prints != "ids" else []
    if end is not None and any(_may_name_path(operand) for operand in before):
        return []
    if end is not None and any(operand.at > end and _is_path(operand) for operand in operands):
        return None
    objects = list(map(_is_object, before))
    if any(map(_is_pattern, before)) or (objects and all(objects) and parsed.profile.prints != "patch_if_asked"):
        return None
    return [operand for operand in before if end is None and (operand.word.literal or ":")[0] != ":"]


def _before(parsed: Parsed) -> list[Operand]:
    """The operands in front of a `--`, which are revisions; without one, paths may be among them."""
    end = parsed.dash_dash
    return [operand for operand in parsed.operands if end is None or operand.at < end]


def _may_be_id(operand: Operand, parsed: Parsed) -> bool:
    """Whether it may name what a file holds, which is printed whatever paths follow; `git log` takes commits alone."""
    texts = [end for text in possible_texts(operand.word) or () for end in ends_of_range(text) if end != HASH]
    return parsed.profile.prints != "patch_if_asked" and any(map(OBJECT_ID.fullmatch, texts))


def _is_path(operand: Operand) -> bool:
    """Exclusions, and the top itself, leave the rest."""
    text = operand.word.prefix or operand.word.text
    return not text.startswith(":") or _FROM_TOP.fullmatch(text) is not None


def _may_name_path(operand: Operand) -> bool:
    """A revision of which only the beginning is known may be `REV:PATH`, which is printed whatever paths follow."""
    return possible_texts(operand.word) is None


def _is_pattern(operand: Operand) -> bool:
    """No revision holds these characters, but for a search in braces."""
    text = operand.word.literal or ""
    return any(char in text for char in "*?[") and "{" not in text and not text.startswith(":")


def _is_object(operand: Operand) -> bool:
    """`REV:PATH`, which is read by its name."""
    texts = operand.word.stand_ins or (operand.word.literal or "",)
    parted = [text.partition(":") for text in texts if not _MAGIC.match(text)]
    return len(parted) == len(texts) and all(bool(path) for _, _, path in parted)
