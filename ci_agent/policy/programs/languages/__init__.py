"""Readers for programs whose words are a language of their own: each adds to the draft what it finds."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.languages import (
    archives,
    awk,
    builds,
    builtins,
    find,
    git,
    launchers,
    sed,
    shells,
    tests,
    transfers,
    web,
)
from ci_agent.policy.programs.options import Parsed

Reader: TypeAlias = Callable[[Parsed, Draft], None]

LANGUAGES: Mapping[str, Reader] = {
    "ar": archives.read_ar,
    "argument_files": builds.read_argument_files,
    "awk": awk.read,
    "command": launchers.read_command,
    "compiler": builds.read_compiler,
    "compressor": archives.read_compressor,
    "container_copy": web.read_container_copy,
    "copy": web.read_copy,
    "curl": web.read_curl,
    "dd": transfers.read_dd,
    "declare": builtins.read_declare,
    "env": launchers.read_env,
    "eval": shells.read_eval,
    "exec": launchers.read_exec,
    "export": builtins.read_export,
    "find": find.read,
    "flock": launchers.read_flock,
    "git_checkout": git.read_checkout,
    "form": web.read_form,
    "su": shells.read_su,
    "git_apply": git.read_apply,
    "git_format_patch": git.read_format_patch,
    "git_restore": git.read_restore,
    "patch": transfers.read_patch,
    "git_clean": git.read_clean,
    "git_clone": git.read_clone,
    "git_config": git.read_config,
    "git_diff": git.read_diff,
    "git_remote": git.read_remote,
    "git_repository": git.read_repository,
    "install": transfers.read_install,
    "interpreter": builds.read_interpreter,
    "jq": builds.read_jq,
    "let": builtins.read_let,
    "make": builds.read_make,
    "mode": transfers.read_mode,
    "names": builtins.read_names,
    "sed": sed.read,
    "shell": shells.read_shell,
    "split": transfers.read_split,
    "sqlite": builds.read_sqlite,
    "ssh": web.read_ssh,
    "tar": archives.read_tar,
    "test": tests.read,
    "trap": shells.read_trap,
    "unzip": archives.read_unzip,
    "watch": shells.read_watch,
    "wget": web.read_wget,
    "xargs": launchers.read_xargs,
    "yq": builds.read_yq,
    "zip": archives.read_zip,
}
"""By the name that a profile gives as its `language`."""
