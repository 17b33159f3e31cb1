"""`ci-agent` and `python -P -m ci_agent`: the one place where errors for a person become a line and an exit code."""

import errno
import gc
import os
import sys
import traceback
from typing import NoReturn

import click

from ci_agent.cli.app import cli
from ci_agent.cli.stderr import show_error
from ci_agent.errors import CIAgentError
from ci_agent.own_environment import refuse_inspection, withdraw_environment

EXIT_NEGATIVE = 1
EXIT_INTERNAL = 70

_STDOUT_TAKES_NOTHING = {errno.EPIPE, errno.ENOSPC}
"""What a closed pipe and a full disk answer. Errors of other files have become a CIAgentError before they come here."""

_COLLECTING = (50_000, 20, 20)
"""Modules and rules are made once and kept: to look through them for garbage as often as is usual takes a tenth of the
time of a short command."""


def main() -> None:
    """Run the command line and exit; never returns."""
    gc.set_threshold(*_COLLECTING)
    environment = withdraw_environment()
    refuse_inspection()
    try:
        exit_code = cli.main(prog_name="ci-agent", standalone_mode=False, obj=environment) or 0
        if sys.stdout is not None:
            sys.stdout.flush()
        sys.exit(exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except OSError as error:
        if error.errno not in _STDOUT_TAKES_NOTHING:
            _end_with_a_bug()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python tries again at exit, and ends with a code of its own
        print(f"ci-agent: stdout cannot be written: {os.strerror(error.errno or 0)}", file=sys.stderr)
        sys.exit(EXIT_NEGATIVE)
    except CIAgentError as error:
        show_error(error)
        sys.exit(error.exit_code)
    except Exception:  # noqa: BLE001 - the boundary: a bug gets its traceback and its own exit code
        _end_with_a_bug()


def _end_with_a_bug() -> NoReturn:
    traceback.print_exc()
    print("ci-agent: internal error: this is a bug in ci-agent, please report it", file=sys.stderr)
    sys.exit(EXIT_INTERNAL)


if __name__ == "__main__":
    main()
