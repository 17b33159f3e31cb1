"""Where a run stands in its repository: the pages that show findings beside the code name files from its top."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ci_agent.ci_services.environment import Environment
from ci_agent.transcript.run_facts import CheckoutFacts
from ci_agent.workspace import real_path

_CHECKOUT_FOLDERS: Final = (
    "GITHUB_WORKSPACE",
    "CI_PROJECT_DIR",  # GitLab
    "BUILD_SOURCESDIRECTORY",  # Azure
    "BUILDKITE_BUILD_CHECKOUT_PATH",
    "CIRCLE_WORKING_DIRECTORY",
    "BITBUCKET_CLONE_DIR",
    "WORKSPACE",  # Jenkins
)


def find_checkout(workspace: Path, environment: Environment) -> CheckoutFacts:
    """`workspace` is absolute and resolved. Its nearest folder with a `.git` is the top, at most as far up as the
    service's own folder for the job, which else is taken itself: without git, a service fetches files alone. Outside
    of both it is the current folder, or the workspace where that is elsewhere."""
    started_in = _current_folder() or workspace
    job = next((folder for folder in _job_folders(environment) if workspace.is_relative_to(folder)), None)
    root = next((folder for folder in _upwards(workspace, job) if os.path.lexists(folder / ".git")), job)
    if root is None:
        root = started_in if workspace.is_relative_to(started_in) else workspace
    return CheckoutFacts(str(root), str(started_in))


def _job_folders(environment: Environment) -> Iterator[Path]:
    for name in _CHECKOUT_FOLDERS:
        folder = environment.get(name)
        if folder:
            yield real_path(os.path.expanduser(folder))  # CircleCI's begins with ~


def _upwards(folder: Path, last: Path | None) -> Iterator[Path]:
    yield folder
    for parent in () if folder == last else folder.parents:
        yield parent
        if parent == last:
            return


def _current_folder() -> Path | None:
    """None: it is gone."""
    try:
        return Path.cwd()
    except OSError:
        return None
