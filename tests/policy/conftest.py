"""Policies written as people write them, compiled for a workspace of the test's own."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent
from typing import Any, TypeAlias

import pytest

from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.protected import Surroundings
from ci_agent.workspace import Workspace, open_workspace

MakePolicy: TypeAlias = Callable[..., Policy]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "work").mkdir()
    return open_workspace(tmp_path / "work")


@pytest.fixture
def put(workspace: Workspace) -> Callable[..., Path]:
    """Write a file in the workspace, with its folders."""

    def write(path: str, content: str = "text\n") -> Path:
        file = workspace.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    return write


@pytest.fixture
def policy(workspace: Workspace) -> MakePolicy:
    """Compile the rules of a policy; `around` are fields of Surroundings, the home folder is beside the workspace."""

    def make(rules: str, *, head: str = "", **around: Any) -> Policy:
        text = f"policy: 1\n{dedent(head)}rules:\n{indent(dedent(rules), '  ')}"
        around.setdefault("home", workspace.root.parent / "home")
        return compile_policy(load_policy_source(text=text), workspace, around=Surroundings(**around))

    return make
