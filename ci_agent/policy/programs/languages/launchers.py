"""Programs that start another command, with a syntax of their own around it."""

import re
from collections.abc import Sequence

from ci_agent.policy.effects import UrlUse
from ci_agent.policy.programs.draft import CODE_FROM_INPUT, Draft, is_standard_input, is_url, use_anything
from ci_agent.policy.programs.load import find_profile
from ci_agent.policy.programs.options import begins_option, tail
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.programs.profile import HAZARDS
from ci_agent.policy.words import Word, literal_word

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_OTHER_NAME = "a program under another name may do something else"
_PRINTING_TOOLS = frozenset({"memcheck", "helgrind", "drd", "lackey", "none"})
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./:=@%+,-]+")
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9_ \t./:=@%+,-]*")
"""Text that `env -S` splits at blanks and leaves alone otherwise."""
_MAX_SPLIT = 500
"""Words that one such text becomes."""


def read_env(parsed: Parsed, draft: Draft) -> None:
    words = [operand.word for operand in parsed.operands]
    for _, text in parsed.values("-S", "--split-string"):
        if text.literal is None or not _PLAIN_TEXT.fullmatch(text.text):
            draft.doubt(f"env -S splits {text.text} in a way of its own: write the command plainly")
        parts = text.text.split()
        if len(parts) > _MAX_SPLIT:
            draft.doubt(f"env -S of more than {_MAX_SPLIT} words is not read: write the command plainly")
        words = [literal_word(part, text.span) for part in parts[:_MAX_SPLIT]] + words
    if words and words[0].literal == "-":
        words = words[1:]
    assignments, command = split_assignments(words)
    folder = parsed.last("-C", "--chdir")
    if folder is not None:
        draft.use("list", folder)
    if parsed.has("-a", "--argv0"):
        draft.doubt(_OTHER_NAME)
    if any(word.splits for word in words[: len(assignments) + 1]):
        draft.doubt("the command that env starts is not known")
    draft.run(command, assignments, folder)
    draft.transparent = bool(command) and parsed.profile.launches == "transparent"


def split_assignments(words: Sequence[Word]) -> tuple[list[tuple[str, Word]], list[Word]]:
    """The `NAME=value` words at the start, and the rest."""
    assignments: list[tuple[str, Word]] = []
    for position, word in enumerate(words):
        match = _ASSIGNMENT.match(word.prefix if word.kind == "unknown" else word.text)
        if match is None or word.kind in ("glob", "choice"):
            return assignments, list(words[position:])
        assignments.append((match[1], tail(word, match.end())))
    return assignments, []


def read_sudo(parsed: Parsed, draft: Draft) -> None:
    """`sudo NAME=value COMMAND`: what is set reaches the command."""
    assignments, command = split_assignments([operand.word for operand in parsed.operands])
    draft.commands.clear()
    draft.run(command, assignments)


def read_elsewhere(parsed: Parsed, draft: Draft) -> None:
    """`pkexec` works in the home folder of another user, `systemd-run` at the root, unless they are told to stay."""
    stays = ("--keep-cwd",) if parsed.profile.name == "pkexec" else ("--same-dir", "-d", "--scope")
    if draft.commands and not parsed.has(*stays):
        draft.doubt(f"in which folder the command of {parsed.profile.name} works is not known: add {stays[0]}")


def read_everywhere(parsed: Parsed, draft: Draft) -> None:
    """`lerna exec`: in the folder of each package, so that a rule has to spell it."""
    draft.elsewhere.append(None)
    if parsed.operands:
        draft.hazard(parsed.start - 1, "runs the command in other folders")
    doubt_shell_text(draft, [operand.word for operand in parsed.operands])


def doubt_shell_text(draft: Draft, words: Sequence[Word]) -> None:
    """Of programs that put the words together again, and have a shell read the whole."""
    if not all(word.literal is not None and _PLAIN_WORD.fullmatch(word.text) for word in words):
        draft.doubt("a shell reads the command once more: use plain words, or put it into a script")


