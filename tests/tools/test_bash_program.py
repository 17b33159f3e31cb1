import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ToolError
from ci_agent.process import Processes, child_environment
from ci_agent.tool import ToolResult
from ci_agent.tools.bash import BashSettings, create_bash_tool
from ci_agent.tools.bash_program import find_bash
from ci_agent.workspace import Workspace, open_workspace

Call = Callable[..., ToolResult]
TextOf = Callable[[ToolResult], str]
Put = Callable[[str, str], str]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "work").mkdir()
    return open_workspace(tmp_path / "work")


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """A folder with a program called bash that tells a version, runs commands as sh, and notes that it was asked."""

    def write(folder: str, version: str) -> str:
        program = tmp_path / folder / "bash"
        program.parent.mkdir(parents=True)
        program.write_text(
            f'#!/bin/sh\necho asked >> "{program}.log"\ncase "$*" in\n'
            f'    *BASH_VERSION*) echo "{version}" ;;\n    *) echo "run by {version}" ;;\nesac\n'
        )
        program.chmod(0o755)
        return str(program.parent)

    return write


def search(processes: Processes, workspace: Workspace, *folders: str, usual: tuple[str, ...] = ()) -> str:
    return find_bash({"PATH": ":".join(folders)}, workspace, processes, CancelToken(), usual)


def test_an_old_bash_is_passed_over_for_a_new_one(processes: Processes, workspace: Workspace, put: Put) -> None:
    old, new = put("old", "bash 3.2.57(1)-release"), put("new", "bash 5.2.15(1)-release")
    assert search(processes, workspace, old, new) == f"{new}/bash"
    assert search(processes, workspace, new, usual=(old,)) == f"{new}/bash"


def test_the_usual_folders_come_before_path(processes: Processes, workspace: Workspace, put: Put) -> None:
    usual, other = put("usual", "bash 5.0.0(1)-release"), put("other", "bash 6.1.0(1)-release")
    assert search(processes, workspace, other, usual=(usual,)) == f"{usual}/bash"


def test_when_all_are_old_the_error_says_which_and_what_to_do(
    processes: Processes, workspace: Workspace, put: Put
) -> None:
    old = put("old", "bash 3.2.57(1)-release")
    with pytest.raises(ToolError) as caught:
        search(processes, workspace, old)
    assert str(caught.value) == (
        f"commands need bash 5 or later, and {old}/bash is 3.2. Install it (macOS: brew install bash; Debian and "
        "Ubuntu: apt-get install bash) and put its folder on PATH; it must lie outside of the workspace."
    )


def test_without_any_bash_the_error_says_so(processes: Processes, workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="bash 5 or later, and there is none on PATH"):
        search(processes, workspace, str(tmp_path), "relative")


@pytest.mark.parametrize("version", ["", "zsh 5.9", "bash", "bash 5.2\nbash 5.2"])
def test_what_tells_no_version_is_no_bash(processes: Processes, workspace: Workspace, put: Put, version: str) -> None:
    with pytest.raises(ToolError, match="is of no version that it tells"):
        search(processes, workspace, put("odd", version))


def test_a_bash_of_the_workspace_is_never_taken(
    processes: Processes, workspace: Workspace, put: Put, tmp_path: Path
) -> None:
    inside = put("work/bin", "bash 5.2.15(1)-release")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/bash").symlink_to(f"{inside}/bash")
    with pytest.raises(ToolError) as caught:
        search(processes, workspace, inside, str(tmp_path / "links"))
    within = f"lies in the workspace {workspace.root}, where anybody may have put it"
    passed_over = f"{inside}/bash {within}; {tmp_path}/links/bash {within}"
    assert str(caught.value).startswith(f"commands need bash 5 or later, and {passed_over}. Install it")
    assert not Path(f"{inside}/bash.log").exists()


def test_the_tool_refuses_to_run_a_command_with_an_old_bash(
    processes: Processes, workspace: Workspace, put: Put, call: Call
) -> None:
    old = put("old", "bash 3.2.57(1)-release")
    tool = create_bash_tool(workspace, {"PATH": old}, processes, BashSettings(usual_folders=()))
    with pytest.raises(ToolError, match="bash 5 or later"):
        call(tool, command="echo hello")


def test_the_tool_asks_for_the_version_once(
    processes: Processes, workspace: Workspace, put: Put, call: Call, text_of: TextOf
) -> None:
    new = put("new", "bash 5.2.15(1)-release")
    tool = create_bash_tool(workspace, {"PATH": new}, processes, BashSettings(usual_folders=()))
    assert not Path(f"{new}/bash.log").exists()
    assert [text_of(call(tool, command="x")) for _ in range(2)] == ["run by bash 5.2.15(1)-release\n"] * 2
    assert Path(f"{new}/bash.log").read_text() == "asked\n" * 3


def test_the_bash_of_this_machine_is_found(processes: Processes, workspace: Workspace) -> None:
    path = find_bash(child_environment(os.environ), workspace, processes, CancelToken())
    assert os.access(path, os.X_OK)


def test_a_locale_that_is_not_installed_makes_no_bash_unusable(processes: Processes, workspace: Workspace) -> None:
    environment = {**child_environment(os.environ), "LC_ALL": "tlh_QO.UTF-8"}
    assert find_bash(environment, workspace, processes, CancelToken()) == find_bash(
        child_environment(os.environ), workspace, processes, CancelToken()
    )
