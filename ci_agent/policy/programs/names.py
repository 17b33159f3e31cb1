"""Which names of files a command prints, so that what `xargs` does with them can be known."""

import re
from collections.abc import Sequence
from dataclasses import replace

from ci_agent.policy.effects import FileUse
from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.languages.find import follows_links
from ci_agent.policy.programs.languages.find_tests import selections
from ci_agent.policy.programs.levels import parse_levels
from ci_agent.policy.programs.parsed import Operand, Parsed
from ci_agent.policy.programs.pathspecs import WORK_TREE, use_pathspec
from ci_agent.policy.programs.selections import selection_for
from ci_agent.policy.words import EVERYTHING, Selection, Word, literal_word

_FIND_OTHER_OUTPUT = frozenset({"-printf", "-ls", "-exec", "-execdir", "-ok", "-okdir", "-fprintf", "-fls"})
_FIND_OUTPUT = frozenset({"-print", "-print0"})
_FILTERS = {
    "head": frozenset({"-c", "--bytes"}),
    "tail": frozenset({"-c", "--bytes", "-f", "-F", "--follow"}),
    "sort": frozenset({"-o", "--output", "--files0-from"}),
    "uniq": frozenset({"-c", "--count", "--group", "-D", "--all-repeated"}),
    "grep": frozenset({"-o", "-c", "-n", "-b", "-H", "-r", "-R", "-f", "--only-matching", "--count", "--color"}),
}
"""Programs that pass on whole lines of their input, and the options with which they do something else."""

_NUL = frozenset({"-z", "-Z", "-0", "-print0", "--null", "--print0", "-fprint0"})
_NUL_CLUSTER = re.compile(r"-[A-Za-z]*[zZ0][A-Za-z0-9]*")
_OF_NAMES = frozenset(
    {"--name-only", "--diff-filter", "--cached", "--staged", "--merge-base", "--relative", "-z", "-r", "-w", "-b"}
    | {"-M", "-C", "--find-renames", "--find-copies", "--no-renames", "--no-ext-diff", "--ignore-submodules"}
)
"""With others, `git diff --name-only` may print changes as well."""
_OTHER_OUTPUT = ("--no-index", "--json", "-c", "--count", "--count-matches", "--path-separator", "--color", "--colors")
_GIT_LOOKS_HERE = frozenset({"--no-pager", "-P", "--no-optional-locks"})
_TRACKED = Selection(without=(".git",), tracked=True)
_OF_INDEX = frozenset(
    {"-c", "--cached", "-m", "--modified", "-d", "--deleted", "-z", "--full-name", "--deduplicate", "--error-unmatch"}
)
_RANGE = re.compile(r"\.\.|\^[!@-]|:")
"""Of the words of `git diff`: two commits, or something else than one."""
_PLAIN_PATH = re.compile(r"(?!.*\*\*)[A-Za-z0-9_./][A-Za-z0-9_./*-]*")
_ENDING = re.compile(r"\\\.(?:(?P<one>[A-Za-z0-9_]+)|\((?P<several>[A-Za-z0-9_]+(?:\|[A-Za-z0-9_]+)+)\))\$")
"""`\\.py$`, and in extended expressions `\\.(js|ts)$`."""


def names_printed(words: Sequence[Word], input_names: tuple[Word, ...] | None = None) -> tuple[Word, ...] | None:
    """The folders and files at or beneath which every line of the output is; None when it may print anything else.

    `input_names` is the same of the lines that the command reads.
    """
    levels = parse_levels(words)
    if not levels or any(level.problem for level in levels) or _is_elsewhere(levels):
        return None
    last = levels[-1]
    name = last.profile.name
    if name == "find":
        return _found(last)
    if name == "ls":
        return _listed_as_given(last)
    if name in ("printf", "echo"):
        return _printed_as_given(last)
    if name in ("git ls-files", "git diff", "rg", "grep") and _prints_names(last):
        return _searched(last)
    if name in _FILTERS and input_names is not None and _passes_lines(last):
        return _ending_so(input_names, last) if name == "grep" else input_names
    return None


def ends_names_by_nul(words: Sequence[Word]) -> bool:
    """Whether the command may print names that something else than a line break ends."""
    texts = {word.literal for word in words}
    return not _NUL.isdisjoint(texts) or any(_NUL_CLUSTER.fullmatch(text or "") for text in texts)


