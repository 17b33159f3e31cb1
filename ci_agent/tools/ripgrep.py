"""Asking ripgrep, where it is installed, which files need not be opened at all.

It only narrows the search: it may name a file too many, never one too few, and what is shown comes from the files
that the policy permits, opened safely and matched by RE2. So the answers are the same with it and without.
"""

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.process import Processes
from ci_agent.sandbox.confinement import ConfineReader, leave_reader_unconfined
from ci_agent.workspace import Workspace

_TIMEOUT_S = 60.0
_MAX_OUTPUT_BYTES = 4 << 20

_OPTIONS = (
    "--no-config",
    "--files-with-matches",
    "--null",
    "--no-messages",
    "--color=never",
    "--text",
    "--encoding=none",
    "--no-ignore",
    "--hidden",
)

_BYTE_ORDER_MARK = r"^(?-u:\xEF\xBB\xBF|\xFF\xFE|\xFE\xFF|\x00\x00\xFE\xFF)"
"""Text behind a mark is decoded before RE2 sees it, so every such file has to be opened."""


@dataclass(frozen=True, slots=True)
class Ripgrep:
    program: Path
    processes: Processes
    confine: ConfineReader = leave_reader_unconfined


def find_ripgrep(
    path_variable: str, workspace: Workspace, processes: Processes, confine: ConfineReader = leave_reader_unconfined
) -> Ripgrep | None:
    """The `rg` that PATH names; never one in the workspace, which a task or a dependency may have put there."""
    folders = [folder for folder in path_variable.split(os.pathsep) if os.path.isabs(folder)]
    for folder in folders:
        program = shutil.which("rg", path=folder)
        if program and not workspace.contains(Path(program).resolve()) and not workspace.contains(Path(program)):
            return Ripgrep(Path(program), processes, confine)
    return None


def may_match(
    ripgrep: Ripgrep, expression: str, folder: Path, paths: Sequence[str], cancel: CancelToken
) -> frozenset[str] | None:
    """Those of the paths (relative to the folder) outside of which nothing matches; None: it could not tell.

    `expression` is what `rust_expression` made of the pattern.
    """
    patterns = [f"--regexp={expression}", f"--regexp={_BYTE_ORDER_MARK}"]
    names = [b"./" + os.fsencode(path) for path in paths]
    try:
        result = ripgrep.processes.run(
            [str(ripgrep.program), *_OPTIONS, *patterns, "--", *names],
            cwd=folder,
            env={},
            timeout_s=_TIMEOUT_S,
            cancel=cancel,
            head_bytes=_MAX_OUTPUT_BYTES,
            tail_bytes=0,
            separate_stderr=True,
            confinement=ripgrep.confine(),
        )
    except ToolError:
        return None  # it is gone, or the machine is out of processes
    if result.exit_status not in {0, 1} or not result.output.is_complete:
        return None
    return frozenset(os.fsdecode(name[2:]) for name in result.output.head.split(b"\0") if name)


_META_CHARACTERS = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")

_TOKEN = re.compile(
    r"""
      \\ (?P<escaped> . )
    | \[ (?P<negated> \^? ) (?P<members> \]? (?: \\. | [^]\\[] )* ) \]
    | (?P<plain> \( (?: \?: | (?!\?) ) | \{ \d+ (?: ,\d* )? \} | [^\\[({] )
    """,
    re.VERBOSE | re.DOTALL,
)

# RE2 takes an encoded surrogate for a character, ripgrep does not.
_SURROGATE = r"(?-u:\xED[\xA0-\xBF][\x80-\xBF])"

_PLAIN = {".": f"(?:.|{_SURROGATE})", "$": r"(?:\r?$)"}

_CLASS_ESCAPES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r\x20"}
"""ASCII in RE2, all of Unicode in ripgrep."""

_ESCAPES = {
    **{name: f"[{members}]" for name, members in _CLASS_ESCAPES.items()},
    **{name.upper(): f"(?:[^{members}]|{_SURROGATE})" for name, members in _CLASS_ESCAPES.items()},
    "b": r"(?-u:\b)",
    "B": r"(?-u:\B)",
}


def rust_expression(pattern: str, *, literal: bool, ignore_case: bool) -> str | None:
    """The pattern in ripgrep's syntax, matching at least the lines that RE2 matches; None where that is not sure.

    Sure are the constructs that both document alike, which is what people and models write.
    """
    if ignore_case and not pattern.isascii():
        return None  # the two may know different versions of Unicode
    expression = _escaped(pattern) if literal else _translated(pattern)
    return f"(?i:{expression})" if expression and ignore_case else expression


def _escaped(text: str) -> str | None:
    return None if "\n" in text else _META_CHARACTERS.sub(r"\\\g<0>", text)


def _translated(pattern: str) -> str | None:
    pieces: list[str] = []
    position = 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        piece = _translated_token(token) if token else None
        if token is None or piece is None:
            return None
        pieces.append(piece)
        position = token.end()
    return "".join(pieces)


def _translated_token(token: re.Match[str]) -> str | None:
    if token["plain"] is not None:
        return _PLAIN.get(token["plain"], token["plain"])
    if token["escaped"] is not None:
        return _ESCAPES.get(token["escaped"], _plain_escape(token["escaped"]))
    members = _class_members(token["members"])
    if members is None:
        return None
    return f"(?:[^{members}]|{_SURROGATE})" if token["negated"] else f"[{members}]"


def _class_members(text: str) -> str | None:
    if re.search(r"&&|--|~~", text):
        return None  # set operations in ripgrep
    pieces = [
        _CLASS_ESCAPES.get(escape[1:], _plain_escape(escape[1:])) if escape.startswith("\\") else escape
        for escape in re.findall(r"\\.|[^\\]+", text, re.DOTALL)
    ]
    return None if None in pieces else "".join(piece for piece in pieces if piece)


def _plain_escape(char: str) -> str | None:
    if char in "tfr" or _META_CHARACTERS.fullmatch(char):
        return f"\\{char}"
    if char in "/\"'<>=!%,:;@_` ":
        return char
    return None
