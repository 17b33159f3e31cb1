"""The options of `run` that name a task file and give its inputs; what the file says becomes the options' defaults."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ci_agent.cli.options import add_defaults, blamed_on, option, place_of_option
from ci_agent.git_files import read_named_file
from ci_agent.json_types import JsonObject
from ci_agent.prompts import ContextText
from ci_agent.schedule.run_state import StateKey
from ci_agent.tasks import Task, load_task, read_inputs, render_task
from ci_agent.tasks.revisions import require_revisions
from ci_agent.text_files import read_text_file
from ci_agent.workspace import real_path

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_TASK = "ci_agent.task"
"""Key of the context's `meta`."""


def _read_task(ctx: click.Context, _parameter: click.Parameter, path: str | None) -> str | None:
    """Callback of `--task`."""
    if path is not None:
        task = load_task(path)
        ctx.meta[_TASK] = task
        add_defaults(ctx, _defaults(task), dict.fromkeys(_defaults(task), path), over=True)
    return path


_OPTIONS = (
    option(
        "--task",
        once=True,
        metavar="FILE",
        is_eager=True,
        callback=_read_task,
        help="Run a task file; PROMPT is then FILES.",
    ),
    option("--input", "inputs", metavar="NAME=VALUE", multiple=True, help="An input of the task. Repeatable."),
    option(
        "--input-file", "input_files", metavar="NAME=FILE", multiple=True, help="The same, from a file. Repeatable."
    ),
)


def task_options(command: Decorated) -> Decorated:
    """`--task`, `--input` and `--input-file`, passed as `task`, `inputs` and `input_files`."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def given_task() -> Task | None:
    """The task that the command line names; None: it names none."""
    task: Task | None = click.get_current_context().meta.get(_TASK)
    return task


def read_task_prompt(
    task: Task, flags: Mapping[str, Any], state: Mapping[StateKey, str]
) -> tuple[str, tuple[ContextText, ...]]:
    """The task's prompt with its inputs and files, and the texts that it shows as untrusted.

    `state`: what the last good run left, which inputs may ask for.
    """
    _refuse_prompt_file(task, flags)
    asked = {name: spec.state for name, spec in task.document.inputs.items() if spec.state is not None}
    left = {name: state[key] for name, key in asked.items() if key in state}
    given = {**left, **_given_inputs(flags)}
    values = read_inputs(task.document.inputs, given, task.file)
    require_revisions(task.document.inputs, values, Path(flags["workspace"]), task.file)
    _require_files(task, flags["prompt"], flags["workspace"])
    prompt, texts = render_task(task, values, flags["prompt"])
    return prompt, (*_context(task), *texts)


def _require_files(task: Task, files: Sequence[str], workspace: str) -> None:
    """Raises UsageError unless the prompt is about files that are there, or about none and there are none."""
    if files and not task.takes_files:
        problem = f"{task.file} takes no files: its prompt has no {{{{ files }}}}. Add it there, or give no files."
        raise click.UsageError(problem)
    if not files and task.takes_files:
        problem = f"{task.file} is about files, and none is named: write them behind all options, as in `-- a.txt`."
        raise click.UsageError(problem)
    if "" in files:
        raise click.UsageError("An empty name is no file: a variable in quotes that is empty gives one; leave it out.")
    for file in files:
        if not os.path.lexists(os.path.join(workspace, file)):
            hint = "git diff --name-only --diff-filter=d names no file that is deleted"
            raise click.UsageError(f"There is no file {file!r} in the workspace: name those that are there ({hint}).")
        if not _is_named_in(workspace, file):
            raise click.UsageError(f"{file!r} lies outside of the workspace: name files in it, or give --workspace.")


def _is_named_in(workspace: str, file: str) -> bool:
    """Whether the name stands in the workspace; a link there is one of its files, wherever it leads."""
    named = Path(os.path.abspath(workspace), file)
    place = real_path(named.parent) / named.name if named.name != ".." and named.is_symlink() else real_path(named)
    return place.is_relative_to(real_path(workspace))


def _refuse_prompt_file(task: Task, flags: Mapping[str, Any]) -> None:
    if flags["prompt_file"] is not None:
        raise click.UsageError(
            f"--prompt-file{place_of_option('prompt_file')} cannot be given beside --task: the prompt stands in "
            f"{task.file}. Leave one of them out, or show the file to the model with --context-file."
        )


def refuse_inputs_without_task(flags: Mapping[str, Any]) -> None:
    """Raises UsageError."""
    for name, flag in (("inputs", "--input"), ("input_files", "--input-file")):
        if flags[name]:
            where = place_of_option(name)
            raise click.UsageError(f"{flag}{where} gives inputs of a task: name it with --task FILE.")


def inline_schema(task: Task | None) -> JsonObject | None:
    """The output schema that stands in the task file itself."""
    schema = None if task is None else task.document.output_schema
    return schema if isinstance(schema, dict) else None


def _context(task: Task) -> tuple[ContextText, ...]:
    return tuple(ContextText(file, read_named_file(file, "context file")) for file in task.context_files)


def _given_inputs(flags: Mapping[str, Any]) -> dict[str, str]:
    with blamed_on("inputs"):
        inputs = _pairs(flags["inputs"], "--input")
    with blamed_on("input_files"):
        files = _files(flags["input_files"])
        for name in inputs.keys() & files.keys():
            raise click.BadParameter(f"{name} is given by --input, too", param_hint="--input-file")
    return inputs | files


def _pairs(given: tuple[str, ...], flag: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint=flag)
        if name in found:
            raise click.BadParameter(f"{name} is given twice", param_hint=flag)
        found[name] = value
    return found


def _files(given: tuple[str, ...]) -> dict[str, str]:
    pairs = _pairs(given, "--input-file")
    return {name: read_text_file(path, f"file of the input {name}") for name, path in pairs.items()}


def _defaults(task: Task) -> dict[str, Any]:
    """What the file says, by the names of the options' parameters."""
    said = task.document
    limits = said.limits
    values = {
        "policy": task.policy,
        "model": said.model,
        "fallback_model": said.fallback_models,
        "thinking": said.thinking,
        "tools": None if said.tools is None else ",".join(said.tools),
        "max_turns": limits.max_turns,
        "max_tool_calls": limits.max_tool_calls,
        "max_tokens": limits.max_tokens,
        "max_cost_usd": limits.max_cost_usd,
        "timeout": limits.timeout_s,
        "output_schema": task.output_schema_file,
        "append_system_file": task.append_system_file,
        "fail_on_denied": said.fail_on_denied,
        "fail_on_error": said.fail_on_error,
        "sandbox": said.sandbox,
        "transcript": said.transcript,
        "answer_file": said.answer_file,
        "report": None if said.reports is None else [f"{name}={file}" for name, file in said.reports.items()],
    }
    given = {name: value for name, value in values.items() if value is not None}
    # A schema of the config file must not stand before the one in the task itself.
    return given | ({"output_schema": None} if isinstance(said.output_schema, dict) else {})
