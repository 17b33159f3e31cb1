"""`ci-agent` and `python -P -m ci_agent`: the one place where errors for a person become a line and an exit code."""

import sys
import traceback

import click

from ci_agent.cli.app import cli
from ci_agent.errors import CIAgentError
from ci_agent.terminal import printable

EXIT_INTERNAL = 70


def main() -> None:
    """Run the command line and exit; never returns."""
    try:
        sys.exit(cli.main(prog_name="ci-agent", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except CIAgentError as error:
        for line in str(error).splitlines():
            print(f"ci-agent: {printable(line)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except Exception:  # noqa: BLE001 - the boundary: a bug gets its traceback and its own exit code
        traceback.print_exc()
        print("ci-agent: internal error: this is a bug in ci-agent, please report it", file=sys.stderr)
        sys.exit(EXIT_INTERNAL)


if __name__ == "__main__":
    main()
