"""What git changes in a working tree, or takes in from it, without a word that names the files.

Which files a commit holds is not known here, so whatever moves to another commit, or merges one, may change any file
that is tracked.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from ci_agent.policy.effects import FileEffect, FileUse, Tracked
from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.languages.git import read_repository
from ci_agent.policy.programs.parsed import Operand, Parsed
from ci_agent.policy.programs.pathspecs import ADDABLE, UNTRACKED, use_pathspecs
from ci_agent.policy.words import EVERYTHING, Selection, Word, literal_word

_NO_BRANCH: Final = re.compile(r"(?!.*\.\.\.)(?:\.|/|.*/$)")
_FORCED: Final = ("-f", "--force", "--discard-changes")


def read_checkout(parsed: Parsed, draft: Draft) -> None:
    """Operands are files to restore; in front of a `--` they are revisions. The first may be a branch."""
    dash_dash = -1 if parsed.dash_dash is None else parsed.dash_dash
    words = [operand.word for operand in parsed.operands if operand.at > dash_dash]
    if parsed.dash_dash is None and words and words[0].literal in ("HEAD", "@"):
        # Git never takes it for a file: where both are there, it asks which is meant.
        words = words[1:]
    names_files_alone = parsed.dash_dash is not None and len(words) == len(parsed.operands)
    by_index = names_files_alone or _is_path(parsed.operands[:1])
    _restore(draft, words, changed=by_index)
    if words and not by_index:
        _overwrite(draft, words)
    if not _is_path(parsed.operands[:1]) and _moves(parsed):
        _move(parsed, draft)


def _is_path(operands: Sequence[Operand]) -> bool:
    """Git takes a word for a branch before it takes it for a file, unless no branch can have such a name."""
    return any(_NO_BRANCH.match(operand.word.literal or "") is not None for operand in operands)


def read_switch(parsed: Parsed, draft: Draft) -> None:
    """As `checkout`, of branches alone."""
    if _moves(parsed):
        _move(parsed, draft)


def _move(parsed: Parsed, draft: Draft) -> None:
    draft.tracked.append(Tracked("write"))
    if parsed.has(*_FORCED):
        _overwrite(draft, ())


def _overwrite(draft: Draft, words: Sequence[Word]) -> None:
    """What the commit holds takes the place of files that are not tracked now."""
    found = Draft()
    _use_aside(found, words, ("write",), ADDABLE)
    draft.untracked += [use._replace(in_place=True) for use in found.untracked]


def _moves(parsed: Parsed) -> bool:
    """Whether another commit is checked out, or changes are thrown away, rather than files restored."""
    end = parsed.dash_dash
    if end is not None and any(operand.at > end for operand in parsed.operands):
        return False
    if parsed.has("--orphan", "--track", "-t", *_FORCED):
        return True
    if parsed.has("-p", "--patch") or not parsed.operands:
        return parsed.has("-p", "--patch", "--pathspec-from-file")
    return len(parsed.operands) == 1 and parsed.operands[0].word.literal not in ("HEAD", "@")


def read_restore(parsed: Parsed, draft: Draft) -> None:
    """With `--staged` alone only the index changes."""
    if parsed.surely("-S", "--staged") and not parsed.has("-W", "--worktree"):
        return
    by_index = not parsed.has("-S", "--staged", "-s", "--source")
    words = [operand.word for operand in parsed.operands]
    _restore(draft, words, changed=by_index)
    if words and not by_index:
        _overwrite(draft, words)
    if parsed.has("--pathspec-from-file") or not parsed.operands:
        draft.tracked.append(Tracked("write"))


def _restore(draft: Draft, words: Sequence[Word], *, changed: bool) -> None:
    """`changed`: as the index has them, so that a file which did not change stays as it is."""
    known = len(draft.files)
    use_pathspecs(draft, words, "write")
    for use in draft.files[known:]:
        beneath = None if use.from_top else use.path
        draft.tracked.append(Tracked("write", beneath, changed=changed))


def read_reset(parsed: Parsed, draft: Draft) -> None:
    """Alone, and with `--soft`, it leaves the files as they are."""
    if parsed.has("--hard", "--merge", "--keep"):
        draft.tracked.append(Tracked("write"))
        _overwrite(draft, ())


def read_merge(parsed: Parsed, draft: Draft) -> None:
    """`merge`, `rebase`, `cherry-pick`, `revert`."""
    if not parsed.surely("--quit", "--show-current-patch"):
        draft.tracked.append(Tracked("write"))


def read_pull(parsed: Parsed, draft: Draft) -> None:
    read_repository(parsed, draft)
    if not parsed.surely("--dry-run"):
        draft.tracked.append(Tracked("write"))


def read_move(parsed: Parsed, draft: Draft) -> None:
    """Commands that check out another commit whatever their operands are (`bisect`, `stash pop`)."""
    if not parsed.surely("--no-checkout"):
        draft.tracked.append(Tracked("write"))


def read_stash(parsed: Parsed, draft: Draft) -> None:
    """What differs from the last commit is put away; with `-u` and `-a` what git does not track as well."""
    words = [operand.word for operand in parsed.operands] if parsed.profile.name == "git stash push" else []
    if parsed.has("--pathspec-from-file"):
        words = []
    aside: Selection | None = None
    if parsed.has("-a", "--all"):
        aside = UNTRACKED
    elif parsed.has("-u", "--include-untracked"):
        aside = ADDABLE
    draft.tracked += [Tracked("write", word) for word in _plain(words)] or [Tracked("write")]
    if aside is not None:
        _use_aside(draft, words, ("read", "delete"), aside)


def _plain(words: Sequence[Word]) -> Sequence[Word]:
    """None, where one is a pattern: then any file may be meant."""
    plain = all(
        word.literal is not None and word.text[:1] != ":" and not set(word.text) & set("*?[\\") for word in words
    )
    return words if plain else ()


def read_clean(parsed: Parsed, draft: Draft) -> None:
    """It deletes what is beneath the operands; without any, what git does not know anywhere in the repository."""
    if parsed.surely("-n", "--dry-run"):
        return
    use_pathspecs(draft, [operand.word for operand in parsed.operands], "delete")
    aside = UNTRACKED if parsed.has("-x", "-X") else ADDABLE
    draft.files = [use._replace(selection=replace(aside, endings=use.selection.endings)) for use in draft.files]
    # Forced twice, it deletes whole repositories beneath.
    forced_twice = sum(found.option.name in ("-f", "--force") for found in parsed.options) > 1
    if forced_twice:
        draft.files = [use._replace(selection=EVERYTHING) for use in draft.files]
    if not parsed.operands and (forced_twice or parsed.has("-x", "-X")):
        draft.use("write", literal_word("."))
        draft.untracked.append(FileUse("delete", literal_word("."), recursive=True, selection=UNTRACKED))
    elif not parsed.operands:
        draft.use("delete", literal_word("."), recursive=True, selection=ADDABLE)


def read_apply(parsed: Parsed, draft: Draft) -> None:
    """What the patch names is changed."""
    only_tells = parsed.surely("--check", "--stat", "--numstat", "--summary", "--cached", "--abort", "--quit")
    if not only_tells or parsed.has("--apply"):
        draft.use("write", literal_word("."), recursive=True)
    if not only_tells or parsed.has("--apply", "--abort"):
        # `am` works from the top.
        draft.tracked.append(Tracked("write"))


def read_add(parsed: Parsed, draft: Draft) -> None:
    """What git does not track yet, and what nothing ignores, is read: it can be printed from then on."""
    if parsed.surely("-n", "--dry-run") or parsed.surely("-u", "--update"):
        return
    whole = parsed.has("-A", "--all", "-i", "--interactive", "--no-ignore-removal", "--pathspec-from-file")
    if parsed.operands or whole:
        aside = UNTRACKED if parsed.has("-f", "--force") else ADDABLE
        _use_aside(draft, [operand.word for operand in parsed.operands], ("read",), aside)


def _use_aside(draft: Draft, words: Sequence[Word], effects: Iterable[FileEffect], aside: Selection) -> None:
    """Of what is beneath the pathspecs, or in the whole working tree, that which git does not track."""
    for effect in effects:
        found = Draft()
        if words:
            use_pathspecs(found, words, effect)
        else:
            found.use(effect, literal_word("."))
            found.files = [use._replace(from_top=True) for use in found.files]
        draft.untracked += [
            use._replace(recursive=True, selection=replace(aside, endings=use.selection.endings)) for use in found.files
        ]


def read_submodules(_parsed: Parsed, draft: Draft) -> None:
    """Each is a working tree of its own, in which another commit is checked out."""
    draft.tracked.append(Tracked("write", submodules=True))
