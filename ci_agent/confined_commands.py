"""Every shell call of a run in the sandbox: what the policy says that the call needs, told to the kernel."""

import os
import pwd
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from ci_agent.errors import ConfigurationError, ToolError
from ci_agent.json_types import JsonObject
from ci_agent.policy.call_access import Closed, call_access, closed_places, folders_of_git, judge_again, pushes
from ci_agent.policy.decide import Policy
from ci_agent.policy.judging.judge import Verdict
from ci_agent.policy.protected import Surroundings
from ci_agent.process.environment import with_git_settings
from ci_agent.sandbox import landlock
from ci_agent.sandbox.access import Access, lies_in
from ci_agent.sandbox.confinement import Confine, Confined, ConfineReader
from ci_agent.sandbox.private_folder import PrivateFolder
from ci_agent.sandbox.ruleset import TooManyEntriesError, ruleset_without_sandbox
from ci_agent.sandbox.sandbox import Sandbox, confine
from ci_agent.sandbox.secret_places import secret_places
from ci_agent.tools.beneath import best_way_in, enter_folder
from ci_agent.workspace import Workspace

_CACHES: Final = {"GOCACHE": ".cache/go-build"}
"""Variables that say where a cache is, and where it is in a home folder without them."""


_WITHOUT_NETWORK: Final = (
    "[The sandbox keeps this call from the network, and from servers of its own on localhost: that takes a rule which "
    "names a host, such as `host: localhost`.]"
)

GitSettings: TypeAlias = Callable[[Iterable[Path]], Mapping[str, str]]
"""Variables that keep git, started in one of these folders, from running what a repository names; ConfigurationError
when nothing can."""


def create_confine(
    policy: Policy,
    sandbox: Sandbox,
    folder: PrivateFolder,
    secret_files: Iterable[Path] = (),
    *,
    git_settings: GitSettings,
) -> Confine:
    """What confines each call of `bash` to what it was allowed for, and to the private folder for temporary files.

    `secret_files`: to be closed beside those in home folders, whatever a rule spells.
    """
    closed = _closed(policy, secret_files)
    apart = ruleset_without_sandbox(landlock.abi()) if sandbox.kind == "none" else None

    def confine_call(arguments: JsonObject) -> Confined:
        temporary = _temporary(folder)
        verdicts = judge_again(policy, arguments)
        if verdicts is None:
            raise ToolError("what this command would do has changed since it was allowed, so it was not run; try again")
        environment = {**_for_git(git_settings, verdicts), "TMPDIR": temporary}
        if sandbox.kind == "none":
            return Confined(apart, environment)
        access = call_access(policy, verdicts, closed).with_writable(temporary)
        environment |= _private_caches(access, policy.site.around, temporary)
        _make(access.missing)
        try:
            confinement = confine(sandbox, access)
        except TooManyEntriesError as error:
            raise ToolError(f"the sandbox cannot be set up, so the command was not run: {error}") from error
        explanation = _explain(access, sandbox, policy.site.workspace, temporary)
        return Confined(confinement, environment, explanation, None if access.network else _WITHOUT_NETWORK)

    return confine_call


def closed_where_commands_write(policy: Policy, sandbox: Sandbox, secret_files: Iterable[Path] = ()) -> Iterator[Path]:
    """What no command may read and some command might move: it lies where a rule lets one write."""
    if sandbox.kind == "none" or not policy.can_allow("bash"):
        return
    closed = _closed(policy, secret_files)
    reach = [glob for rule in policy.rules.for_tool("bash").allow for glob in rule.reach or ()]
    starts = [str(policy.site.workspace.root), *(os.path.join("/", *glob.prefix) for glob in reach)]
    for place in (*closed.denied, *closed.secrets):
        if any(lies_in(str(place), start) for start in starts):
            yield place


def _closed(policy: Policy, secret_files: Iterable[Path]) -> Closed:
    places = secret_places(filter(None, (policy.site.around.home, _home_of_user())))
    return closed_places(policy, places, secret_files)


def create_confine_reader(sandbox: Sandbox) -> ConfineReader:
    """What confines a program that gets nothing to read but the files that its tool has looked up for it."""
    return partial(confine, sandbox, Access())


def _make(folders: Iterable[str]) -> None:
    """One that cannot be made is not granted either: the kernel grants what is there."""
    for folder in folders:
        with suppress(OSError), enter_folder(Path(folder), best_way_in(), create=True):
            pass


def _for_git(git_settings: GitSettings, verdicts: Sequence[Verdict]) -> Mapping[str, str]:
    try:
        settings = git_settings(folders_of_git(verdicts))
    except ConfigurationError as error:
        raise ToolError(
            f"the command was not run, for git might run programs in it that no rule grants: {error}"
        ) from error
    # The git that takes a push into a folder of this machine gets none of our settings, and runs that folder's hooks.
    return with_git_settings(settings, {"protocol.file.allow": "never"}) if pushes(verdicts) else settings


def _private_caches(access: Access, around: Surroundings, temporary: str) -> dict[str, str]:
    """For tools that do not work at all when their cache in the home folder cannot be written."""
    return {
        variable: os.path.join(temporary, os.path.basename(cache))
        for variable, cache in _CACHES.items()
        if variable not in around.exported
        and not (around.home and any(lies_in(str(around.home / cache), place) for place in access.writable))
    }


def _home_of_user() -> Path | None:
    """Some systems give a job another HOME than its user's own."""
    try:
        return Path(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    except (KeyError, OSError):
        return None


def _temporary(folder: PrivateFolder) -> str:
    try:
        return str(folder.path())
    except OSError as error:
        raise ToolError(f"there is no place for temporary files, so the command was not run: {error}") from error


def _explain(access: Access, sandbox: Sandbox, workspace: Workspace, temporary: str) -> str:
    places = [_shown(path, workspace) for path in access.writable if path != temporary]
    parts = [f"may write {', '.join([*places, '$TMPDIR'])} and nothing else"]
    if not access.network:
        parts.append("may not use the network")
    closed = list(_closed_in_workspace(access, workspace))
    if closed:
        parts.append(f"may not read {', '.join(closed)}")
        if sandbox.kind == "landlock":
            parts.append("cannot read back what it newly makes in the folder of a file that it may not read")
    return f"[The sandbox refused something if it says so above: this call {'; it '.join(parts)}.]"


def _shown(path: str, workspace: Workspace) -> str:
    return "the workspace" if path == str(workspace.root) else workspace.display(Path(path))


def _closed_in_workspace(access: Access, workspace: Workspace) -> Iterator[str]:
    for path in access.hidden:
        if lies_in(path, str(workspace.root)) and os.path.lexists(path):
            yield workspace.display(Path(path))
