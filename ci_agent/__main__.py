"""`ci-agent` and `python -P -m ci_agent`: the one place where errors for a person become a line and an exit code."""

import errno
import gc
import os
import sys

import click

from ci_agent.cli.app import cli
from ci_agent.cli.stderr import Hide, hide_secrets_of, show_error, show_traceback, show_usage_error
from ci_agent.cli.streams import give_up, prepare_streams
from ci_agent.errors import EXIT_NEGATIVE, CIAgentError, ConfigurationError, InternalError, system_refusal
from ci_agent.own_environment import refuse_inspection, withdraw_environment
from ci_agent.signals import EndedBySignal, end_on_signals

_STDOUT_TAKES_NOTHING = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF})
"""What a closed pipe, a full disk and a closed descriptor answer. Errors of files bear the file's name, or have become
a CIAgentError before they come here."""

_COLLECTING = (50_000, 20, 20)
"""Modules and rules are made once and kept: to look through them for garbage as often as is usual takes a tenth of the
time of a short command."""


def main() -> None:
    """Run the command line and exit; never returns."""
    if sys.argv[1:2] == ["run"]:
        end_on_signals()
    gc.set_threshold(*_COLLECTING)
    prepare_streams()
    environment = withdraw_environment()
    refuse_inspection()
    hide = hide_secrets_of(environment)
    try:
        exit_code = cli.main(prog_name="ci-agent", standalone_mode=False, obj=environment) or 0
        sys.stdout.flush()
    except click.ClickException as error:
        show_usage_error(error, hide)
        exit_code = error.exit_code
    except click.Abort:
        exit_code = 130
    except CIAgentError as error:
        show_error(error, hide)
        exit_code = error.exit_code
    except EndedBySignal as ended:
        show_error(CIAgentError(f"cancelled, exit code {ended.exit_code} ({ended.reason})"))
        exit_code = ended.exit_code
    except Exception as error:  # noqa: BLE001 - the boundary: a bug gets its traceback and its own exit code
        exit_code = _end_of(error, hide)
    sys.exit(exit_code)


def _end_of(error: Exception, hide: Hide) -> int:
    """Say what happened; returns the exit code."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _STDOUT_TAKES_NOTHING:
        give_up(sys.stdout)
        show_error(CIAgentError(f"stdout cannot be written: {os.strerror(error.errno)}"))
        return EXIT_NEGATIVE
    refusal = _homeless(error) or system_refusal(error)
    if refusal is None:
        show_traceback(error, hide)
        refusal = InternalError("internal error: this is a bug in ci-agent, please report it")
    show_error(refusal, hide)
    return refusal.exit_code


def _homeless(error: Exception) -> CIAgentError | None:
    """For a person whose current folder has been removed, which nothing relative can be read without."""
    if not isinstance(error, FileNotFoundError) or error.filename is not None:
        return None
    try:
        os.getcwd()
    except FileNotFoundError:
        return ConfigurationError("the current folder does not exist any more: go to one that does")
    return None


if __name__ == "__main__":
    main()
