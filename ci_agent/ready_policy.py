"""A policy, loaded and compiled: all that `policy check` and `policy explain` need, who make no run."""

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ci_agent.ci_services.environment import runner_command_files
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.protected import Surroundings
from ci_agent.process import child_environment
from ci_agent.workspace import open_workspace, real_path


def load_policy(
    name_or_path: str | Path | None = None, *, text: str | None = None, workspace: str | Path = "."
) -> Policy:
    """A policy by a shipped name, a path, or as text, ready to decide calls in a workspace, whichever folder that is.

    Raises ConfigurationError, with `file:line:column` for what is wrong in a file.
    """
    around = surroundings(os.environ, (), child_environment(os.environ))
    with _collector_at_rest():
        return compile_policy(load_policy_source(name_or_path, text=text), open_workspace(workspace), around=around)


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Nothing of a policy that is being built is garbage, and a third of the time would go to looking for some."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def surroundings(
    environment: Mapping[str, str], records: tuple[Path, ...], exported: Mapping[str, str]
) -> Surroundings:
    """What lies around a workspace; `records` are the files of the run, `exported` the variables that tools get."""
    home = environment.get("HOME")
    return Surroundings(
        home=real_path(home) if home else None,
        records=tuple(map(real_path, records)),
        runner_files=runner_command_files(environment),
        exported=frozenset(exported),
    )
