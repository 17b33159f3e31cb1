"""Options as every command has them: a flag, a `CI_AGENT_*` variable, a line in the file of `--config`."""

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from ci_agent.errors import InvalidFileError
from ci_agent.json_types import Json
from ci_agent.strict_yaml import nearest, read_yaml
from ci_agent.text_files import MAX_TEXT_FILE_BYTES, decode_text, read_text_file

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

EXIT_NEGATIVE = 1
"""The row `negative` of the table of exit codes."""


def option(flag: str, *more: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
    """`click.option` that also reads `CI_AGENT_` and the flag's name; `attributes` are click's own."""
    variable = "CI_AGENT_" + flag.removeprefix("--").upper().replace("-", "_")
    return click.option(flag, *more, envvar=variable, **attributes)


def read_config(ctx: click.Context, _parameter: click.Parameter, path: str | None) -> str | None:
    """Callback of `--config`: what the file says becomes the default of this command's options."""
    if path is None:
        return None
    document = read_yaml(path, "config file")
    if not isinstance(document.value, dict):
        raise document.error((), "a config file holds options by name, such as `policy: read-only`")
    names = {
        flag.removeprefix("--"): parameter.name
        for parameter in ctx.command.params
        if isinstance(parameter, click.Option) and parameter.name not in {"config", "help"}
        for flag in parameter.opts
        if flag.startswith("--")
    }
    for key in document.value:
        if key not in names:
            problem = f"no option is called {key!r}{did_you_mean(key, names)}"
            raise InvalidFileError(path, *document.key_place((key,)), problem)
    ctx.default_map = {names[key]: value for key, value in document.value.items()}
    return path


def read_text_or_stdin(path: str, what: str) -> str:
    """The text of a file, or of stdin for `-`; nothing else ever reads stdin."""
    if path != "-":
        return read_text_file(path, what)
    data = sys.stdin.buffer.read(MAX_TEXT_FILE_BYTES + 1)
    if len(data) > MAX_TEXT_FILE_BYTES:
        raise click.UsageError(f"{what} on stdin is larger than {MAX_TEXT_FILE_BYTES} bytes")
    return decode_text(data, "<stdin>")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion to append to an error; empty when nothing is close."""
    meant = nearest(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def format_option(command: Decorated) -> Decorated:
    """`--format text|json`, passed as `output_format`."""
    choice = click.Choice(["text", "json"])
    return click.option("--format", "output_format", type=choice, default="text", show_default=True)(command)


def policy_option(command: Decorated) -> Decorated:
    """`--policy NAME|FILE`, required, passed as `policy_name`."""
    return click.option("--policy", "policy_name", metavar="NAME|FILE", envvar="CI_AGENT_POLICY", required=True)(
        command
    )


def workspace_option(command: Decorated) -> Decorated:
    """`--workspace DIR`, the current folder without it."""
    text = "The folder that paths are relative to."
    return click.option("--workspace", metavar="DIR", default=".", show_default=True, help=text)(command)


def echo_json(value: Json, *, indent: int | None = 2) -> None:
    """Print JSON in which no text is a command to GitHub's runner, as `##[` would be anywhere in a line."""
    click.echo(json.dumps(value, indent=indent).replace("##[", "#\\u0023["))
