"""Whether a run would start here: what it needs, looked at one by one."""

import os
import random
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

from ci_agent.cancellation import CancelToken
from ci_agent.chosen_workspace import holds_home, refuse_whole_machine
from ci_agent.ci_services.environment import detect_ci, runner_command_files
from ci_agent.errors import CIAgentError, ToolError
from ci_agent.process import child_environment, open_processes
from ci_agent.providers.network.web_origin import origin_of, proxy_for
from ci_agent.providers.outside import Outside
from ci_agent.providers.settings import ModelSettings
from ci_agent.providers.table import REPLAY, SCRIPTED, known_models, open_models, parse_model
from ci_agent.ready_policy import load_policy
from ci_agent.sandbox.sandbox import Requested, find_sandbox
from ci_agent.spelling import counted
from ci_agent.tools.bash_program import USUAL_FOLDERS, find_bash
from ci_agent.transcript.read import read_transcript
from ci_agent.workspace import open_workspace

Status: TypeAlias = Literal["ok", "warning", "missing"]
"""`missing`: a run would not start. `warning`: it would, with less than it could have."""

_CONNECT_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    status: Status
    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the run is to be."""

    policy: str | None
    model: str | None
    workspace: str
    model_settings: ModelSettings
    environment: Mapping[str, str]
    offline: bool
    """Connect to nothing."""
    sandbox: Requested = "auto"


def check_readiness(wanted: Wanted) -> Iterator[Check]:
    """Each check as it is done. Nothing is written, and no model is asked anything."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", "ok" if sys.version_info >= (3, 11) else "missing", f"Python {version}")
    yield from _workspace(wanted)
    yield _bash(wanted)
    yield _program("git", wanted.environment, "commands and git:REV:PATH need it", "warning")
    yield _program("rg", wanted.environment, "without ripgrep grep takes longer", "warning")
    yield _sandbox(wanted)
    yield _policy(wanted)
    yield from _model(wanted)
    yield _ci(wanted.environment)


def would_start(checks: list[Check]) -> bool:
    return all(check.status != "missing" for check in checks)


def _workspace(wanted: Wanted) -> Iterator[Check]:
    try:
        root = open_workspace(wanted.workspace).root
        refuse_whole_machine(wanted.workspace)
    except CIAgentError as error:
        yield Check("workspace", "missing", str(error))
        return
    if os.access(root, os.W_OK):
        yield Check("workspace", "ok", f"{root} can be written to")
    else:
        yield Check("workspace", "warning", f"{root} cannot be written to: only a policy that reads can be used")
    warning = holds_home(wanted.workspace, wanted.environment)
    if warning is not None:
        yield Check("workspace", "warning", warning)


def _bash(wanted: Wanted) -> Check:
    environment = child_environment(wanted.environment)
    try:
        with open_processes() as processes:
            path = find_bash(environment, open_workspace(wanted.workspace), processes, CancelToken(), USUAL_FOLDERS)
    except (CIAgentError, ToolError) as error:
        return Check("bash", "warning", f"the tool bash cannot be used: {error}")
    return Check("bash", "ok", path)


def _program(name: str, environment: Mapping[str, str], why: str, otherwise: Status) -> Check:
    path = shutil.which(name, path=environment.get("PATH", os.defpath))
    return Check(name, "ok", path) if path else Check(name, otherwise, f"not on PATH: {why}")


def _sandbox(wanted: Wanted) -> Check:
    try:
        found = find_sandbox(wanted.sandbox, wanted.environment.get("PATH", os.defpath))
    except CIAgentError as error:
        return Check("sandbox", "missing", str(error))
    if found.kind == "none":
        return Check("sandbox", "warning", f"none: {found.why_none or 'it is switched off'}")
    if found.gap is not None:
        return Check("sandbox", "warning", f"{found}: {found.gap}")
    return Check("sandbox", "ok", str(found))


def _policy(wanted: Wanted) -> Check:
    if not wanted.policy:
        return Check("policy", "missing", "none is named: --policy NAME|FILE, or a task with --task")
    try:
        source = load_policy(wanted.policy, workspace=wanted.workspace).source
    except CIAgentError as error:
        return Check("policy", "missing", str(error))
    return Check("policy", "ok", f"{source.name}, {counted(len(source.rules), 'rule')}, sha256 {source.sha256[:12]}")


def _model(wanted: Wanted) -> Iterator[Check]:
    if not wanted.model:
        yield Check("model", "missing", f"none is named: --model. {known_models()}")
        return
    try:
        model = parse_model(wanted.model)
        outside = Outside(wanted.environment, lambda: datetime.now(UTC), random.random, read_transcript)
        open_models([model], wanted.model_settings, outside).close()
    except (CIAgentError, ValueError) as error:
        yield Check("model", "missing", str(error))
        return
    played = model.provider in (SCRIPTED, REPLAY)
    yield Check("model", "ok", f"{model}{'' if played else ', its key is there where it needs one'}")
    if not played and not wanted.offline:
        yield _connection(wanted, model.provider, model.id)


def _connection(wanted: Wanted, provider: str, model_id: str) -> Check:
    from ci_agent.providers.servers import SERVERS, endpoint_of  # noqa: PLC0415 - brings every API

    server = SERVERS[provider]
    url = endpoint_of(server, model_id, wanted.model_settings.base_url, wanted.environment).base_url
    _, host, port = origin_of(proxy_for(url, wanted.environment) or url)
    try:
        socket.create_connection((host, port), _CONNECT_TIMEOUT_S).close()
    except OSError as error:
        why = f"{error.strerror or error}{f': is {provider} running?' if server.local else ''}"
        return Check("connection", "missing", f"{host}:{port} cannot be reached: {why}")
    return Check("connection", "ok", f"{host}:{port} can be reached")


def _ci(environment: Mapping[str, str]) -> Check:
    found = detect_ci(environment)
    if found is None:
        return Check("ci", "ok", "no CI service was recognised")
    unwritable = [path for path in runner_command_files(environment) if path.is_file() and not os.access(path, os.W_OK)]
    if unwritable:
        return Check("ci", "warning", f"{found.provider}; {unwritable[0]} cannot be written to: no outputs, no summary")
    return Check("ci", "ok", found.provider)
