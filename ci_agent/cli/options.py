"""Options as every command has them: a flag, a `CI_AGENT_*` variable, a line in the file of `--config`."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from ci_agent.ci_services.action_inputs import INPUTS, is_action
from ci_agent.cli.variables import PREFIX, misspelt_variables, values_of_variable
from ci_agent.errors import ConfigurationError, InvalidFileError
from ci_agent.git_files import read_named_file
from ci_agent.json_types import Json
from ci_agent.spelling import did_you_mean
from ci_agent.strict_yaml import read_yaml
from ci_agent.terminal import inert_json
from ci_agent.text_files import MAX_TEXT_FILE_BYTES, decode_text

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_PLACES = "ci_agent.config_places"
"""Key of the context's `meta`: where in the config file the values stand, by the parameters' names."""

_LARGEST = 10**9

_CONFIG = "ci_agent.config"
"""Key of the context's `meta`: the path of the config file."""


_ADVICE: Final = {
    "--policy": "a run has one policy. To combine several, write one that names them: `extends: [NAME, FILE]`.",
    "--tools": "name all tools in one, with commas between.",
    "--append-system-file": "put both texts into one file.",
}
"""What to do in place of giving an option twice."""


class SourcedOption(click.Option):
    """An option whose wrong value is blamed on the variable that it came from, where several values are lines."""

    def value_from_envvar(self, ctx: click.Context) -> Any:
        if not self.multiple:
            return super().value_from_envvar(ctx)
        return values_of_variable(self.resolve_envvar_value(ctx) or "") or None

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        try:
            return super().process_value(ctx, value)
        except click.BadParameter as error:
            where = set_in(ctx, self)
            error.param_hint = f"{self.opts[0]}{where}" if where else error.param_hint
            if isinstance(error, click.MissingParameter) and "--policy" in self.opts:
                misspelt = misspelt_variables(ctx.command, ctx.find_object(dict) or {})
                slips = [each.problem for each in misspelt if each.is_slip]
                hint = " ".join(["Give a policy's file, or a shipped one's name (ci-agent policy list).", *slips])
                raise click.MissingParameter(hint, ctx, self) from error
            raise

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Where there are tasks, one of them may say what is required."""
        record = super().get_help_record(ctx)
        takes_tasks = any("--task" in parameter.opts for parameter in ctx.command.params)
        if record is None or not takes_tasks:
            return record
        return record[0], record[1].replace("[required]", "[required without --task]")


class OnceOption(SourcedOption):
    """An option that bounds a run: were the last one to count, a second one could loosen what the first one said."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:  # noqa: ARG002 - click's signature
        parser.add_option(self, self.opts, self.name, action="append")

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        said = dict(opts)
        given: Sequence[str] = said.pop(self.name or "", ())
        if len(given) > 1:
            advice = _ADVICE.get(self.opts[0], "give it once.")
            raise click.UsageError(f"{self.opts[0]} is given more than once ({', '.join(given)}): {advice}", ctx)
        if given:
            said[self.name or ""] = given[0]
        return super().consume_value(ctx, said)


class Count(click.IntRange):
    """How many of something, at least one."""

    name = "whole number"

    def __init__(self) -> None:
        super().__init__(min=1)


class Amount(click.FloatRange):
    """A number that can be a limit: infinity and not-a-number would be none, and clocks take nothing much larger."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number: float = super().convert(value, param, ctx)
        except click.BadParameter:
            if param is not None and param.metavar == "SECONDS" and _is_no_number(value):
                self.fail(f"{value!r} is not a valid number: seconds are wanted, such as 300.", param, ctx)
            raise
        if not number <= _LARGEST:
            self.fail(f"{value} is not a number up to {_LARGEST}.", param, ctx)
        return number


class VariableName(click.types.StringParamType):
    """The name of a variable. One that no variable can have would be looked for in vain, and nothing be hidden."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        name = str(value)
        if not name or "=" in name or any(map(str.isspace, name)):
            self.fail(f"{name!r} is not the name of a variable; several are given one by one.", param, ctx)
        return name


POSITIVE = Amount(min=0, min_open=True)
"""An amount of seconds or money."""


def _is_no_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return True
    return False


def set_in(ctx: click.Context, parameter: click.Parameter) -> str:
    """Where the value of an option came from, to be added to its name; empty for the command line."""
    source = ctx.get_parameter_source(parameter.name or "")
    if source is ParameterSource.ENVIRONMENT:
        named = INPUTS.get(parameter.opts[0]) if is_action(ctx.find_object(dict) or {}) else None
        return f" (the input {named})" if named else f" (the variable {parameter.envvar})"
    place = ctx.meta.get(_PLACES, {}).get(parameter.name) if source is ParameterSource.DEFAULT_MAP else None
    return f" ({place})" if place else ""


@contextmanager
def blamed_on(name: str) -> Iterator[None]:
    """What is wrong with the value of this parameter is said together with where the value came from."""
    try:
        yield
    except InvalidFileError:
        raise
    except ConfigurationError as error:
        where = place_of_option(name)
        raise (ConfigurationError(f"{error}{where}") if where else error) from error
    except click.BadParameter as error:
        error.param_hint = f"{error.param_hint}{place_of_option(name)}"
        raise


def place_of_option(name: str) -> str:
    """As `set_in`, of the parameter with this name of the command that runs."""
    ctx = click.get_current_context()
    return set_in(ctx, next(parameter for parameter in ctx.command.params if parameter.name == name))


