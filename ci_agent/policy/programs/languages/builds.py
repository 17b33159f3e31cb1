"""Build tools and interpreters, where one operand or option changes what all others do."""

import re

from ci_agent.policy.effects import FileUse
from ci_agent.policy.programs.draft import CODE_FROM_INPUT, Draft, is_standard_input, is_version, use_anything
from ci_agent.policy.programs.load import load_profile
from ci_agent.policy.programs.operands import use_backup
from ci_agent.policy.programs.options import parse, tail
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.programs.profile import HAZARDS
from ci_agent.policy.programs.selections import selection_for
from ci_agent.policy.words import Word, literal_word
from ci_agent.steering_names import changes_what_runs

_DEBUGGER = "is a debugger, which runs the file and takes commands from its input"
_NOWHERE = 1_000_000
"""Behind all words."""
_VARIABLE = re.compile(r"[A-Za-z0-9_.-]+[:+?]*")
_SWITCH = re.compile(r"[0-9]*|true|false|yes|no|y|n|on|off", re.IGNORECASE)
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.;+-]*")
_TOOL_SWITCH = re.compile(r"-[jlk]?[0-9]+|-[jkvsn]|[0-9]+|--silent|VERBOSE=1")
_HARMLESS_X = re.compile(
    r"(?:dev|utf8|importtime|faulthandler|showrefcount|no_debug_ranges|frozen_modules|tracemalloc|int_max_str_digits"
    r"|gil|warn_default_encoding|cpu_count|context_aware_warnings|thread_inherit_context)(?:=[a-z0-9]*)?"
)
_SPLITS_BY_CODE = re.compile(r"""(?P<mark>[/'"])(?:.*?(?P=mark).|.*[@$]|.*\(\?)""", re.DOTALL)
"""perl takes what stands between two of these, and behind them, as it is: inside, too, code may stand."""
_MAGIC_NAME = re.compile(r"^\s*[|<>+&]|\|\s*$")


def read_make(parsed: Parsed, draft: Draft) -> None:
    """`NAME=value` overrides a variable of the makefile, which may be a command; plain switches (`V=1`) do not.

    make expands what is in front of the `=` too: `$(shell COMMAND)=1` runs the command.
    """
    for operand in parsed.operands:
        word = operand.word
        if word.stand_ins and not any("=" in text for text in word.stand_ins):
            continue
        if word.kind in ("unknown", "choice") and not word.beneath:
            draft.doubt(f"{word.text} may set a variable of the makefile")
            continue
        name, equals, value = word.text.partition("=")
        switches = _VARIABLE.fullmatch(name) and _SWITCH.fullmatch(value) and not changes_what_runs(name.rstrip(":+?"))
        if equals and not switches:
            draft.hazard(operand.at, "sets a variable of the makefile, which may be a command")
        use_anything(draft, word)


def read_after_dashes(parsed: Parsed, draft: Draft) -> None:
    """What stands behind `--` goes to another program, as options of its own."""
    for operand in parsed.operands:
        if parsed.dash_dash is not None and operand.at > parsed.dash_dash:
            draft.hazard(operand.at, "goes to the program behind this one, as an option of its own")


def read_cargo_test(parsed: Parsed, draft: Draft) -> None:
    """What stands behind `--` goes to the tests, whose harness writes a log if asked."""
    for operand in parsed.operands:
        if operand.word.text.startswith("--logfile"):
            draft.hazard(operand.at, HAZARDS["write"])


def read_clippy(parsed: Parsed, draft: Draft) -> None:
    """What stands behind `--` goes to the compiler, to which lints are harmless."""
    behind = read_behind(parsed, draft, "rustc")
    dashes = 0 if parsed.dash_dash is None else parsed.dash_dash + 1
    for found in behind.options:
        writes = found.option.name == "--emit" and found.value is not None and "=" in found.value.text
        if found.option.meaning == "target" or writes:
            draft.hazard(dashes + found.at, HAZARDS["write"])


def read_behind(parsed: Parsed, draft: Draft, section: str) -> Parsed:
    """What stands behind `--`, read as words of the other program that gets them; its hazards count here."""
    dashes = (operand.at for operand in parsed.operands if operand.word.literal == "--")
    start = next(dashes, _NOWHERE) if parsed.dash_dash is None else parsed.dash_dash
    words = [operand for operand in parsed.operands if operand.at > start]
    behind = parse(load_profile(section), [operand.word for operand in words], 0)
    draft.problem = draft.problem or behind.problem
    for found in behind.options:
        if found.option.why is not None:
            draft.hazard(words[found.at].at, found.option.why)
        if found.value is not None:
            use_anything(draft, found.value)
    return behind


def read_formatter(parsed: Parsed, draft: Draft) -> None:
    """`cargo fmt`, `go fmt`: rewrite the sources of the folder they work in, unless they are to check them."""
    behind = read_behind(parsed, draft, "rustfmt")
    if not (parsed.dry or behind.surely("--check")):
        here, selection = literal_word("."), selection_for(parsed)
        draft.files.append(FileUse("write", here, recursive=True, selection=selection, in_place=True))


