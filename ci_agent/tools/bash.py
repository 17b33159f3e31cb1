"""The `bash` tool: one command line in the workspace."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.process import HeadAndTail, OnOutput, ProcessCancelled, Processes
from ci_agent.sandbox.confinement import Confine, leave_unconfined
from ci_agent.tool import OnUpdate, Tool, ToolResult
from ci_agent.tools.bash_program import USUAL_FOLDERS, find_bash
from ci_agent.tools.command_output import present_ending, present_unfinished
from ci_agent.tools.define import closed_object, text_property, text_result
from ci_agent.tools.spill import AsItIs, NewFilter, open_spill
from ci_agent.tools.truncate import MAX_BYTES, MAX_LINES
from ci_agent.workspace import Workspace

DEFAULT_BASH_TIMEOUT_S = 120.0
MAX_BASH_TIMEOUT_S = 600.0
"""What the model may ask for with `timeout`, unless the person has set a time-out for all tools."""

UPDATE_EVERY_S = 0.5
"""At most, and only while output comes."""

_UPDATE_BYTES = 4_000

_ARGUMENT_BYTES = 100_000
"""Linux takes 131,072 bytes in one argument, its end included (MAX_ARG_STRLEN in linux/binfmts.h)."""

_DESCRIPTION = (
    "Run a command with bash in the workspace folder. Each call is a new shell: the current folder, variables "
    "and background processes do not last from one call to the next. There is no terminal and no input; "
    "what asks a question fails. stdout and stderr come together, in order; of long output the beginning and "
    f"the end ({MAX_BYTES // 1000} kB or {MAX_LINES:,} lines in all). An exit status other than 0 is an error."
)

# The command is all arguments joined, run with the word splitting and the arguments that it would have alone.
_JOINING = rb"""IFS=; eval "IFS=\$' \t\n'; set --; $*" """.rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class BashSettings:
    default_timeout_s: float = DEFAULT_BASH_TIMEOUT_S
    max_timeout_s: float = MAX_BASH_TIMEOUT_S
    spill_folder: Path | None = None
    """Takes the whole output of each call in a new file, which the details name."""
    spill_filter: NewFilter = AsItIs
    """What that output goes through before it is written down."""
    usual_folders: Sequence[str] = USUAL_FOLDERS
    """Where bash is looked for, then on PATH."""
    confine: Confine = leave_unconfined
    """Asked right before each call how its commands are kept in."""


_USUAL = BashSettings()


def create_bash_tool(
    workspace: Workspace, environment: Mapping[str, str], processes: Processes, settings: BashSettings = _USUAL
) -> Tool:
    """`environment` is what commands get, all of it: see `child_environment`. Bash is looked for at the first call."""
    bash: str | None = None

    def execute(call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
        nonlocal bash
        del call_id
        bash = bash or find_bash(environment, workspace, processes, cancel, settings.usual_folders)
        argv: list[str | bytes] = [bash, "--noprofile", "--norc", "-c", "--", *_after_dash_c(arguments["command"])]
        timeout_s = min(float(arguments.get("timeout", settings.default_timeout_s)), settings.max_timeout_s)
        confined = settings.confine(arguments)
        with open_spill(settings.spill_folder, prefix="bash-", new_filter=settings.spill_filter) as spill:
            try:
                result = processes.run(
                    argv,
                    cwd=workspace.root,
                    env={**environment, **confined.environment},
                    timeout_s=timeout_s,
                    cancel=cancel,
                    on_output=_each(spill.write, _reporting(on_update)),
                    confinement=confined.confinement,
                )
            except ProcessCancelled as cancelled:
                on_update(present_unfinished(cancelled.result, spill.details))
                raise
        return present_ending(
            result,
            _time_out(timeout_s, settings.max_timeout_s),
            spill.details,
            when_refused=confined.explanation,
            when_unreachable=confined.explanation_of_network,
        )

    parameters = _parameters(settings.default_timeout_s, settings.max_timeout_s)
    return Tool("bash", _DESCRIPTION, parameters, execute, execution_mode="sequential")


def _parameters(default_timeout_s: float, max_timeout_s: float) -> JsonObject:
    told = f"Seconds after which it is killed. Default {default_timeout_s:g}, at most {max_timeout_s:g}."
    return closed_object(
        {
            "command": text_property("The command line, as one would type it; may have several lines."),
            "timeout": {
                "type": "number",
                "description": told,
                "exclusiveMinimum": 0,
                # A person's shorter time-out holds all calls; it makes none of them wrong.
                "maximum": max(max_timeout_s, MAX_BASH_TIMEOUT_S),
            },
            "description": text_property("What the command is for, in a few words, for the record."),
        },
        required=["command"],
    )


def _after_dash_c(command: str) -> list[bytes]:
    """The command, then $0; a command too long for one argument comes in several, after what joins them."""
    data = _encode(command)
    if len(data) <= _ARGUMENT_BYTES:
        return [data, b"bash"]
    pieces = [data[start : start + _ARGUMENT_BYTES] for start in range(0, len(data), _ARGUMENT_BYTES)]
    return [_JOINING, b"bash", *pieces]


def _encode(command: str) -> bytes:
    if "\0" in command:
        raise ToolError(
            f"command contains a NUL character at position {command.index(chr(0))}; no command line can. "
            "To print one use printf '\\0'."
        )
    try:
        return command.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"command contains the lone surrogate U+{ord(command[error.start]):04X} at position {error.start}, which "
            "is no character; send the character itself."
        ) from error


def _each(*consumers: OnOutput) -> OnOutput:
    def on_output(chunk: bytes) -> None:
        for consume in consumers:
            consume(chunk)

    return on_output


def _reporting(on_update: OnUpdate) -> OnOutput:
    """Shows the last of the output now and then."""
    latest = HeadAndTail(0, _UPDATE_BYTES)
    next_update = time.monotonic() + UPDATE_EVERY_S

    def on_output(chunk: bytes) -> None:
        nonlocal next_update
        latest.append(chunk)
        if time.monotonic() >= next_update:
            next_update = time.monotonic() + UPDATE_EVERY_S
            on_update(text_result(latest.taken().tail.decode("utf-8", "replace")))

    return on_output


def _time_out(timeout_s: float, max_timeout_s: float) -> str:
    advice = f"; timeout may be up to {max_timeout_s:g}" if timeout_s < max_timeout_s else ""
    return f"timed out after {timeout_s:g} s and was killed; what it printed until then is above{advice}"
