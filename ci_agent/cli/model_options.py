"""The options of `run` that say which model is asked, how it is reached and what it is asked for."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from ci_agent.cli.key_file import read_key
from ci_agent.cli.options import POSITIVE, Amount, Count, blamed_on, option
from ci_agent.provider import ThinkingLevel
from ci_agent.providers.settings import ModelSettings
from ci_agent.providers.shrinking import ShrinkMode
from ci_agent.providers.table import PROVIDERS, model_problem

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_COUNT = Count()
_DEFAULTS = ModelSettings()
_FIRST_BYTE_S = _DEFAULTS.first_byte_timeout_s

_OPTIONS = (
    option("--model", metavar="PROVIDER:MODEL", help="The model to ask."),
    option(
        "--fallback-model",
        metavar="PROVIDER:MODEL",
        multiple=True,
        help="Ask this one when the one before gave up. Repeatable.",
    ),
    option("--base-url", metavar="URL", help="Where the model's server is, in place of the provider's own."),
    option(
        "--api-key-file",
        metavar="FILE",
        help="Read the key from FILE instead of the provider's variable; /dev/fd/3 is a descriptor that you opened.",
    ),
    option("--thinking", type=click.Choice(get_args(ThinkingLevel)), help="How much the model thinks first."),
    option("--temperature", type=Amount(min=0, max=2), metavar="NUMBER", help="Sampling temperature."),
    option("--max-output-tokens", type=_COUNT, help="Of each answer, its thinking included."),
    option(
        "--shrink",
        type=click.Choice(get_args(ShrinkMode)),
        default=_DEFAULTS.shrink,
        show_default=True,
        help="What may go when the conversation gets too long for the model: nothing, old results, or old turns too, "
        "for a summary.",
    ),
    option("--models-file", metavar="FILE", help="Limits and prices of models of your own, in YAML."),
    option("--ca-file", metavar="FILE", help="Trust the certificates in FILE in place of the usual ones."),
    option("--allow-http", is_flag=True, help="Allow a --base-url on another machine that is not encrypted."),
    option(
        "--first-byte-timeout",
        type=POSITIVE,
        metavar="SECONDS",
        default=_FIRST_BYTE_S,
        help=f"How long the model's server may take to begin its answer. [default: {_FIRST_BYTE_S:g}]",
    ),
    option(
        "--idle-timeout",
        type=POSITIVE,
        metavar="SECONDS",
        default=_DEFAULTS.idle_timeout_s,
        help=f"Longest silence of the server once its answer has begun. [default: {_DEFAULTS.idle_timeout_s:g}]",
    ),
    option(
        "--request-timeout",
        type=POSITIVE,
        metavar="SECONDS",
        default=_DEFAULTS.request_timeout_s,
        help=f"One request to the model, from start to end. [default: {_DEFAULTS.request_timeout_s:g}]",
    ),
    option(
        "--attempts",
        type=_COUNT,
        default=_DEFAULTS.attempts,
        show_default=True,
        help="How often one request is tried while its failures may pass.",
    ),
)


def model_options(command: Decorated) -> Decorated:
    """All of them, in the order of the help."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def read_model_settings(flags: Mapping[str, Any]) -> ModelSettings:
    """What the flags say. BadParameter for names of models that are none, ConfigurationError for files."""
    with blamed_on("fallback_model"):
        for name in flags["fallback_model"]:
            check_model(name, "--fallback-model")
            _require_one_model(name)
    with blamed_on("api_key_file"):
        api_key = None if flags["api_key_file"] is None else read_key(flags["api_key_file"])
    return ModelSettings(
        base_url=flags["base_url"],
        api_key=api_key,
        fallbacks=flags["fallback_model"],
        thinking=flags["thinking"],
        temperature=flags["temperature"],
        max_output_tokens=flags["max_output_tokens"],
        shrink=flags["shrink"],
        models_file=None if flags["models_file"] is None else Path(flags["models_file"]),
        ca_file=None if flags["ca_file"] is None else Path(flags["ca_file"]),
        allow_http=flags["allow_http"],
        first_byte_timeout_s=flags["first_byte_timeout"],
        idle_timeout_s=flags["idle_timeout"],
        request_timeout_s=flags["request_timeout"],
        attempts=flags["attempts"],
    )


def _require_one_model(text: str) -> None:
    """BadParameter for several in one: nobody would notice before the run's own model gives up."""
    second = next((word for word in text.split()[1:] if word.partition(":")[0] in PROVIDERS), None)
    if second is not None:
        problem = f"{text!r} holds more than one model: give {second!r} and the others one by one"
        raise click.BadParameter(problem, param_hint="--fallback-model")


def check_model(text: str, flag: str) -> None:
    """BadParameter when it does not have the form of a model's name."""
    problem = model_problem(text)
    if problem is not None:
        raise click.BadParameter(problem, param_hint=flag)
