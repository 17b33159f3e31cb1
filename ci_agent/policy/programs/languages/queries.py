"""Programs that are given a query or a list: jq, yq, SQLite, tree. Some read other files, load code or run programs."""

import re
from urllib.parse import unquote

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.parsed import Parsed
from ci_agent.policy.words import Word, literal_word

_NOWHERE = 1_000_000
"""Behind all words."""
_LOADS_MODULES = re.compile(r"\b(?:include|import|modulemeta)\b")
_JQ_LOADS_FIRST = re.compile(r"[^\w.\[{(\"$|]*(?:module|import|include)\b")
_YQ_LOADS = re.compile(r"\bload|\bstrload")
_SQL_REACHES_FILES = re.compile(
    r"load_extension|writefile|readfile|_store_directory|\bedit\b|attach|vacuum|fts3_tokenizer|^\s*\.|\n\s*\.|zipfile|fsdir|virtual",
    re.IGNORECASE,
)
_HARMLESS_DOT = re.compile(
    r"\.(?:tables|schema|indexes|databases|dbinfo|dump|fullschema|headers|mode|stats|timer|width|show|help|version)"
    r"(?:\s[^\n|;]*)?",
)


def read_tree(parsed: Parsed, draft: Draft) -> None:
    """`tree --fromfile FILE` prints the lines of the file."""
    if parsed.has("--fromfile", "--fromtabfile"):
        for operand in parsed.operands:
            draft.use("read", operand.word)


def read_jq(parsed: Parsed, draft: Draft) -> None:
    """The first operand is the program, unless it is in a file; after `--args` all are data."""
    words = list(parsed.operands)
    if not parsed.has("-f", "--from-file") and words:
        program = words.pop(0)
        if program.word.literal is None:
            draft.doubt(f"the jq program {program.word.text} is not known")
        elif _jq_loads(program.word.text):
            draft.hazard(program.at, "loads modules or data from other files")
    rest = min(
        (found.at for found in parsed.options if found.option.name in ("--args", "--jsonargs")), default=_NOWHERE
    )
    for operand in words:
        if operand.at < rest:
            draft.use("read", operand.word)


def _jq_loads(program: str) -> bool:
    """`import` and `include` come first; elsewhere these words are names of fields. Comments are not looked through."""
    if "#" in program or "modulemeta" in program:
        return _LOADS_MODULES.search(program) is not None
    return _JQ_LOADS_FIRST.match(program) is not None


def read_yq(parsed: Parsed, draft: Draft) -> None:
    """There are two programs of this name: one has commands (`eval`), both have an expression and then files."""
    words = list(parsed.operands)
    if words and words[0].word.literal in ("e", "eval", "ea", "eval-all"):
        words.pop(0)
    if words and not parsed.has("-f", "--from-file", "--expression"):
        expression = words.pop(0)
        if expression.word.literal is None:
            draft.doubt(f"the expression {expression.word.text} is not known")
        elif _YQ_LOADS.search(expression.word.text) or _LOADS_MODULES.search(expression.word.text):
            draft.hazard(expression.at, "reads other files")
        # The Go program takes its first word for a file where one of that name exists (`yq .env`).
        if not words or "/" in expression.word.text:
            draft.use("read", expression.word)
    for operand in words:
        draft.use("read", operand.word)
        if parsed.has("-i", "--inplace", "--in-place"):
            draft.use("write", operand.word)


def _database(word: Word) -> Word:
    """`file:PATH?mode=ro` is a URI, with a host that is empty."""
    if word.literal is None or not word.text.startswith("file:"):
        return word
    path = re.split(r"[?#]", word.text[len("file:") :])[0]
    if path.startswith("//"):
        path = "/" + path[2:].partition("/")[2]
    return literal_word(unquote(path), word.span)


def read_sqlite(parsed: Parsed, draft: Draft) -> None:
    """`sqlite3 DATABASE STATEMENT...`: statements may run programs and reach other files."""
    if len(parsed.operands) < 2 and not parsed.has("-version", "-help", "-A", "-archive"):
        draft.doubt("the statements that sqlite3 reads from its input are not known: give them as an operand")
    if parsed.operands:
        database = _database(parsed.operands[0].word)
        draft.use("read", database)
        if not parsed.has("-readonly"):
            draft.use("write", database)
    for operand in parsed.operands[1:]:
        text = operand.word.literal
        if text is None:
            draft.doubt(f"the statement {operand.word.text} is not known")
        elif _SQL_REACHES_FILES.search(text) and not _HARMLESS_DOT.fullmatch(text.strip()):
            draft.hazard(operand.at, "may run a program or reach another file")