def read_dart_format(parsed: Parsed, draft: Draft) -> None:
    """It rewrites what it is given, unless it is told to do something else with the result."""
    result = parsed.last("-o", "--output") if parsed.surely("-o", "--output") else None
    if result is None or result.literal not in ("none", "json", "show"):
        for operand in parsed.operands:
            draft.use("write", operand.word, recursive=True, selection=selection_for(parsed), in_place=True)


def read_gotestsum(parsed: Parsed, draft: Draft) -> None:
    read_behind(parsed, draft, "go test")


def read_go_build(parsed: Parsed, draft: Draft) -> None:
    """`go build` of one package, and `go test -c`, leave a program in the folder they work in."""
    tests = parsed.profile.name == "go test"
    if parsed.has("-o") or parsed.surely("-n") or (tests and not parsed.has("-c")):
        return
    if tests:
        draft.use("write", literal_word("main.test"))
        return
    packages = [operand.word.text for operand in parsed.operands]
    if not any(package.endswith("...") for package in packages):
        name = packages[0].rstrip("/").rpartition("/")[2] if packages else ""
        draft.use("write", literal_word(name if name.strip(".") else "main"))


def read_go_mod(parsed: Parsed, draft: Draft) -> None:
    """`go get`, `go mod tidy`, `go mod edit`: which modules a build is made of."""
    words = {operand.word.literal for operand in parsed.operands[:1]}
    if parsed.profile.name == "go get" or words & {"tidy", "edit", "init", None}:
        for name in ("go.mod", "go.sum"):
            draft.use("write", literal_word(name))


def read_cmake(parsed: Parsed, draft: Draft) -> None:
    """Cache entries that are usually switches may be given paths; behind `--` are options of the build tool."""
    read_ctest(parsed, draft)
    for found in parsed.options:
        value = (found.value.text if found.value else "").rpartition("=")[2]
        if found.option.name.startswith("-D") and not _PLAIN_VALUE.fullmatch(value):
            draft.hazard(found.at, HAZARDS["config"])
    for operand in parsed.operands:
        behind = parsed.dash_dash is not None and operand.at > parsed.dash_dash
        if behind and not _TOOL_SWITCH.fullmatch(operand.word.literal or ""):
            draft.hazard(operand.at, "is an option of the build tool")


def read_ctest(parsed: Parsed, draft: Draft) -> None:
    """What it has to say of itself, it writes to a file that is named."""
    for operand in parsed.operands if parsed.has("-help", "-help-*", "-version") else ():
        draft.hazard(operand.at, HAZARDS["write"])
        draft.use("write", operand.word)


_SBT_TASK = re.compile(r"(?!(?:eval|set|shell|console\w*|apply|iflast|onFailure)$)[~+]{0,2}[A-Za-z0-9_./:-]+")


def read_sbt(parsed: Parsed, draft: Draft) -> None:
    """A word is a command of sbt, and some with arguments are code (`eval 1`, `set x := y`)."""
    for operand in parsed.operands:
        text = operand.word.literal
        words = (text or "").split()
        tests = bool(words) and words[0].endswith(("testOnly", "testQuick", "runMain"))
        if text is None or not (_SBT_TASK.fullmatch(text) or (tests and ";" not in text)):
            draft.hazard(operand.at, HAZARDS["code"])
    if not parsed.operands:
        draft.doubt("the commands that sbt reads from its input are not known")


def read_mvn(parsed: Parsed, draft: Draft) -> None:
    """`GROUP:PLUGIN:GOAL` runs a plugin that the project need not know, `exec:` a program."""
    for operand in parsed.operands:
        text = operand.word.literal
        if text is None or text.count(":") > 1 or text.startswith(("exec:", "antrun:", "archetype:")):
            draft.hazard(operand.at, "runs the code of a plugin that the project need not know")


def read_interpreter(parsed: Parsed, draft: Draft) -> None:
    """`python FILE ARGUMENT...`: without a file or an option that gives the code, it comes from standard input."""
    _refuse_code_in_values(parsed, draft)
    gives_code = any(found.option.meaning in ("code", "run") for found in parsed.options)
    asks = parsed.has("--version", "--help", "-V", "-h", "-v") and not parsed.operands
    if gives_code or parsed.has(*parsed.profile.instead):
        edits = any(found.option.meaning == "in_place" for found in parsed.options)
        loops = any(found.option.name in ("-n", "-p") and found.option.meaning == "data" for found in parsed.options)
        for operand in parsed.operands:
            if edits or loops:
                draft.use("read", operand.word)
                _refuse_magic_name(parsed, draft, operand.word)
            if edits:
                draft.use("write", operand.word)
                use_backup(parsed, draft, operand.word)
            use_anything(draft, operand.word)
        return
    words = [operand.word for operand in parsed.operands]
    if parsed.profile.name == "node" and words and words[0].literal == "inspect":
        draft.hazard(parsed.operands[0].at, _DEBUGGER)
    if asks or (words and not is_standard_input(words[0])):
        draft.code += [(operand.at, 0) for operand in parsed.operands[:1]]
        _use_program(words, draft)
    elif words and not words[0].pipe:
        draft.hazard(parsed.operands[0].at, CODE_FROM_INPUT)
        for word in words[1:]:
            use_anything(draft, word)
    else:
        draft.doubt(f"the code that {parsed.profile.name} reads from its input is not known: put it in a file")


