"""Which names of files a command prints, so that what `xargs` does with them can be known."""

from collections.abc import Sequence
from dataclasses import replace

from ci_agent.policy.effects import FileUse
from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.interpret import parse_levels
from ci_agent.policy.programs.languages.find import follows_links, selection_before
from ci_agent.policy.programs.options import Parsed
from ci_agent.policy.programs.pathspecs import WORK_TREE, use_pathspec
from ci_agent.policy.words import Selection, Word, literal_word

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


def names_printed(words: Sequence[Word], input_names: tuple[Word, ...] | None = None) -> tuple[Word, ...] | None:
    """The folders and files at or beneath which every line of the output is; None when it may print anything else.

    `input_names` is the same of the lines that the command reads.
    """
    levels = parse_levels(words)
    if not levels or any(level.problem for level in levels):
        return None
    last = levels[-1]
    name = last.profile.name
    if name == "find":
        return _found(last)
    if name in ("git ls-files", "git diff", "rg", "grep") and _prints_names(last):
        return _searched(last)
    if name in _FILTERS and input_names is not None and _passes_lines(last):
        return input_names
    return None


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
    printed = next((i for i in range(end, len(texts)) if texts[i] in _FIND_OUTPUT), len(texts))
    selection = selection_before(parsed, end, printed)
    return tuple(root._replace(selection=selection) for root in roots)


def _prints_names(parsed: Parsed) -> bool:
    flags = {
        "git ls-files": (),
        "git diff": ("--name-only",),
        "rg": ("-l", "--files-with-matches", "--files", "--files-without-match"),
        "grep": ("-l", "-L", "--files-with-matches", "--files-without-match"),
    }[parsed.profile.name]
    other = {"git ls-files": ("-s", "--stage", "-t", "-v", "-f", "--eol", "--format", "--debug", "-u", "--unmerged")}
    return (not flags or parsed.has(*flags)) and not parsed.has(*other.get(parsed.profile.name, ()), "--no-index")


def _searched(parsed: Parsed) -> tuple[Word, ...] | None:
    """Where a search looks: its operands, or the folder that it runs in."""
    if parsed.profile.name == "git ls-files" and parsed.operands:
        return _listed(parsed)
    if parsed.profile.name.startswith("git"):
        return (literal_word(".")._replace(selection=Selection(without=(".git",))),)
    first = 0 if parsed.has(*parsed.profile.instead) else 1
    return tuple(operand.word for operand in parsed.operands[first:]) or (literal_word("."),)


def _listed(parsed: Parsed) -> tuple[Word, ...] | None:
    """What `git ls-files PATHSPEC...` prints: what the pathspecs let through; None for names that may climb."""
    here = literal_word(".")
    draft = Draft()
    for operand in parsed.operands:
        text = operand.word.literal
        if text is not None and text.startswith(":") and not text.startswith((":!", ":^", ":(exclude)")):
            return None
        # A glob of the shell that matches nothing becomes a pattern of git.
        use_pathspec(draft, here if operand.word.kind == "glob" else operand.word, "read")
    uses = draft.files or [FileUse("read", here, recursive=True, selection=WORK_TREE)]
    if parsed.has("--full-name"):
        return tuple(here._replace(selection=replace(use.selection)) for use in uses)
    return tuple(use.path._replace(selection=use.selection) for use in uses)


def _passes_lines(parsed: Parsed) -> bool:
    files = parsed.operands[1:] if parsed.profile.name == "grep" else parsed.operands
    pattern_given = parsed.profile.name == "grep" and parsed.has(*parsed.profile.instead) and bool(parsed.operands)
    return not files and not pattern_given and not parsed.has(*_FILTERS[parsed.profile.name])
