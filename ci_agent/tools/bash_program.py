"""Which bash runs commands: one of version 5 or later, as whose text they are decided on."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.process import Processes
from ci_agent.workspace import Workspace

USUAL_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/opt/local/bin")
"""Those of systems and of their package managers; on a PATH that others have a say in, anything may be called bash."""

_LEAST_MAJOR = 5
_ASK_VERSION = ("--noprofile", "--norc", "-c", 'echo "bash $BASH_VERSION"')
_VERSION = re.compile(rb"bash (([0-9]+)\.[0-9]+)[^\n]*\n")
_TIMEOUT_S = 20.0


def find_bash(
    environment: Mapping[str, str],
    workspace: Workspace,
    processes: Processes,
    cancel: CancelToken,
    usual: Sequence[str] = USUAL_FOLDERS,
) -> str:
    """The first bash that is new enough, of the usual folders, then of PATH. ToolError, which says what to do, if none.

    One in the workspace is never taken: a task or a dependency may have put it there.
    """
    found: list[str] = []
    for path in _candidates(environment, usual):
        if _lies_within(workspace, path):
            found.append(f"{path} lies in the workspace {workspace.root}, where anybody may have put it")
            continue
        version, major = _ask_version(path, environment, processes, cancel)
        if major >= _LEAST_MAJOR:
            return path
        found.append(f"{path} is {version}")
    raise ToolError(_none_found(found))


def _none_found(found: Sequence[str]) -> str:
    return (
        f"commands need bash {_LEAST_MAJOR} or later, and {'; '.join(found) or 'there is none on PATH'}. "
        "Install it (macOS: brew install bash; Debian and Ubuntu: apt-get install bash) and put its folder on PATH; it "
        "must lie outside of the workspace."
    )


def _candidates(environment: Mapping[str, str], usual: Sequence[str]) -> Iterator[str]:
    folders = [folder for folder in environment.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    for folder in dict.fromkeys((*usual, *folders)):
        program = shutil.which("bash", path=folder)
        if program:
            yield program


def _lies_within(workspace: Workspace, program: str) -> bool:
    return workspace.contains(Path(program)) or workspace.contains(Path(program).resolve())


def _ask_version(
    path: str, environment: Mapping[str, str], processes: Processes, cancel: CancelToken
) -> tuple[str, int]:
    # A locale that is not installed, as in many small images, makes bash warn before it answers.
    plain = {**environment, "LC_ALL": "C"}
    result = processes.run([path, *_ASK_VERSION], cwd=Path("/"), env=plain, timeout_s=_TIMEOUT_S, cancel=cancel)
    match = _VERSION.fullmatch(result.output.head)
    return (match[1].decode(), int(match[2])) if match else ("of no version that it tells", 0)
