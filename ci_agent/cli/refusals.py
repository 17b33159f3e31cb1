"""A run that is refused tells the step of the GitHub workflow why, when it was to tell it how it ended."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, get_args

import click

from ci_agent.ci_services.checkout import find_checkout
from ci_agent.ci_services.github_step import Published, publish_refusal
from ci_agent.cli.stderr import hide_secrets_of
from ci_agent.cli.streams import write_stream
from ci_agent.errors import CIAgentError, InvalidFileError
from ci_agent.reports.places import Place, source_place
from ci_agent.reports.refusal import Refusal
from ci_agent.terminal import printable
from ci_agent.workspace import real_path

_FLAG: Final = "--publish"
_VARIABLE: Final = "CI_AGENT_PUBLISH"


class PublishingCommand(click.Command):
    """A command with `--publish` whose errors are published too, those of its own command line among them."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        environment: Mapping[str, str] = (parent and parent.find_object(dict)) or {}
        with _published(_asked_for(tuple(args), environment), environment):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _published(ctx.params["publish"], ctx.find_object(dict) or {}):
            return super().invoke(ctx)


def _asked_for(args: Sequence[str], environment: Mapping[str, str]) -> list[Published]:
    """What a command line asks to be published that may be wrong in all else."""
    options = args[: args.index("--")] if "--" in args else args
    words = [after for word, after in pairwise(options) if word == _FLAG]
    words += [word.removeprefix(f"{_FLAG}=") for word in options if word.startswith(f"{_FLAG}=")]
    words = words or environment.get(_VARIABLE, "").split()
    return [kind for kind in get_args(Published) if kind in words]


@contextmanager
def _published(kinds: Collection[Published], environment: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except (click.ClickException, CIAgentError) as error:
        _publish(kinds, error, environment)
        raise


def _publish(
    kinds: Collection[Published], error: click.ClickException | CIAgentError, environment: Mapping[str, str]
) -> None:
    message = error.format_message() if isinstance(error, click.ClickException) else str(error)
    told = "\n".join(map(printable, hide_secrets_of(environment)(message).splitlines()))
    place = _place(error, environment) if isinstance(error, InvalidFileError) else None
    for problem in publish_refusal(kinds, Refusal(told, error.exit_code, place), environment, _print):
        _print(f"warning: {printable(problem)}")


def _place(error: InvalidFileError, environment: Mapping[str, str]) -> Place | None:
    with suppress(OSError):  # the current folder is gone
        checkout = find_checkout(real_path(Path.cwd()), environment)
        return source_place(f"{error.file}:{error.line}", asdict(checkout))
    return None


def _print(line: str) -> None:
    with suppress(OSError):
        write_stream(sys.stderr, [line, "\n"])
