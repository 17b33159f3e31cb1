"""Readers for programs whose words are a language of their own: each adds to the draft what it finds."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.languages import awk, builtins, find, git, launchers, sed, shells, tests, transfers
from ci_agent.policy.programs.options import Parsed

Reader: TypeAlias = Callable[[Parsed, Draft], None]

LANGUAGES: Mapping[str, Reader] = {
    "awk": awk.read,
    "command": launchers.read_command,
    "declare": builtins.read_declare,
    "dd": transfers.read_dd,
    "env": launchers.read_env,
    "eval": shells.read_eval,
    "exec": launchers.read_exec,
    "export": builtins.read_export,
    "find": find.read,
    "flock": launchers.read_flock,
    "git_checkout": git.read_checkout,
    "git_clone": git.read_clone,
    "git_config": git.read_config,
    "git_diff": git.read_diff,
    "git_remote": git.read_remote,
    "git_repository": git.read_repository,
    "install": transfers.read_install,
    "let": builtins.read_let,
    "mode": transfers.read_mode,
    "names": builtins.read_names,
    "sed": sed.read,
    "shell": shells.read_shell,
    "test": tests.read,
    "trap": shells.read_trap,
    "watch": shells.read_watch,
    "xargs": launchers.read_xargs,
}
"""By the name that a profile gives as its `language`."""
