"""The flags of `run` become the settings of a run: files are read and names are checked, nothing is started."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ci_agent.ci_services.event_text import read_event_texts
from ci_agent.cli.model_options import check_model, read_model_settings
from ci_agent.cli.offered_tools import tool_names
from ci_agent.cli.options import blamed_on, given_environment, read_text_or_stdin
from ci_agent.cli.pull_requests import refuse_policy_of_a_pull_request
from ci_agent.cli.schedule import Schedule
from ci_agent.cli.task_options import given_task, inline_schema, read_task_prompt, refuse_inputs_without_task
from ci_agent.git_files import read_named_file
from ci_agent.json_types import JsonObject
from ci_agent.output_schema import read_output_schema
from ci_agent.policy.rules import Limits
from ci_agent.prompts import ContextText
from ci_agent.providers.table import known_models
from ci_agent.ready_policy import load_policy
from ci_agent.run_settings import RunSettings
from ci_agent.tasks import Task


def read_settings(flags: Mapping[str, Any], schedule: Schedule) -> RunSettings:
    """What a run is to be; a usage or configuration error for what is wrong with it."""
    _require_model(flags["model"])
    with blamed_on("policy"):
        policy = load_policy(flags["policy"], workspace=flags["workspace"])
    refuse_policy_of_a_pull_request(policy, trust_head=flags["trust_head"], environment=given_environment())
    with blamed_on("tools"):
        tools = tool_names(flags["tools"])
    task = given_task()
    prompt, context = (_prompt(flags), ()) if task is None else read_task_prompt(task, flags, schedule.values)
    return RunSettings(
        prompt=prompt,
        policy=policy,
        model=flags["model"],
        model_settings=read_model_settings(flags),
        context=(*context, *_context(flags)),
        system_prompt=_optional_text(flags["system_file"], "system prompt file"),
        append_system_prompt=_optional_text(flags["append_system_file"], "system prompt file"),
        tools=tools,
        limits=_limits(flags),
        tool_timeout_s=flags["tool_timeout"],
        output_schema=_schema(flags["output_schema"], task),
        transcript=schedule.transcript,
        keep_journal=flags["keep_journal"],
        lock=optional_path(flags["lock"]),
        spill_folder=optional_path(flags["spill_dir"]),
        fail_on_denied=flags["fail_on_denied"],
        fail_on_error=flags["fail_on_error"],
        trace=flags["otel"],
        replay_tools=flags["replay_tools"],
        fail_on_divergence=flags["fail_on_divergence"],
        propose=flags["proposals"] is not None,
        sandbox=flags["sandbox"],
        state_files=schedule.state_files,
        secret_files=_secret_files(flags["api_key_file"]),
        secret_env=flags["secret_env"],
        pass_env=flags["pass_env"],
        environment=given_environment(),
    )


def _require_model(model: str | None) -> None:
    if not model:
        raise click.UsageError(f"Missing option '--model'. {known_models()}")
    with blamed_on("model"):
        check_model(model, "--model")


def _limits(flags: Mapping[str, Any]) -> Limits:
    return Limits(
        max_turns=flags["max_turns"],
        max_tool_calls=flags["max_tool_calls"],
        max_tokens=flags["max_tokens"],
        max_cost_usd=flags["max_cost_usd"],
        timeout_s=flags["timeout"],
    )


def _secret_files(key_file: str | None) -> tuple[Path, ...]:
    """A key that came by a descriptor is in no file."""
    return () if key_file is None or not Path(key_file).is_file() else (Path(key_file),)


def _prompt(flags: Mapping[str, Any]) -> str:
    words, file = flags["prompt"], flags["prompt_file"]
    refuse_inputs_without_task(flags)
    if len(words) > 1:
        raise click.UsageError("PROMPT is one argument: put it in quotes.")
    prompt = words[0] if words else None
    if prompt is not None and file is not None:
        raise click.UsageError("Give PROMPT or --prompt-file, not both.")
    if file is not None or prompt == "-":
        prompt = read_text_or_stdin(file or "-", "prompt")
    if file is not None and not (prompt or "").strip():
        raise click.UsageError(f"The prompt is empty: nothing stands in {'stdin' if file == '-' else repr(file)}.")
    if prompt is None or not prompt.strip():
        raise click.UsageError("The prompt is missing: give PROMPT, or --prompt-file FILE (- for stdin).")
    try:
        prompt.encode("utf-8")
    except UnicodeEncodeError as error:
        raise click.UsageError("The prompt is not UTF-8.") from error
    return str(prompt)


def _context(flags: Mapping[str, Any]) -> tuple[ContextText, ...]:
    files = list(flags["context_file"])
    if flags["agents_md"]:
        files.append(str(Path(flags["workspace"]) / "AGENTS.md"))
    event = read_event_texts(given_environment()) if flags["event_text"] else ()
    return (*event, *(ContextText(file, read_named_file(file, "context file")) for file in files))


def _schema(path: str | None, task: Task | None) -> JsonObject | None:
    return inline_schema(task) if path is None else read_output_schema(path)


def _optional_text(path: str | None, what: str) -> str | None:
    return None if path is None else read_named_file(path, what)


def optional_path(path: str | None) -> Path | None:
    """The path that a flag names; None: it was not given."""
    return None if path is None else Path(path)
