"""git subcommands whose operands depend on each other."""

import re

from ci_agent.policy.effects import Tracked, UrlUse
from ci_agent.policy.programs.draft import Draft, looks_outside
from ci_agent.policy.programs.languages.builds import read_behind
from ci_agent.policy.programs.packages import use_repository_name
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.programs.pathspecs import OBJECT_ID, WORK_TREE, paths_behind_colons, possible_texts, use_pathspecs
from ci_agent.policy.shell.printed_words import HASH
from ci_agent.policy.words import Word, literal_word

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_RUNS_A_PROGRAM = re.compile(r"[A-Za-z0-9]+::")
_IS_ELSEWHERE = re.compile(r"[^/]*:")
_SCP_LIKE = re.compile(r"([^/:]+):(?!:)")
_PATTERN = re.compile(r"[*?\[]")
_TO_A_REF = re.compile(r"[^:]*:(?=refs/(?:heads|tags)/)")
"""What is sent stands in front, whatever follows: no repository has files in a folder of this name."""


def read_config(parsed: Parsed, draft: Draft) -> None:
    """`git config NAME` and `--get` read, `NAME VALUE` sets."""
    operands = parsed.operands
    if not operands:
        return
    first = operands[0]
    if first.word.literal is None:
        draft.doubt(f"the setting that {first.word.text} names is not known")
    asks = parsed.has("--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color", "--get-colorbool")
    if first.word.literal in ("get", "list") or asks or (len(operands) == 1 and "." in first.word.text):
        return
    draft.hazard(first.at, "changes git's configuration")


def read_remote(parsed: Parsed, draft: Draft) -> None:
    """`git remote`, `show` and `get-url` read, all others change."""
    if parsed.operands and parsed.operands[0].word.literal not in ("show", "get-url"):
        draft.hazard(parsed.operands[0].at, "changes git's configuration")
        for operand in parsed.operands[2:]:
            use_repository(draft, operand.word, operand.at)


_SIGNATURE = re.compile(r"%[-+ ]?G|%\(\*?signature")


def read_show(parsed: Parsed, draft: Draft) -> None:
    """Formats may ask for signatures, which another program checks; `-L` names a file."""
    for index, value in parsed.values("--format", "--pretty"):
        if _SIGNATURE.search(value.text) or value.literal is None:
            draft.hazard(index, "runs the program that the configuration names to check signatures")
    for index, value in parsed.values("-L"):
        if value.literal is None or value.text.count(":") > 4:
            draft.doubt(f"the file that -L {value.text} names is not known")
            draft.hazard(index, "may read any file")
        for path in paths_behind_colons(value.text):
            draft.use("read", literal_word(path or ".", value.span))


def read_search(parsed: Parsed, draft: Draft) -> None:
    """`git grep` looks at what git knows, unless it is told otherwise; then at all beneath the folder."""
    read_diff(parsed, draft)
    pattern = 0 if parsed.has(*parsed.profile.instead) else 1
    if parsed.has("--untracked", "--no-index") and len(parsed.operands) <= pattern:
        draft.use("read", literal_word("."), recursive=True, selection=WORK_TREE)


def read_remove(parsed: Parsed, draft: Draft) -> None:
    """`git rm` takes patterns of git's own."""
    words = [operand.word for operand in parsed.operands]
    if parsed.surely("--cached"):
        # What is no longer tracked may be printed, as any file of the past.
        use_pathspecs(draft, words, "read")
        # Nor does a rule bind it any more that forbids changing what is tracked.
        draft.tracked.append(Tracked("write", words[0] if len(words) == 1 and _is_plain(words[0]) else None))
    elif not parsed.dry:
        use_pathspecs(draft, words, "delete")


def _is_plain(word: Word) -> bool:
    return word.literal is not None and word.text[:1] != ":" and not any(char in word.text for char in "*?[\\")


def read_diff(parsed: Parsed, draft: Draft) -> None:
    """`--no-index` compares any two files, not revisions."""
    read_show(parsed, draft)
    if parsed.has("--no-index"):
        searches = "pattern" in parsed.profile.operands.leading and not parsed.has(*parsed.profile.instead)
        for operand in parsed.operands[1 if searches else 0 :]:
            draft.use("read", operand.word, recursive=True)


