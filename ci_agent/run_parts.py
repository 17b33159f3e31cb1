"""What a run is made of, out of its settings. Building it sends and writes nothing; at most it tries bubblewrap."""

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from ci_agent.command_parts import CommandParts, build_command_parts, search_path_outside
from ci_agent.confined_commands import create_confine_reader
from ci_agent.errors import ConfigurationError
from ci_agent.json_types import JsonObject
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.process import Processes, child_environment, refuse_never_passed
from ci_agent.proposals.collect import ProposalsOfRun, bounds_for_model
from ci_agent.provider import Model
from ci_agent.providers.outside import Outside
from ci_agent.providers.table import REPLAY, OpenModels, open_models, parse_model
from ci_agent.ready_policy import surroundings
from ci_agent.replay import replayed_tools
from ci_agent.run_hooks.limits import RunLimits, loosened, tightest
from ci_agent.run_hooks.structured_output import StructuredOutput
from ci_agent.run_settings import RunSettings
from ci_agent.tool import Tool
from ci_agent.tools.propose import NOTHING_TO_PROPOSE, Proposing
from ci_agent.tools.table import ToolSettings, create_tools
from ci_agent.transcript.place import Place
from ci_agent.transcript.read import read_transcript
from ci_agent.transcript.redact import Redactor
from ci_agent.transcript.redact_stream import StreamRedactor
from ci_agent.workspace import Workspace, real_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What is there around a run, whatever its settings ask for."""

    run_id: str
    place: Place
    processes: Processes
    redactor: Redactor
    now: Callable[[], datetime]
    trace_variables: Mapping[str, str] = field(default_factory=dict)
    """With them, commands go on with the run's trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    invocation: Invocation
    model: Model
    models: OpenModels
    policy: Policy
    workspace: Workspace
    limits: RunLimits
    loosened: Sequence[str]
    commands: CommandParts
    record: JsonObject | None
    """The transcript that is played; None: the model is no replay."""
    tools: Mapping[str, Tool]
    offered: tuple[Tool, ...]
    output: StructuredOutput | None
    proposals: ProposalsOfRun | None
    """None: nobody takes any."""


def build_parts(settings: RunSettings, invocation: Invocation) -> RunParts:
    """Check the settings and build what they ask for; ConfigurationError for what cannot be had."""
    if not settings.prompt.strip():
        raise ConfigurationError("the prompt is empty: say what is to be done")
    models = [_parse_model(name) for name in (settings.model, *settings.model_settings.fallbacks)]
    opened = open_models(models, settings.model_settings, _outside_world(settings, invocation.now))
    limits = tightest(settings.policy.source.limits, settings.limits)
    _refuse_unknown_price(limits, opened.without_price)
    _refuse_useless_spill_folder(settings.spill_folder)
    environment = _environment_of_commands(settings, invocation)
    policy = _policy_of_run(settings, invocation.place, environment)
    commands = build_command_parts(policy, environment, invocation.processes, settings.sandbox, settings.secret_files)
    record = _played_record(settings, models[0])
    proposals = _proposals(settings, policy, invocation.redactor)
    tools = create_tools(_tool_settings(settings, invocation, policy, commands, proposals))
    return RunParts(
        invocation=invocation,
        model=models[0],
        models=opened,
        policy=policy,
        workspace=policy.site.workspace,
        limits=limits,
        loosened=loosened(settings.policy.source.limits, settings.limits),
        commands=commands,
        record=record,
        tools=replayed_tools(tools, record) if record is not None and settings.replay_tools else tools,
        offered=tuple(_offered(tools, settings.tools, policy, may_propose=proposals is not None)),
        output=None if settings.output_schema is None else StructuredOutput(settings.output_schema, invocation.now),
        proposals=proposals,
    )


def _environment_of_commands(settings: RunSettings, invocation: Invocation) -> dict[str, str]:
    refuse_never_passed(settings.pass_env)
    environment = child_environment(settings.environment, settings.pass_env, settings.secret_env)
    return {**environment, **invocation.trace_variables}


def _policy_of_run(settings: RunSettings, place: Place, environment: Mapping[str, str]) -> Policy:
    """The person's policy, compiled for what commands get here and for where the record is."""
    records = tuple(path for path in (place.journal, place.document, settings.lock, *settings.state_files) if path)
    around = surroundings(settings.environment, records, {**environment, "TMPDIR": ""})
    return compile_policy(settings.policy.source, settings.policy.site.workspace, around=around)


