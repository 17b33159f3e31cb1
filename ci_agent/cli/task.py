"""`ci-agent task`: look at task files before a run does."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from ci_agent.cli.options import echo_json, format_option
from ci_agent.errors import CIAgentError, ConfigurationError, InvalidFileError
from ci_agent.git_files import read_named_file
from ci_agent.json_types import JsonObject
from ci_agent.output_schema import read_output_schema
from ci_agent.ready_policy import load_policy
from ci_agent.spelling import counted
from ci_agent.strict_yaml import YamlDocument, load_yaml
from ci_agent.tasks import Task, load_task
from ci_agent.tasks.document import InputModel, TaskDocument, TaskLimits


@click.group("task", epilog="Example: ci-agent task check tasks/*.yaml")
def task_command() -> None:
    """Check task files, and describe their format."""


@task_command.command(
    "check", short_help="Load tasks and all that they name.", epilog="Example: ci-agent task check tasks/*.yaml"
)
@click.argument("tasks", metavar="FILE...", nargs=-1, required=True)
@format_option
def check_command(tasks: tuple[str, ...], output_format: str) -> int:
    """Load each task with all that it names: policy, schema, context files, tools, reports. Nothing is run.

    Exits 3 when one cannot be run; the others are checked all the same.
    """
    checked = [_check(path) for path in tasks]
    if output_format == "json":
        echo_json([_as_json(path, found) for path, found in zip(tasks, checked, strict=True)])
    else:
        for path, found in zip(tasks, checked, strict=True):
            click.echo(_line(path, found), err=isinstance(found, CIAgentError))
    return ConfigurationError.exit_code if any(isinstance(found, CIAgentError) for found in checked) else 0


@task_command.command("schema", epilog="Example: ci-agent task schema > task.schema.json")
def schema_command() -> int:
    """Print the JSON Schema of task files, for editors."""
    from ci_agent.strict_yaml.editor_schema import editor_schema  # noqa: PLC0415 - reads sources, for this alone

    echo_json(editor_schema(TaskDocument, (InputModel, TaskLimits), title="ci-agent task"))
    return 0


def _check(path: str) -> Task | CIAgentError:
    try:
        task = load_task(path)
        _require_what_it_names(task)
    except CIAgentError as error:
        return error
    return task


def _require_what_it_names(task: Task) -> None:
    """InvalidFileError at the place in the task where the policy or a file is named that cannot be read."""
    read = load_yaml(read_named_file(task.file, "task"), task.file, model=TaskDocument)
    with _blamed_on(read, ("policy",)):
        load_policy(task.policy)
    for index, file in enumerate(task.context_files):
        with _blamed_on(read, ("context_files", index)):
            read_named_file(file, "context file")
    if task.append_system_file is not None:
        with _blamed_on(read, ("append_system_file",)):
            read_named_file(task.append_system_file, "system prompt file")
    if task.output_schema_file is not None:
        with _blamed_on(read, ("output_schema",)):
            read_output_schema(task.output_schema_file)


@contextmanager
def _blamed_on(read: YamlDocument, path: Sequence[str | int]) -> Iterator[None]:
    try:
        yield
    except InvalidFileError:  # says itself where it is wrong
        raise
    except ConfigurationError as error:
        raise read.error(path, str(error)) from error


def _line(path: str, found: Task | CIAgentError) -> str:
    if isinstance(found, CIAgentError):
        text = str(found)
        return text if text.startswith(path) else f"{path}: {text}"
    inputs = found.document.inputs
    needed = [name for name, spec in inputs.items() if spec.default is None]
    told = f", needs {', '.join(needed)}" if needed else ""
    return f"{path}: policy {found.policy}, {counted(len(inputs), 'input')}{told}"


def _as_json(path: str, found: Task | CIAgentError) -> JsonObject:
    if isinstance(found, CIAgentError):
        return {"task": path, "valid": False, "error": str(found)}
    inputs = found.document.inputs
    return {
        "task": path,
        "valid": True,
        "policy": found.policy,
        "description": found.document.description,
        "inputs": {name: spec.model_dump(exclude_none=True) for name, spec in inputs.items()},
    }