def read_format_patch(parsed: Parsed, draft: Draft) -> None:
    """Without a folder the patches are written to the present one."""
    read_show(parsed, draft)
    if not (parsed.surely("--stdout") or parsed.has("-o", "--output-directory")):
        draft.use("write", literal_word("."))


def read_repository(parsed: Parsed, draft: Draft) -> None:
    """The first operand is a remote's name, a URL or a folder; the others name branches."""
    repositories = parsed.operands if parsed.has("-m", "--multiple") else parsed.operands[:1]
    for operand in repositories:
        use_repository(draft, operand.word, operand.at)
    for index, value in parsed.values("--repo", "--bundle-uri"):
        use_repository(draft, value, index)


def read_push(parsed: Parsed, draft: Draft) -> None:
    """To a folder, or a name for what is no commit: from there all can be printed."""
    read_repository(parsed, draft)
    words = [operand.word for operand in parsed.operands]
    folders = words[:1] + [value for _, value in parsed.values("--repo")]
    draft.tracked += [Tracked(if_there=word) for word in folders if word.literal not in (None, ".")]
    if any(map(_may_send_contents, words[1:])):
        draft.tracked.append(Tracked())


def _may_send_contents(refspec: Word) -> bool:
    """Whether what it names may be a file or a folder: what stands in front of the last colon tells."""
    texts = possible_texts(refspec)
    if texts is None and not refspec.splits and (named := _TO_A_REF.match(refspec.prefix)):
        texts = [named[0]]
    sources = [text.lstrip("+").rpartition(":")[0] for text in texts or ()]
    return texts is None or any(":" in source or _is_id(source) for source in sources)


def _is_id(text: str) -> bool:
    return text != HASH and OBJECT_ID.fullmatch(text) is not None


def read_clone(parsed: Parsed, draft: Draft) -> None:
    read_repository(parsed, draft)
    words = [operand.word for operand in parsed.operands]
    for word in words[:1]:
        if word.literal is not None and not (_IS_ELSEWHERE.match(word.text) or looks_outside(word.text)):
            # A repository of this machine, whose files come to lie under other names.
            draft.use("read", word, recursive=True, selection=WORK_TREE)
    if len(words) > 1:
        draft.use("write", words[1])
    elif words and words[0].literal:
        _write_clone(draft, words[0])


def _write_clone(draft: Draft, repository: Word) -> None:
    name = re.split(r"[/:]", repository.text.rstrip("/"))[-1].removesuffix(".git")
    draft.use("write", literal_word(name or ".", repository.span))


def read_gh_assets(parsed: Parsed, draft: Draft) -> None:
    """`gh release create TAG FILE...`: what stands behind a `#` is the name under which the file is shown."""
    for operand in parsed.operands[1:]:
        for word in operand.word.choices or (operand.word,):
            file, label, _ = word.text.partition("#")
            draft.use("read", word)
            if label:
                draft.use("read", literal_word(file, word.span))
            # A pattern that the shell did not replace, gh may.
            if (word.literal is None and label) or (word.literal is not None and _PATTERN.search(file)):
                draft.doubt(f"which file {word.text} means is not known")


def read_gh_clone(parsed: Parsed, draft: Draft) -> None:
    """`gh repo clone NAME FOLDER -- OPTION...`: git gets what stands behind the `--`."""
    read_gh_repository(parsed, draft)
    words = [operand.word for operand in parsed.operands]
    if words and (len(words) == 1 or words[1].literal == "--"):
        _write_clone(draft, words[0])
    read_behind(parsed, draft, "git clone")


def read_gh_repository(parsed: Parsed, draft: Draft) -> None:
    for operand in parsed.operands[:1]:
        use_repository_name(draft, operand.word)


def use_repository(draft: Draft, word: Word, index: int) -> None:
    text = word.literal
    if text is None:
        draft.doubt(f"the repository that {word.text} names is not known")
    elif _SCHEME.match(text):
        draft.urls.append(UrlUse(word))
    elif _RUNS_A_PROGRAM.match(text):
        draft.hazard(index, "runs a program to reach the repository")
    elif scp := _SCP_LIKE.match(text):
        draft.urls.append(UrlUse(literal_word(f"ssh://{scp[1].rpartition('@')[2]}/", word.span)))
    elif looks_outside(text):
        draft.use("read", word, recursive=True)
