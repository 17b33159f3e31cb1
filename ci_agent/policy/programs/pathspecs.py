"""Paths as git takes them: within a revision, in its index, by patterns of its own."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ci_agent.policy.effects import FileEffect, Tracked
from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.shell.printed_words import HASH
from ci_agent.policy.words import Selection, Word, literal_word

WORK_TREE: Final = Selection(without=(".git",))
"""What git itself takes of a folder."""

UNTRACKED: Final = Selection(without=(".git",), untracked=True)
ADDABLE: Final = Selection(without=(".git",), untracked=True, unignored=True)
"""Of that, what it does not track; and what `git add` would take in."""

_MAGIC = re.compile(r":(?:\((?P<long>[^)]*)\)|(?P<short>[!^/]*):?)(?P<rest>.*)", re.DOTALL)
_PLAIN_MAGIC = frozenset({"", "top", "literal", "glob"})
OBJECT_ID: Final = re.compile(r"(?:.*-g)?[0-9A-Fa-f]{4,64}(?:\^\{(?!commit\})\w*\})*")
"""What may be the beginning of any object's name."""
_RANGE = re.compile(r"(?<!\.)\.\.(?!\.)")
_GLOB = re.compile(r"[*?\[\\]")
_MAX_COLONS = 8


def use_revision(draft: Draft, word: Word, at: int, dash_dash: int | None) -> None:
    """`REV:PATH` and `:PATH` read the path; without a `--` behind it, git takes a word for a path too."""
    behind_colons = {text.partition(":")[2] for text in word.stand_ins if ":" in text}
    if len(behind_colons) > 1 or any(HASH in path for path in behind_colons):
        draft.doubt(f"which path in a revision {word.text} names is not known")
    if dash_dash is None and _begins_revision(word):
        draft.doubt(f"{word.text} may be a file to git: put `--` behind it")
    for choice in _values(word, before_dashes=dash_dash is None or at < dash_dash):
        before_dashes = dash_dash is not None and at < dash_dash
        known_revision = before_dashes and (choice.literal is not None or _begins_revision(choice))
        if not known_revision and not (word.stand_ins and choice.literal == HASH):
            known = len(draft.files)
            use_pathspec(draft, choice, "read")
            if dash_dash is None:
                draft.files[known:] = [use._replace(if_there=True) for use in draft.files[known:]]
        if dash_dash is None or at < dash_dash:
            _use_paths_in(draft, choice, at)


def _begins_revision(word: Word) -> bool:
    """Its beginning is known, and no option, no exclusion and no path in a revision. What follows may name such a path:
    where the command prints what is there, it counts as printing any file that is tracked."""
    known = word.kind == "unknown" and not (word.splits or word.stand_ins or word.beneath)
    return known and word.prefix[:1].isalnum() and ":" not in word.prefix


def _values(word: Word, *, before_dashes: bool) -> Sequence[Word]:
    """What the word may be. Where it names a commit, git takes no file of that name instead."""
    if not (word.stand_ins and before_dashes):
        return word.choices or (word,)
    # To git, `~1` is no home folder.
    return [literal_word("./" * text.startswith("~") + text, word.span) for text in word.stand_ins if text]


def _use_paths_in(draft: Draft, word: Word, at: int) -> None:
    """A colon may belong to the revision: what stands behind each of them is taken for the path."""
    text = word.literal
    if text is None or text.startswith(":/"):
        return
    if text.count(":") > _MAX_COLONS:
        draft.hazard(at, "has too many colons to tell which path it names")
    for path in paths_behind_colons(text):
        draft.use("read", literal_word(path or ".", word.span), recursive=bool(path), selection=WORK_TREE)
    for revision in ends_of_range(text):
        tree, colon, path = revision.partition(":")
        if colon and OBJECT_ID.fullmatch(tree):
            # Where it is the id of a folder, the path is one within that.
            name = path.rstrip("/").rpartition("/")[2].casefold()
            draft.tracked.append(Tracked(endings=() if name in ("", ".", "..") else (name,)))


def ends_of_range(text: str) -> list[str]:
    """`a..b` names two revisions, of which one may be left out; `^a` is `a` taken away. Around `...` stand commits."""
    return _RANGE.split(text.removeprefix("^"))


def possible_texts(word: Word) -> Sequence[str] | None:
    """All that git may get for the word, but for the commits that a command prints; None: nobody knows."""
    if word.stand_ins:
        return [text for text in word.stand_ins if text]
    words = word.choices or (word,)
    return [each.text for each in words] if all(each.literal is not None for each in words) else None


def paths_behind_colons(text: str) -> Iterator[str]:
    for _ in range(min(text.count(":"), _MAX_COLONS)):
        text = text.partition(":")[2]
        yield text


def use_pathspecs(draft: Draft, words: Sequence[Word], effect: FileEffect) -> None:
    """Exclusions alone mean everything else."""
    known = len(draft.files)
    for word in words:
        use_pathspec(draft, word, effect)
    if words and len(draft.files) == known:
        draft.use(effect, literal_word("."), effect == "read", selection=WORK_TREE)


def use_pathspec(draft: Draft, word: Word, effect: FileEffect) -> None:
    """Patterns are read by their folder and ending, `*` matches slashes; magic that is not known means any file."""
    text = word.literal
    if text is None:
        for choice in word.choices or (word,):
            draft.use(effect, choice, effect == "read", selection=WORK_TREE)
        return
    is_literal = False
    known = len(draft.files)
    from_top = False
    if text.startswith(":"):
        match = _MAGIC.fullmatch(text)
        names = frozenset((match["long"] or "").split(",")) if match else frozenset({"?"})
        if match is None or "exclude" in names or not {"!", "^"}.isdisjoint(match["short"] or ""):
            return
        is_literal = "literal" in names
        from_top = "top" in names or "/" in (match["short"] or "")
        text = match["rest"] if names <= _PLAIN_MAGIC else "*"
    if not is_literal and _GLOB.search(text):
        _use_pattern(draft, text, word, effect)
    else:
        draft.use(effect, literal_word(text or ".", word.span), effect == "read", selection=WORK_TREE)
    if from_top:
        draft.files[known:] = [use._replace(from_top=True) for use in draft.files[known:]]


def _use_pattern(draft: Draft, pattern: str, word: Word, effect: FileEffect) -> None:
    ending = _GLOB.split(pattern)[-1].casefold() if "[" not in pattern and "\\" not in pattern else ""
    ending = ending.rpartition("/")[2]
    folder = _GLOB.split(pattern)[0].rpartition("/")[0] or ("/" if pattern.startswith("/") else ".")
    selection = Selection(endings=(ending,) if ending else (), without=(".git",))
    draft.use(effect, literal_word(folder, word.span), recursive=True, selection=selection)