def read_submodule_command(parsed: Parsed, draft: Draft) -> None:
    """`git submodule foreach COMMAND`, `git submodule foreach 'SHELL TEXT'`."""
    draft.elsewhere.append(None)
    words = [operand.word for operand in parsed.operands]
    if words:
        draft.hazard(parsed.start - 1, "runs the command in other folders")
    if len(words) == 1:
        draft.script(words[0])
    else:
        draft.run(words)


def read_packages(_parsed: Parsed, draft: Draft) -> None:
    """`lerna run`, `nx run-many`, `turbo run`: what the scripts of packages get, they find in their own folders."""
    draft.elsewhere.append(None)


def read_trace(parsed: Parsed, draft: Draft) -> None:
    """`strace -o '|COMMAND'` runs it, and so does `!COMMAND`."""
    for _, value in parsed.values("-o", "--output"):
        if (value.prefix or value.text).startswith(("|", "!")):
            draft.doubt(f"a command gets what is traced: {value.text}")


def read_command(parsed: Parsed, draft: Draft) -> None:
    """`command -v NAME` only tells where NAME is."""
    if parsed.has("-v", "-V"):
        draft.commands.clear()
    draft.transparent = bool(draft.commands)


def read_setarch(parsed: Parsed, draft: Draft) -> None:
    """The name of a machine comes first or not at all; options may stand behind it."""
    words = [operand.word for operand in parsed.operands]
    if not parsed.options:
        words = words[1:]
        while words and (words[0].literal or "")[:1] == "-":
            words = words[1:]
    draft.run(words)


def read_measured(parsed: Parsed, draft: Draft) -> None:
    """`perf record`, and tools of valgrind: what they find goes to a file of a name of theirs."""
    tools = [value.literal for _, value in parsed.values("--tool")]
    records = parsed.called is not None and parsed.called.literal == "record"
    if records and not parsed.has("-o", "--output"):
        draft.use("write", literal_word("perf.data"))
        draft.use("write", literal_word("perf.data.old"))
    if any(tool not in _PRINTING_TOOLS for tool in tools):
        draft.use("write", literal_word("."))


def read_jobs(parsed: Parsed, draft: Draft) -> None:
    """`jobs -x COMMAND` runs it, with job numbers replaced by those of processes."""
    if parsed.has("-x"):
        draft.run([operand.word for operand in parsed.operands])


def read_ip(parsed: Parsed, draft: Draft) -> None:
    """`ip addr` and its like show; `ip netns exec NAME COMMAND`, also cut short, runs; others change the network."""
    words = [operand.word for operand in parsed.operands]
    if words and (words[0].literal is None or _may_mean(words[0].text, "netns", "vrf")):
        draft.run(words[3:])
    for operand in parsed.operands[1:2]:
        if operand.word.literal not in _IP_SHOWS:
            draft.hazard(operand.at, "may change the network or start a command")


_IP_SHOWS = frozenset({"show", "list", "ls", "sh", "get", "help", "identify", "pids"})


def _may_mean(text: str, *names: str) -> bool:
    return any(name.startswith(text) for name in names)


def read_debugger(parsed: Parsed, draft: Draft) -> None:
    """`gdb --args COMMAND`, `lldb -- COMMAND`: what to do with it comes from standard input."""
    words = [operand.word for operand in parsed.operands]
    draft.run(words)
    if words and "/" in (words[0].prefix or words[0].text):
        draft.use("read", words[0])
    if not parsed.has(*parsed.profile.instead):
        draft.doubt(f"the commands that {parsed.profile.name} reads from its input are not known")


_STARTING = frozenset({"exec", "dlx"})

_READ_CODE = frozenset({"shell", "other_shell", "interpreter", "commands"})
"""Languages of programs that, without a word, read commands from standard input."""


def read_project_program(parsed: Parsed, draft: Draft) -> None:
    """`pnpm NAME`, `bun run NAME`: a script of the project or, where there is none of that name, any program.

    A name alone, of a program that takes its commands from no input, is taken for a script.
    """
    words = [operand.word for operand in parsed.operands]
    if not words:
        return
    first, *others = words
    runs_files = parsed.profile.name.startswith("bun")
    program = find_profile(first.literal or "")
    if is_url(first):
        draft.urls.append(UrlUse(first))
    elif is_standard_input(first):
        draft.hazard(parsed.operands[0].at, CODE_FROM_INPUT)
    elif runs_files and "." in first.text:
        draft.use("read", first)
        draft.code.append((parsed.operands[0].at, 0))
    elif (program is not None and (others or program.language in _READ_CODE)) or "/" in first.text:
        draft.run(words)
    for word in others:
        use_anything(draft, word)


