"""Shells, and the builtins that run text as commands."""

from ci_agent.policy.programs.draft import Draft, is_standard_input, use_anything
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.words import Word, literal_word

_ASKS = ("--help", "--version")
_KEPT_OPTIONS = frozenset(
    """
    -c -e -u -v -x -C -E -T -b -h -l -m -n -p -r --login --noediting --noprofile --norc --posix --restricted --verbose
    """.split()  # noqa: SIM905  # reads better than twenty quoted names
)
"""Options with which a shell reads a script as it does without."""
_KEPT_SETTINGS = frozenset(
    ("errexit", "errtrace", "functrace", "noclobber", "nounset", "pipefail", "posix", "verbose", "xtrace")
)


def read_shell(parsed: Parsed, draft: Draft) -> None:
    """`sh -c SCRIPT ARGUMENT...`, `sh FILE ARGUMENT...`."""
    words = [operand.word for operand in parsed.operands]
    for word in words[1:]:
        use_anything(draft, word)
    if parsed.has("-c"):
        if words:
            _doubt_options(parsed, draft)
            draft.script(words[0])
        return
    if not words or parsed.has("-s") or is_standard_input(words[0]):
        if not parsed.has("--version", "--help"):
            draft.doubt(f"the commands that {parsed.profile.name} reads from its input are not known")
        return
    draft.use("read", words[0])
    draft.code.append((parsed.operands[0].at, 0))


def _doubt_options(parsed: Parsed, draft: Draft) -> None:
    """Options with which a shell reads a script otherwise, or reads another before it."""
    for found in parsed.options:
        value = found.value.literal if found.value is not None else None
        kept = value in _KEPT_SETTINGS if found.option.name == "-o" else found.option.name in _KEPT_OPTIONS
        if not kept:
            draft.doubt(f"{found.option.name} changes what the shell reads: leave it out")


def read_other_shell(parsed: Parsed, draft: Draft) -> None:
    """`zsh -c SCRIPT`, `fish FILE`: another language than that of bash."""
    words = [operand.word for operand in parsed.operands]
    if parsed.has("-c") or not words:
        if not parsed.has(*_ASKS):
            draft.doubt("of shells, only bash and sh are understood: use bash -c")
        return
    read_shell(parsed, draft)


def read_commands(parsed: Parsed, draft: Draft) -> None:
    """`psql`, `m4`, `ed`: commands come from standard input when neither an option nor an operand gives them."""
    given = [operand for operand in parsed.operands if _gives_commands(parsed, operand.word)]
    if not given and not parsed.has(*parsed.profile.instead, *_ASKS):
        draft.doubt(f"the commands that {parsed.profile.name} reads from its input are not known")


def _gives_commands(parsed: Parsed, word: Word) -> bool:
    """The operand is a file of commands, and not standard input itself."""
    operands = parsed.profile.operands
    takes_files = operands.leading[:1] == ("program",) or operands.repeated == "load"
    return takes_files and not is_standard_input(word)


def read_parallel(parsed: Parsed, draft: Draft) -> None:
    """Without `:::`, the command is completed, or given, by the lines of standard input."""
    if all(operand.word.literal != ":::" for operand in parsed.operands) and not parsed.has(*_ASKS):
        draft.doubt(f"the commands that {parsed.profile.name} makes of its input are not known: give them after :::")


def read_su(parsed: Parsed, draft: Draft) -> None:
    """`su - USER ARGUMENT...`: the arguments are options of the shell."""
    words = [operand for operand in parsed.operands if operand.word.literal != "-"]
    for operand in parsed.operands:
        if operand not in words:
            draft.hazard(operand.at, "works in the home folder")
    for operand in words[1:]:
        draft.hazard(operand.at, "is an argument of the shell that is started")


def read_eval(parsed: Parsed, draft: Draft) -> None:
    words = [operand.word for operand in parsed.operands]
    if words:
        draft.script(joined(words))


def read_watch(parsed: Parsed, draft: Draft) -> None:
    words = [operand.word for operand in parsed.operands]
    if parsed.has("-x", "--exec"):
        draft.run(words)
    elif words:
        draft.script(joined(words))


def read_entr(parsed: Parsed, draft: Draft) -> None:
    words = [operand.word for operand in parsed.operands]
    if parsed.has("-s"):
        for word in words[:1]:
            draft.script(word)
    else:
        draft.run(words)


def read_trap(parsed: Parsed, draft: Draft) -> None:
    """`trap SCRIPT SIGNAL...`: the reading of the shell follows the script, in which functions have their meaning."""
    if parsed.has("-p", "-l") or len(parsed.operands) < 2:
        return
    script = parsed.operands[0].word
    if script.literal is None:
        draft.doubt(f"the commands in {script.text} are not known")


def joined(words: list[Word]) -> Word:
    """The text that a shell gets when the words are joined by blanks."""
    texts = [word.literal for word in words]
    known = [text for text in texts if text is not None]
    span = (words[0].span[0], words[-1].span[1])
    if len(known) < len(texts):
        return Word("unknown", " ".join(word.text for word in words), span)
    return literal_word(" ".join(known), span)