def read_toolchain(parsed: Parsed, draft: Draft) -> None:
    """`rustup run TOOLCHAIN COMMAND`: a toolchain may be a folder with programs."""
    for operand in parsed.operands[:1]:
        if not is_version(operand.word):
            draft.hazard(operand.at, HAZARDS["version"])


def read_python_versions(parsed: Parsed, draft: Draft) -> None:
    """`uv python find REQUEST`: what is no version may be an interpreter, which is run to be asked."""
    for operand in parsed.operands[1:]:
        if not is_version(operand.word):
            draft.hazard(operand.at, HAZARDS["version"])


def _refuse_magic_name(parsed: Parsed, draft: Draft, word: Word) -> None:
    """perl opens `id |` by running `id`, and `>x` by emptying it; behind a slash neither counts."""
    if parsed.profile.name == "perl" and _MAGIC_NAME.search(word.text):
        draft.doubt(f"perl does more than read the file {word.text!r}: write ./ before its name, and no | behind it")


def _refuse_code_in_values(parsed: Parsed, draft: Draft) -> None:
    """Values that are usually data, but of which the interpreter runs or imports some."""
    for found in parsed.options:
        value = found.value.text if found.value else ""
        if found.option.name == "-F" and _SPLITS_BY_CODE.match(value) and parsed.profile.name == "perl":
            draft.hazard(found.at, HAZARDS["code"])
        imports = (found.spelled == "-X" and not _HARMLESS_X.fullmatch(value)) or (
            found.spelled == "-W" and "." in value
        )
        if imports and parsed.profile.name == "python":
            draft.hazard(found.at, HAZARDS["load"])


def _use_program(words: list[Word], draft: Draft) -> None:
    for word in words[:1]:
        draft.use("read", word)
    for word in words[1:]:
        use_anything(draft, word)


_EMITS = {"gcc": "a.out", "ld": "a.out", "javac": ".", "rustc": ".", "tsc": "."}
"""Where compilers write when no option says so: a file, or the folder they work in."""
_EMITS_NOTHING = ("-E", "-M", "-MM", "-fsyntax-only", "-noEmit", "-showConfig")
_ASKS = ("-version", "--version", "-v", "-help")


def read_compiler(parsed: Parsed, draft: Draft) -> None:
    """The result goes where an option says, or where it always goes."""
    told = any(found.option.meaning == "target" for found in parsed.options) or parsed.has(*_EMITS_NOTHING)
    told = told and not _emits_after_all(parsed)
    told = told or (parsed.has(*_ASKS) and not parsed.operands)
    emits = _EMITS.get(parsed.profile.name)
    if (
        (parsed.operands or emits == ".")
        and emits is not None
        and not told
        and not parsed.has("-outDir", "-outFile", "-emit")
    ):
        draft.use("write", literal_word("." if parsed.has("-c", "-S") else emits))
    if parsed.profile.name == "rustc":
        _use_emitted(parsed, draft)
    read_argument_files(parsed, draft)


def _emits_after_all(parsed: Parsed) -> bool:
    """`--noEmit false`."""
    off = {operand.at for operand in parsed.operands if operand.word.literal not in ("true", None)}
    return any(found.option.name in _EMITS_NOTHING and found.at + 1 in off for found in parsed.options) and any(
        operand.word.literal == "false" for operand in parsed.operands
    )


def _use_emitted(parsed: Parsed, draft: Draft) -> None:
    """`--emit link=FILE,dep-info=FILE` and `--print KIND=FILE`."""
    for index, value in parsed.values("--emit", "--print"):
        for kind in value.text.split(",") if value.literal is not None else ("=",):
            if "=" in kind:
                draft.hazard(index, HAZARDS["write"])
                draft.use("write", literal_word(kind.partition("=")[2], value.span))


def read_argument_files(parsed: Parsed, draft: Draft) -> None:
    """`@FILE` holds further options. Programs replace it before they look at anything, also in place of a value."""
    words = [(operand.at, operand.word) for operand in parsed.operands]
    words += [(found.value_index, found.value) for found in parsed.options if found.value_index and found.value]
    for index, word in words:
        if (word.prefix or word.text).startswith("@"):
            draft.hazard(index, "takes options from a file")
            draft.use("read", tail(word, 1))


def read_pytest(parsed: Parsed, draft: Draft) -> None:
    """`-p no:NAME` leaves a plugin out; a report may be given a file (`--cov-report=xml:FILE`)."""
    read_argument_files(parsed, draft)
    for found in parsed.options:
        value = found.value
        alone = sum(other.at == found.at for other in parsed.options) == 1
        if found.option.name == "-p" and alone and value and value.literal and value.text.startswith("no:"):
            draft.hazards.pop(found.at, None)
        if found.option.name == "--cov-report" and value is not None and ":" in value.text:
            draft.use("write", literal_word(value.text.partition(":")[2], value.span) if value.literal else value)
            draft.hazard(found.at, "writes a file")