def read_workspaces(parsed: Parsed, draft: Draft) -> None:
    """`yarn workspace NAME exec COMMAND`, `yarn workspaces foreach exec COMMAND`."""
    draft.elsewhere.append(None)
    words = [operand.word for operand in parsed.operands]
    at = next((at for at, word in enumerate(words) if word.literal in _STARTING), len(words))
    for operand in parsed.operands[: at + 1]:
        if operand.word.literal in (*_STARTING, "node", None):
            draft.hazard(operand.at, "runs another program in each of them")
        elif begins_option(parsed.profile, operand.word) and not _is_listed(operand.word, parsed):
            draft.hazard(operand.at, HAZARDS["unlisted"])
        else:
            use_anything(draft, operand.word)
    draft.run(words[at + 1 :])


def _is_listed(word: Word, parsed: Parsed) -> bool:
    return word.text.partition("=")[0] in parsed.profile.options


def read_exec(parsed: Parsed, draft: Draft) -> None:
    if parsed.has("-a"):
        draft.doubt(_OTHER_NAME)
    draft.run([operand.word for operand in parsed.operands])


def read_flock(parsed: Parsed, draft: Draft) -> None:
    """`flock FILE COMMAND...`, `flock FILE -c SCRIPT`, `flock DESCRIPTOR`."""
    if not parsed.operands:
        return
    lock, *rest = [operand.word for operand in parsed.operands]
    if lock.literal is None or not lock.text.isdigit():
        draft.use("write", lock)
    if rest and rest[0].literal in ("-c", "--command"):
        if len(rest) > 1:
            draft.script(rest[1])
    else:
        draft.run(rest)


def read_xargs(parsed: Parsed, draft: Draft) -> None:
    """The command, with what standard input will add to it."""
    words = [operand.word for operand in parsed.operands] or [literal_word("echo")]
    cut = any(value.literal != "\\n" for _, value in parsed.values("-d", "--delimiter"))
    known = draft.input_names if not cut and not parsed.has("-a", "--arg-file") else None
    some = parsed.has("-r", "--no-run-if-empty")
    names = Word("unknown", "what xargs reads", words[0].span, beneath=known or (), splits=True, some=some)
    slots = _slots(parsed, draft)
    marker = _marker(parsed)
    if marker is None:
        draft.run([*words, names], slots)
        return
    if marker.literal is None:
        draft.doubt(f"what xargs replaces, {marker.text}, is not known")
    draft.run([_replaced(word, marker.text, known or ()) for word in words], slots)


def _slots(parsed: Parsed, draft: Draft) -> list[tuple[str, Word]]:
    """The variable that each process finds its number in; a number is the name of a file, too."""
    names = [value for _, value in parsed.values("--process-slot-var")]
    if any(name.literal is None for name in names):
        draft.doubt("which variable xargs sets is not known")
    return [(name.text, Word("unknown", "a number", name.span)) for name in names]


def _marker(parsed: Parsed) -> Word | None:
    for found in parsed.options:
        if found.option.name in ("-I", "-i", "--replace"):
            return found.value or literal_word("{}")
    return None


def _replaced(word: Word, marker: str, known: tuple[Word, ...]) -> Word:
    if word.literal is None or marker not in word.text:
        return word
    if word.text == marker:
        return Word("unknown", word.text, word.span, beneath=known)
    return Word("unknown", word.text, word.span, prefix=word.text.partition(marker)[0])


def read_mise(parsed: Parsed, draft: Draft) -> None:
    """`mise exec TOOL@VERSION... -- COMMAND`."""
    words = [operand.word for operand in parsed.operands]
    dashes = next((at for at, word in enumerate(words) if word.literal == "--"), -1)
    known = parsed.dash_dash is not None or dashes >= 0 or parsed.has("-c", "--command")
    if not known:
        draft.doubt(f"which command {parsed.profile.name} starts is not known: write -- before it")
    draft.run(words[dashes + 1 :])
