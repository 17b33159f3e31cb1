"""`ci-agent pre-commit`: a task over the files that are about to be committed, as a hook of pre-commit."""

import os

import click

from ci_agent.cli.run import run_command
from ci_agent.cli.stderr import show_error
from ci_agent.errors import EXIT_NEGATIVE, CIAgentError
from ci_agent.tasks import load_task


@click.command(
    "pre-commit",
    epilog="Example: ci-agent pre-commit tasks/review.yaml -- src/a.py",
    # After the task everything is a file's name, whatever it begins with.
    context_settings={"allow_interspersed_args": False},
)
@click.option("--model", metavar="PROVIDER:MODEL", help="In place of the task's model.")
@click.option("--input", "inputs", metavar="NAME=VALUE", multiple=True, help="An input of the task. Repeatable.")
@click.argument("task", metavar="TASK")
@click.argument("files", metavar="[--] FILES...", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def pre_commit_command(
    context: click.Context, model: str | None, inputs: tuple[str, ...], task: str, files: tuple[str, ...]
) -> int:
    """Run the task file TASK over FILES: silent and exit 0 when all is well, else a report and exit 1.

    Nothing is written but what the task's policy lets the agent write and what the task says.
    """
    files = files[1:] if files[:1] == ("--",) else files
    arguments = ["--quiet", "--task", task, *(word for each in inputs for word in ("--input", each))]
    arguments += ["--model", model] if model else []
    try:
        _require_files(task, files)
        code = run_command.main(
            [*arguments, "--", *files], prog_name="ci-agent run", standalone_mode=False, obj=context.obj
        )
    except CIAgentError as error:
        show_error(error)
        code = error.exit_code
    except click.UsageError as error:  # what its usage would say of `run` is no help here
        show_error(CIAgentError(error.format_message()))
        code = error.exit_code
    return EXIT_NEGATIVE if code else 0


def _require_files(task: str, files: tuple[str, ...]) -> None:
    """Raises UsageError: over nothing, or over what is not there, a run would only cost."""
    if not files and load_task(task).takes_files:
        raise click.UsageError(f"there is nothing to look at: name the files behind {task}, whose prompt is about them")
    for file in files:
        if not os.path.lexists(file):
            hint = "; options stand before the task" if file.startswith("-") else ""
            raise click.UsageError(f"there is no file {file!r} here{hint}")
