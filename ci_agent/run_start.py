"""How a run begins: what the model is told of its task, what the record says first, and the first lines of the log."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from ci_agent import __version__
from ci_agent.ci_services.checkout import find_checkout
from ci_agent.ci_services.environment import detect_ci
from ci_agent.ending import untaken_proposals
from ci_agent.json_types import JsonObject
from ci_agent.prompts import build_system_prompt
from ci_agent.run_parts import RunParts
from ci_agent.run_settings import RunSettings
from ci_agent.spelling import counted
from ci_agent.transcript.run_facts import PolicyFacts, RunStart, SandboxFacts


def system_prompt(settings: RunSettings, parts: RunParts) -> str:
    """Ours or the person's own, and what is added to it."""
    additions = [settings.append_system_prompt, parts.output.instruction() if parts.output else None]
    return build_system_prompt(
        str(parts.workspace.root),
        replacement=settings.system_prompt,
        addition="\n\n".join(filter(None, additions)) or None,
    )


def start_of_run(settings: RunSettings, parts: RunParts) -> RunStart:
    """The first record: what was asked for."""
    source = settings.policy.source
    return RunStart(
        id=parts.invocation.run_id,
        version=__version__,
        workspace=str(parts.workspace.root),
        model=parts.model,
        options=_recorded_options(settings, parts),
        policy=PolicyFacts(source.name, source.sha256, len(source.rules), asdict(parts.limits)),
        sandbox=SandboxFacts(parts.commands.sandbox.kind, settings.sandbox, parts.commands.sandbox.abi),
        ci=detect_ci(settings.environment),
        checkout=find_checkout(parts.workspace.root, settings.environment),
    )


def _recorded_options(settings: RunSettings, parts: RunParts) -> JsonObject:
    """What was asked of the model; what was left to its provider is left out."""
    asked = settings.model_settings
    options = {
        "system_prompt": system_prompt(settings, parts),
        "fallbacks": list(asked.fallbacks) or None,
        "base_url": asked.base_url,
        "thinking": asked.thinking,
        "temperature": asked.temperature,
        "max_output_tokens": asked.max_output_tokens,
        "shrink": asked.shrink,
    }
    return {name: value for name, value in options.items() if value is not None}


def first_lines(settings: RunSettings, parts: RunParts, recovered: Path | None) -> Iterator[str]:
    """What the log begins with: what runs under which policy, held by what, and where its record is.

    `recovered` is where the record of an earlier run is that was killed; None: there was none.
    """
    place = parts.invocation.place
    record = place.document or f"{place.journal}{'' if place.is_product else ' while it runs'}"
    policy = parts.policy.source
    rules = f"policy {policy.name} ({counted(len(policy.rules), 'rule')})"
    yield f"{parts.model}  {rules}  sandbox {parts.commands.sandbox}  record {record}"
    if parts.commands.sandbox.why_none is not None:
        yield f"commands are held by the policy alone: {parts.commands.sandbox.why_none}"
    if parts.commands.sandbox.gap is not None:
        yield f"the sandbox has a gap here: {parts.commands.sandbox.gap}"
    for name in parts.loosened:
        yield f"{name}: the policy's own limit is lower and counts"
    for name in settings.secret_env:
        if not settings.environment.get(name):
            yield f"--secret-env {name}: no such variable is set, nothing is hidden for it"
    yield from filter(None, [untaken_proposals(settings)])
    if recovered is not None:
        yield f"an earlier run was killed; its record is in {recovered}"