def option(flag: str, *more: str, once: bool = False, **attributes: Any) -> Callable[[Decorated], Decorated]:
    """`click.option` that also reads `CI_AGENT_` and the flag's name; `attributes` are click's own."""
    variable = PREFIX + flag.removeprefix("--").upper().replace("-", "_")
    if isinstance(attributes.get("type"), Count):
        attributes.setdefault("metavar", "N")
    return click.option(flag, *more, envvar=variable, cls=OnceOption if once else SourcedOption, **attributes)


def read_config(ctx: click.Context, _parameter: click.Parameter, path: str | None) -> str | None:
    """Callback of `--config`: what the file says becomes the default of this command's options."""
    if path is None:
        return None
    ctx.meta[_CONFIG] = path
    document = read_yaml(path, "config file")
    if not isinstance(document.value, dict):
        raise document.error((), "a config file holds options by name, such as `policy: read-only`")
    flags = _options_by_flag(ctx.command)
    options = flags | {name.replace("-", "_"): parameter for name, parameter in flags.items()}  # as in task files
    for key in document.value:
        wrong = _key_problem(key, flags, document.value)
        if wrong:
            raise InvalidFileError(path, *document.key_place((key,)), wrong)
    for key, value in document.value.items():
        wrong = _problem(ctx, options[key], value)
        if wrong:
            raise document.error((key,), wrong)
    places = {key: document.place((key,)) for key in document.value}
    told = {options[key].name or key: f"{path}:{place.line}:{place.column}" for key, place in places.items()}
    add_defaults(ctx, {options[key].name or key: value for key, value in document.value.items()}, told, over=False)
    return path


def _options_by_flag(command: click.Command) -> dict[str, click.Option]:
    """Those that a config file may set, by their names without dashes."""
    return {
        flag.removeprefix("--"): parameter
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name not in {"config", "help", "offline", "output_format"}
        for flag in parameter.opts
        if flag.startswith("--")
    }


def _key_problem(key: str, flags: Mapping[str, click.Option], given: Mapping[str, Json]) -> str | None:
    """What is wrong with a key of the config file; None: it is an option's name."""
    name = key.replace("_", "-")
    if name not in flags:
        hint = did_you_mean(name, flags) or "; keys are the names of flags, such as `max-turns: 20`"
        return f"no option is called {key!r}{hint}"
    return f"{name} is given twice, also as {key}" if name != key and name in given else None


def given_config() -> str | None:
    """The config file that the command line or a variable names; None: there is none."""
    path: str | None = click.get_current_context().meta.get(_CONFIG)
    return path


def add_defaults(ctx: click.Context, values: Mapping[str, Any], places: Mapping[str, str], *, over: bool) -> None:
    """Make values the defaults of options, by their parameters' names; `over` those that other files have set, or
    beneath them, whichever is read first."""
    before = ctx.default_map or {}
    told = ctx.meta.get(_PLACES, {})
    ctx.default_map = {**before, **values} if over else {**values, **before}
    ctx.meta[_PLACES] = {**told, **places} if over else {**places, **told}


def _problem(ctx: click.Context, parameter: click.Option, value: Json) -> str | None:
    """Why the option cannot have a value of the config file; None: it can."""
    if parameter.is_flag and not isinstance(value, bool):
        return f"--{parameter.opts[0].lstrip('-')} is switched on or off: write true or false"
    if not parameter.is_flag and isinstance(value, bool | dict | None):
        return f"{parameter.opts[0]} takes a value of its own: write it as text or a number"
    if isinstance(value, list) != parameter.multiple:
        return f"{parameter.opts[0]} takes {'a list of values: put it in []' if parameter.multiple else 'one value'}"
    try:
        parameter.type_cast_value(ctx, value)
    except click.BadParameter as error:
        return f"{parameter.opts[0]}: {error.message}"
    return None


def read_text_or_stdin(path: str, what: str) -> str:
    """The text of a file, or of stdin for `-`; nothing else ever reads stdin."""
    if path != "-":
        return read_named_file(path, what)
    data = sys.stdin.buffer.read(MAX_TEXT_FILE_BYTES + 1)
    if len(data) > MAX_TEXT_FILE_BYTES:
        raise click.UsageError(f"{what} on stdin is larger than {MAX_TEXT_FILE_BYTES} bytes")
    return decode_text(data, "<stdin>")


def given_environment() -> dict[str, str]:
    """The environment that the command was started with; its secrets are no longer in `os.environ`."""
    given = click.get_current_context().find_object(dict)
    return dict(os.environ) if given is None else given


def format_option(command: Decorated) -> Decorated:
    """`--format text|json`, passed as `output_format`."""
    choice = click.Choice(["text", "json"])
    return click.option("--format", "output_format", type=choice, default="text", show_default=True)(command)


def policy_option(command: Decorated) -> Decorated:
    """`--policy NAME|FILE`, required, passed as `policy_name`."""
    return option("--policy", "policy_name", once=True, metavar="NAME|FILE", required=True)(command)


def workspace_option(command: Decorated) -> Decorated:
    """`--workspace DIR`, the current folder without it."""
    text = "The folder that paths are relative to."
    return click.option("--workspace", metavar="DIR", default=".", show_default=True, help=text)(command)


def echo_json(value: Json, *, indent: int | None = 2) -> None:
    """Print JSON in which no text is a command to the runner of a CI service, as `##[` would be anywhere in a line."""
    click.echo(inert_json(json.dumps(value, indent=indent)))
