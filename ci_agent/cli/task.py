"""`ci-agent task`: look at task files before a run does."""

import click

from ci_agent.cli.model_options import check_model
from ci_agent.cli.options import echo_json, format_option
from ci_agent.errors import CIAgentError, ConfigurationError
from ci_agent.json_types import JsonObject, parse_json
from ci_agent.output_schema import check_output_schema
from ci_agent.ready_policy import load_policy
from ci_agent.reports.table import FORMATS
from ci_agent.spelling import counted, did_you_mean
from ci_agent.tasks import Task, load_task
from ci_agent.tasks.document import InputModel, TaskDocument, TaskLimits
from ci_agent.text_files import read_text_file
from ci_agent.tools.table import TOOL_NAMES


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
    said = task.document
    load_policy(task.policy)
    for model in filter(None, [said.model, *(said.fallback_models or [])]):
        check_model(model, "model")
    for file in (*task.context_files, *filter(None, [task.append_system_file])):
        read_text_file(file, "file of the task")
    _require_schema(task)
    _require_known(task, "tool", said.tools or [], TOOL_NAMES)
    _require_known(task, "report", list(said.reports or {}), list(FORMATS))


def _require_schema(task: Task) -> None:
    schema = task.document.output_schema
    if task.output_schema_file is not None:
        try:
            schema = parse_json(read_text_file(task.output_schema_file, "output schema"))
        except ValueError as error:
            raise ConfigurationError(f"output schema {task.output_schema_file!r} is not JSON: {error}") from error
    if schema is not None and not isinstance(schema, dict):
        raise ConfigurationError(f"output schema {task.output_schema_file!r} is not a JSON object")
    if schema is not None:
        check_output_schema(schema)


def _require_known(task: Task, what: str, names: list[str], known: list[str] | tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f" ({', '.join(known)})"
            raise ConfigurationError(f"{task.file}: there is no {what} {name!r}{hint}")


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