def _is_elsewhere(levels: Sequence[Parsed]) -> bool:
    """Git is told to look at another repository, or in another way."""
    return any(
        found.option.name not in _GIT_LOOKS_HERE
        for level in levels
        if level.profile.name == "git"
        for found in level.options
    )


def _listed_as_given(parsed: Parsed) -> tuple[Word, ...] | None:
    """`ls FILE...` prints files as they are given; None without any, and where it prints more than names."""
    if not parsed.operands or not all(found.option.name in ("-1", "-t", "-r", "-S") for found in parsed.options):
        return None
    listed = Selection(listed=True)
    return tuple(operand.word._replace(selection=listed) for operand in parsed.operands)


def _printed_as_given(parsed: Parsed) -> tuple[Word, ...] | None:
    """`printf '%s\\n' FILE...` and `echo FILE` print their operands, a line each."""
    first = parsed.profile.name == "printf"
    files = [operand.word for operand in parsed.operands[first:]]
    if first:
        as_lines = bool(files) and parsed.operands[0].word.literal == "%s\\n"
    else:
        as_lines = len(files) == 1 and files[0].literal is not None
    given = as_lines and not parsed.options and parsed.dash_dash is None and all(map(_is_plain_path, files))
    return tuple(files) if given else None


def _is_plain_path(word: Word) -> bool:
    """Whether it is a path, and nothing else to any program: neither an option nor a variable, an address or a list."""
    texts = [each.text for each in word.choices or (word,) if each.kind != "unknown"]
    return bool(texts) and all(_PLAIN_PATH.fullmatch(text) for text in texts)


def _found(parsed: Parsed) -> tuple[Word, ...] | None:
    words = [operand.word for operand in parsed.operands]
    texts = [word.literal for word in words]
    if not _FIND_OTHER_OUTPUT.isdisjoint(texts):
        return None
    start = next((i for i, text in enumerate(texts) if text not in ("-H", "-L", "-P")), len(texts))
    end = next((i for i in range(start, len(texts)) if (texts[i] or "")[:1] in ("-", "(", "!")), len(texts))
    roots = tuple(words[start:end]) or (literal_word("."),)
    if follows_links(texts) or any(root.kind == "unknown" for root in roots):
        return None
    printed = [i for i in range(end, len(texts)) if texts[i] in _FIND_OUTPUT]
    reaching, passed = selections(parsed, end)
    selection = EVERYTHING if len(printed) > 1 else reaching[printed[0]] if printed else passed
    return tuple(root._replace(selection=selection) for root in roots)


def _ending_so(names: tuple[Word, ...], parsed: Parsed) -> tuple[Word, ...]:
    """Of the names, those that end in one of what `grep '\\.py$'` asks for."""
    pattern = parsed.operands[0].word.literal if parsed.operands else None
    asked = {found.option.name for found in parsed.options}
    match = _ENDING.fullmatch(pattern or "") if asked <= {"-E", "--extended-regexp"} else None
    if match is None or (match["several"] is not None and not asked):
        return names
    endings = tuple(f".{ending}".casefold() for ending in (match["one"] or match["several"]).split("|"))
    return tuple(word._replace(selection=replace(word.selection, endings=endings)) for word in names)


def _changed(parsed: Parsed) -> tuple[Word, ...] | None:
    """What `git diff --name-only` prints: names from the top, wherever the paths are relative to."""
    end = parsed.dash_dash if parsed.dash_dash is not None else len(parsed.operands) + len(parsed.options) + 1
    named = _listed(parsed, [operand for operand in parsed.operands if operand.at > end])
    gone = not _names_are_there(parsed)
    here = literal_word(".")
    indexed = not gone and _compares_index(parsed)
    return named and tuple(
        here._replace(selection=replace(word.selection, gone=gone, indexed=indexed)) for word in named
    )


