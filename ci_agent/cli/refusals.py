"""A run that is refused tells the step of the GitHub workflow and its reports why, when it was to tell them how it
ended; one that is quiet, and so speaks in a mail, begins with a line for the subject."""

import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import click

from ci_agent.ci_services.action_inputs import inputs_for
from ci_agent.ci_services.checkout import find_checkout
from ci_agent.ci_services.github_step import Published, publish_refusal
from ci_agent.ci_services.missing_key import said_for_the_service
from ci_agent.cli.destinations import RESULTS
from ci_agent.cli.report_files import write_refusal_reports
from ci_agent.cli.stderr import hide_secrets_of, notes_of
from ci_agent.cli.streams import write_stream
from ci_agent.cli.variables import PREFIX, values_of_variable
from ci_agent.errors import CIAgentError, InvalidFileError, MissingKeyError
from ci_agent.reports.failure import refusal_lines
from ci_agent.reports.places import Place, source_place
from ci_agent.reports.refusal import Refusal
from ci_agent.terminal import printable
from ci_agent.transcript.journal import JOURNAL_SUFFIX
from ci_agent.workspace import real_path

_TRUE: Final = frozenset({"1", "true", "t", "yes", "y", "on"})
"""What click takes for a flag's variable."""


class PublishingCommand(click.Command):
    """A command with `--publish` and `--quiet`, whose errors are told as those ask for, those of its own command line
    among them."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        environment: Mapping[str, str] = (parent and parent.find_object(dict)) or {}
        with _told(_wishes_of(tuple(args), environment), environment), self._for_its_reader(environment):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        flags = ctx.params
        others = [file for name in RESULTS for file in _places(name, flags[name])]
        wishes = _Wishes(flags["publish"], flags["report"], others, flags["workspace"] if flags["quiet"] else None)
        environment: Mapping[str, str] = ctx.find_object(dict) or {}
        with _told(wishes, environment), self._for_its_reader(environment):
            return super().invoke(ctx)

    @contextmanager
    def _for_its_reader(self, environment: Mapping[str, str]) -> Iterator[None]:
        """What a person can do in the place that started the command."""
        try:
            yield
        except MissingKeyError as error:
            raise said_for_the_service(error, environment) from error
        except (click.ClickException, CIAgentError) as error:
            flags = [flag for parameter in self.params for flag in parameter.opts]
            line = inputs_for(_message(error), environment, flags)
            if line is not None:
                error.add_note(line)
            raise


class _ToldError(CIAgentError):
    """Of a run that was refused, when all has been said: there is no line left to print."""

    def __init__(self, exit_code: int) -> None:
        super().__init__()
        self.exit_code = exit_code


class _Wishes(NamedTuple):
    published: Collection[Published]
    reports: Collection[str]
    """FORMAT=FILE, or what was meant for it."""
    others: Collection[str]
    """Files for other results of the run."""
    mailed_workspace: str | None
    """None: it is not quiet, so that no mail is expected."""


def _wishes_of(args: Sequence[str], environment: Mapping[str, str]) -> _Wishes:
    """Of a command line that may be wrong in all else."""
    options = args[: args.index("--")] if "--" in args else args
    kinds = _asked("publish", options, environment)
    workspace = _asked("workspace", options, environment) or ["."]
    quiet = "--quiet" in options or environment.get("CI_AGENT_QUIET", "").lower() in _TRUE
    reports = _asked("report", options, environment)
    published = [kind for kind in get_args(Published) if kind in kinds]
    others = [file for name in RESULTS for said in _asked(name, options, environment) for file in _places(name, said)]
    return _Wishes(published, reports, others, workspace[-1] if quiet else None)


def _places(name: str, file: str | None) -> Iterator[str]:
    if file is not None:
        yield from (file, f"{file}{JOURNAL_SUFFIX}") if name == "transcript" else (file,)


def _asked(name: str, options: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """What the command line says of a parameter's flag, or else its variable."""
    flag, variable = f"--{name.replace('_', '-')}", f"{PREFIX}{name.upper()}"
    behind = [after for word, after in pairwise(options) if word == flag]
    glued = [word.removeprefix(f"{flag}=") for word in options if word.startswith(f"{flag}=")]
    return [*behind, *glued] or values_of_variable(environment.get(variable, ""))


@contextmanager
def _told(wishes: _Wishes, environment: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except (click.ClickException, CIAgentError) as error:
        refusal = _refusal(error, environment)
        if wishes.mailed_workspace is not None:
            where = hide_secrets_of(environment)(_absolute(wishes.mailed_workspace))
            for line in refusal_lines(refusal, where):
                _print(line)
        for problem in publish_refusal(wishes.published, refusal, environment, _print):
            _print(f"warning: {printable(problem)}")
        for problem in write_refusal_reports(wishes.reports, wishes.others, refusal):
            _print(f"warning: {printable(problem)}")
        if wishes.mailed_workspace is not None:
            raise _ToldError(error.exit_code) from error
        raise


def _refusal(error: click.ClickException | CIAgentError, environment: Mapping[str, str]) -> Refusal:
    message = "\n".join([_message(error), *notes_of(error)])
    told = "\n".join(map(printable, hide_secrets_of(environment)(message).splitlines()))
    place = _place(error, environment) if isinstance(error, InvalidFileError) else None
    return Refusal(told, error.exit_code, place)


def _message(error: click.ClickException | CIAgentError) -> str:
    return error.format_message() if isinstance(error, click.ClickException) else str(error)


def _absolute(path: str) -> str:
    with suppress(OSError):  # the current folder is gone
        return os.path.abspath(path)
    return path


def _place(error: InvalidFileError, environment: Mapping[str, str]) -> Place | None:
    with suppress(OSError):  # the current folder is gone
        checkout = find_checkout(real_path(Path.cwd()), environment)
        return source_place(f"{error.file}:{error.line}", asdict(checkout))
    return None


def _print(line: str) -> None:
    with suppress(OSError):
        write_stream(sys.stderr, [line, "\n"])