def _tool_settings(
    settings: RunSettings,
    invocation: Invocation,
    policy: Policy,
    commands: CommandParts,
    proposals: ProposalsOfRun | None,
) -> ToolSettings:
    return ToolSettings(
        workspace=policy.site.workspace,
        permits_path=policy.permits_path,
        permits_address=policy.permits_address,
        environment=commands.environment,
        processes=invocation.processes,
        confine=commands.confine,
        confine_reader=create_confine_reader(commands.sandbox),
        timeout_s=settings.tool_timeout_s,
        spill_folder=None if settings.spill_folder is None else real_path(settings.spill_folder),
        spill_filter=partial(StreamRedactor, invocation.redactor),
        proposing=_proposing(proposals),
    )


def _outside_world(settings: RunSettings, now: Callable[[], datetime]) -> Outside:
    return Outside(settings.environment, now, random.random, read_transcript)


def _played_record(settings: RunSettings, model: Model) -> JsonObject | None:
    if model.provider == REPLAY:
        return read_transcript(Path(model.id))
    if settings.replay_tools or settings.fail_on_divergence != "never":
        raise ConfigurationError("--replay-tools and --fail-on-divergence need a record to play: --model replay:FILE")
    return None


def _parse_model(text: str) -> Model:
    try:
        return parse_model(text)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error


def _refuse_useless_spill_folder(folder: Path | None) -> None:
    """One that is missing can be made where the folder above it is there."""
    if folder is None or _is_writable_folder(folder):
        return
    if os.path.lexists(folder) or not _is_writable_folder(folder.absolute().parent):
        raise ConfigurationError(
            f"the spill folder {str(folder)!r} is no folder that can be written to, and none that can be made: name "
            f"another, or make the one above it"
        )


def _is_writable_folder(path: Path) -> bool:
    return path.is_dir() and os.access(path, os.W_OK)


def make_spill_folder(folder: Path | None) -> None:
    """When it is missing; nobody else may look into it. ConfigurationError when that is not possible."""
    try:
        if folder is not None:
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"the spill folder {str(folder)!r} cannot be made: {error.strerror}") from error


def _refuse_unknown_price(limits: RunLimits, without_price: Sequence[Model]) -> None:
    if limits.max_cost_usd is None:
        return
    cannot = f"so the run cannot be limited to {limits.max_cost_usd:g} USD"
    records = [model.id for model in without_price if model.provider == REPLAY]
    if records:
        raise ConfigurationError(
            f"the record {records[0]} holds messages whose cost is not known, {cannot}: limit tokens or turns"
        )
    if without_price:
        raise ConfigurationError(
            f"the price of {' and '.join(map(str, without_price))} is not known, {cannot}: give the price in a file "
            f"with --models-file, or limit tokens or turns"
        )


def _proposals(settings: RunSettings, policy: Policy, redactor: Redactor) -> ProposalsOfRun | None:
    if not settings.propose:
        return None
    bounds, workspace = policy.source.proposals, policy.site.workspace
    if not bounds.kinds:
        raise ConfigurationError("--proposals needs a policy that says what may be proposed: give it the key proposals")
    if not policy.can_allow("propose"):
        raise ConfigurationError("--proposals needs a rule that allows propose: add {id: propose, allow: propose}")
    search_path = search_path_outside(settings.environment.get("PATH", os.defpath), workspace)
    return ProposalsOfRun(bounds, workspace.root, redactor.holds_secret, {"PATH": search_path})


def _proposing(proposals: ProposalsOfRun | None) -> Proposing:
    if proposals is None:
        return NOTHING_TO_PROPOSE
    return Proposing(proposals.bounds.kinds, bounds_for_model(proposals.bounds), proposals.propose)


def _offered(
    tools: Mapping[str, Tool], asked: tuple[str, ...] | None, policy: Policy, *, may_propose: bool
) -> Iterator[Tool]:
    """The tools that the model is told of: those that were asked for and that some rule can allow."""
    for name, tool in tools.items():
        if name == "propose" and not may_propose:
            continue
        if (asked is None or name in asked) and policy.can_allow(name):
            yield tool
