"""Programs that a repository's own configuration names: git would run them for harmless commands, so it does not."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ConfigurationError, ToolError
from ci_agent.process import Processes

LIST_WITHIN_S = 10.0
MAX_LIST_BYTES = 4 * 1024 * 1024
MAX_PROGRAMS = 500
"""More do not fit into an environment; whoever writes so many into a configuration means no good."""

_LIST = ("git", "config", "--null", "--list", "--show-scope")

_OF_THE_REPOSITORY = {"local", "worktree"}

_INSTEAD: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), value)
    for pattern, value in (
        # Without a program git goes on as if there were none.
        (r"filter\..*\.(clean|smudge|process)", ""),
        (r"filter\..*\.required", "false"),
        (r"credential\.(.*\.)?helper", ""),
        (r"trailer\..*\.(cmd|command)", ""),
        (r"tar\..*\.command", ""),
        (r"interactive\.difffilter", ""),
        (r"diff\..*\.textconv", "cat"),
        (r"submodule\..*\.update", "checkout"),
        (r"remote\..*\.uploadpack", "git-upload-pack"),
        (r"remote\..*\.receivepack", "git-receive-pack"),
        (r"core\.sshcommand", "ssh"),
        (r"gpg\.program|gpg\.openpgp\.program", "gpg"),
        (r"gpg\.x509\.program", "gpgsm"),
        (r"gpg\.ssh\.program", "ssh-keygen"),
        # These cannot be taken away, only be made to fail: the command then says that it cannot run the program.
        (r"alias\..*|diff\.external|diff\..*\.command|merge\..*\.driver|remote\..*\.vcs", ""),
        (r"core\.(gitproxy|alternaterefscommand)|(merge|diff)tool\..*\.(cmd|path)|guitool\..*\.cmd", ""),
        (r"(browser|man)\..*\.(cmd|path)|sendemail\..*cmd|hook\..*\.command|gpg\.ssh\.defaultkeycommand", ""),
        (r"sequence\.editor|core\.(editor|pager|askpass)|pager\..*|imap\.tunnel|web\.browser", ""),
    )
)
"""Keys whose values git runs as programs (git-config(1)), and what stands in their place."""

_LARGE_FILES = re.compile(r"git-lfs (clean|smudge( --skip)?) -- %f|git-lfs filter-process( --skip)?|true")
"""What `git lfs install --local` writes, as checkouts in CI do: a program of the machine, under a name of its own."""


@dataclass(frozen=True, slots=True)
class RepositoryPrograms:
    instead: Mapping[str, str]
    """Keys of the repository's configuration that name programs, each with what git shall read in their place."""

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment with git's settings for one command, which stand above those of every file."""
        count = int(given.get("GIT_CONFIG_COUNT", "0"))
        environment = dict(given)
        for number, (key, value) in enumerate(self.instead.items(), count):
            environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return environment | {"GIT_CONFIG_COUNT": str(count + len(self.instead))}


NO_PROGRAMS = RepositoryPrograms({})


def find_repository_programs(folder: Path, environment: Mapping[str, str], processes: Processes) -> RepositoryPrograms:
    """Asks git, which runs nothing to tell it; none outside of a repository, and where there is no git.

    ConfigurationError for a configuration that cannot be made harmless.
    """
    try:
        listed = processes.run(
            _LIST,
            cwd=folder,
            env=environment,
            timeout_s=LIST_WITHIN_S,
            cancel=CancelToken(),
            head_bytes=MAX_LIST_BYTES,
            tail_bytes=0,
            separate_stderr=True,
        )
    except ToolError:
        return NO_PROGRAMS
    if listed.exit_status is not None and listed.exit_status != 0:
        return NO_PROGRAMS  # and git does as little for a command here
    instead = dict(_replaced(os.fsdecode(listed.output.head)))
    if listed.exit_status is None or not listed.output.is_complete or len(instead) > MAX_PROGRAMS:
        raise ConfigurationError(
            f"the configuration of the repository at {str(folder)!r} cannot be listed, or names more than "
            f"{MAX_PROGRAMS} programs: look through its .git/config"
        )
    return RepositoryPrograms(instead)


def _replaced(listing: str) -> Iterator[tuple[str, str]]:
    fields = listing.split("\0")
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = entry.partition("\n")
        instead = _instead_of(key)
        if scope in _OF_THE_REPOSITORY and instead is not None and not _is_harmless(key, value):
            yield key, instead


def _instead_of(key: str) -> str | None:
    return next((value for pattern, value in _INSTEAD if pattern.fullmatch(key)), None)


def _is_harmless(key: str, value: str) -> bool:
    if key.startswith("submodule."):
        return not value.startswith("!")
    return key.startswith("filter.lfs.") and _LARGE_FILES.fullmatch(value) is not None