def _names_are_there(parsed: Parsed) -> bool:
    """Whether `git diff --name-only` names only what the index or the disk holds: no file that is gone since.

    Against the index, every name is in it. Against another revision, a deleted file is named too, unless
    `--diff-filter` leaves it out; then each name is in what is compared with: the files, the index, or HEAD.
    """
    end = parsed.dash_dash
    compared = [operand.word for operand in parsed.operands if end is None or operand.at < end]
    if not compared and not parsed.has("--cached", "--staged"):
        return True
    filters = [value.literal or "D" for _, value in parsed.values("--diff-filter")]
    leaves_out = (
        bool(filters)
        and "*" not in filters[-1]
        and ("d" in filters[-1] or ("D" not in filters[-1] and filters[-1].isupper()))
    )
    return leaves_out and len(compared) <= 1 and all(map(_ends_here, compared))


def _compares_index(parsed: Parsed) -> bool:
    """Whether no commit is what the changes lead to: it may hold a file that is no longer in the index."""
    return not any(
        _RANGE.search(text)
        for operand in parsed.operands
        for text in operand.word.stand_ins or (operand.word.literal or "..",)
    )


def _ends_here(revision: Word) -> bool:
    texts = revision.stand_ins or ((revision.literal or revision.text),)
    ends = [text.partition("..")[2].removeprefix(".") for text in texts if ".." in text]
    return all(end in ("", "HEAD", 'HEAD"') for end in ends)


def _prints_names(parsed: Parsed) -> bool:
    flags = {
        "git ls-files": (),
        "git diff": ("--name-only",),
        "rg": ("-l", "--files-with-matches", "--files", "--files-without-match"),
        "grep": ("-l", "-L", "--files-with-matches", "--files-without-match"),
    }[parsed.profile.name]
    other = {"git ls-files": ("-s", "--stage", "-t", "-v", "-f", "--eol", "--format", "--debug", "-u", "--unmerged")}
    only_names = parsed.profile.name != "git diff" or all(each.option.name in _OF_NAMES for each in parsed.options)
    other_output = (*other.get(parsed.profile.name, ()), *_OTHER_OUTPUT)
    return only_names and (not flags or parsed.surely(*flags)) and not parsed.has(*other_output)


def _searched(parsed: Parsed) -> tuple[Word, ...] | None:
    """Where a search looks: its operands, or the folder that it runs in."""
    if parsed.profile.name == "git ls-files" and parsed.operands:
        return _listed(parsed, parsed.operands)
    if parsed.profile.name == "git diff":
        return _changed(parsed)
    if parsed.profile.name.startswith("git"):
        return (literal_word(".")._replace(selection=replace(_TRACKED, indexed=_asks_index(parsed))),)
    first = 0 if parsed.has(*parsed.profile.instead) else 1
    roots = tuple(operand.word for operand in parsed.operands[first:]) or (literal_word("."),)
    selection = selection_for(parsed)
    return tuple(root._replace(selection=selection) for root in roots)


def _listed(parsed: Parsed, pathspecs: Sequence[Operand]) -> tuple[Word, ...] | None:
    """What `git ls-files PATHSPEC...` prints: what the pathspecs let through; None for names that may climb."""
    here = literal_word(".")
    draft = Draft()
    for operand in pathspecs:
        text = operand.word.literal
        if text is not None and text.startswith(":") and not text.startswith((":!", ":^", ":(exclude)")):
            return None
        # A glob of the shell that matches nothing becomes a pattern of git.
        use_pathspec(draft, here if operand.word.kind == "glob" else operand.word, "read")
    uses = draft.files or [FileUse("read", here, recursive=True, selection=WORK_TREE)]
    paths = [here if parsed.has("--full-name") else use.path for use in uses]
    return tuple(
        path._replace(selection=replace(use.selection, tracked=True, indexed=_asks_index(parsed)))
        for path, use in zip(paths, uses, strict=True)
    )


def _asks_index(parsed: Parsed) -> bool:
    """Whether `git ls-files` prints only what is in the index."""
    return parsed.profile.name == "git ls-files" and all(each.option.name in _OF_INDEX for each in parsed.options)


def _passes_lines(parsed: Parsed) -> bool:
    files = parsed.operands[1:] if parsed.profile.name == "grep" else parsed.operands
    pattern_given = parsed.profile.name == "grep" and parsed.has(*parsed.profile.instead) and bool(parsed.operands)
    return not files and not pattern_given and not parsed.has(*_FILTERS[parsed.profile.name])
