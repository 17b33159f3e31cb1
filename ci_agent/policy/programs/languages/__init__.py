"""Readers for programs whose words are a language of their own: each adds to the draft what it finds."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TypeAlias

from ci_agent.policy.programs.draft import Draft
from ci_agent.policy.programs.options import Parsed

Reader: TypeAlias = Callable[[Parsed, Draft], None]

LANGUAGES: Mapping[str, str] = {
    "7z": "archives.read_7z",
    "after_dashes": "builds.read_after_dashes",
    "ar": "archives.read_ar",
    "argument_files": "builds.read_argument_files",
    "awk": "awk.read",
    "connection": "reaches.read_connection",
    "cpio": "archives.read_cpio",
    "database": "reaches.read_database",
    "formatter": "builds.read_formatter",
    "gh_clone": "git.read_gh_clone",
    "gh_repository": "git.read_gh_repository",
    "go_build": "builds.read_go_build",
    "go_mod": "builds.read_go_mod",
    "gotestsum": "builds.read_gotestsum",
    "httpie": "web.read_httpie",
    "image": "reaches.read_image",
    "jar": "archives.read_jar",
    "lookup": "reaches.read_lookup",
    "build_context": "reaches.read_build_context",
    "cargo_test": "builds.read_cargo_test",
    "clippy": "builds.read_clippy",
    "cmake": "builds.read_cmake",
    "cloud": "web.read_cloud",
    "command": "launchers.read_command",
    "commands": "shells.read_commands",
    "compiler": "builds.read_compiler",
    "compressor": "archives.read_compressor",
    "container_copy": "web.read_container_copy",
    "copy": "web.read_copy",
    "curl": "web.read_curl",
    "date": "transfers.read_date",
    "dd": "transfers.read_dd",
    "debugger": "launchers.read_debugger",
    "declare": "builtins.read_declare",
    "env": "launchers.read_env",
    "eval": "shells.read_eval",
    "exec": "launchers.read_exec",
    "export": "builtins.read_export",
    "find": "find.read",
    "flock": "launchers.read_flock",
    "form": "web.read_form",
    "git_apply": "git.read_apply",
    "git_checkout": "git.read_checkout",
    "git_clean": "git.read_clean",
    "git_clone": "git.read_clone",
    "git_config": "git.read_config",
    "git_diff": "git.read_diff",
    "git_format_patch": "git.read_format_patch",
    "git_remote": "git.read_remote",
    "git_remove": "git.read_remove",
    "git_repository": "git.read_repository",
    "git_restore": "git.read_restore",
    "git_search": "git.read_search",
    "git_show": "git.read_show",
    "install": "transfers.read_install",
    "interpreter": "builds.read_interpreter",
    "ip": "launchers.read_ip",
    "jobs": "launchers.read_jobs",
    "jq": "queries.read_jq",
    "let": "builtins.read_let",
    "ln": "transfers.read_ln",
    "make": "builds.read_make",
    "man": "transfers.read_man",
    "mise": "launchers.read_mise",
    "mode": "transfers.read_mode",
    "mvn": "builds.read_mvn",
    "names": "builtins.read_names",
    "openssl": "reaches.read_openssl",
    "parallel": "shells.read_parallel",
    "patch": "transfers.read_patch",
    "project_program": "launchers.read_project_program",
    "pytest": "builds.read_pytest",
    "python_archive": "archives.read_python_archive",
    "python_versions": "builds.read_python_versions",
    "sbt": "builds.read_sbt",
    "sed": "sed.read",
    "sftp": "web.read_sftp",
    "shell": "shells.read_shell",
    "other_shell": "shells.read_other_shell",
    "split": "transfers.read_split",
    "sqlite": "queries.read_sqlite",
    "ssh": "web.read_ssh",
    "ssh_keygen": "web.read_ssh_keygen",
    "su": "shells.read_su",
    "tar": "archives.read_tar",
    "test": "tests.read",
    "trace": "launchers.read_trace",
    "trap": "shells.read_trap",
    "unpack_here": "archives.read_unpack_here",
    "unzip": "archives.read_unzip",
    "watch": "shells.read_watch",
    "wget": "web.read_wget",
    "workspaces": "launchers.read_workspaces",
    "xargs": "launchers.read_xargs",
    "yq": "queries.read_yq",
    "zip": "archives.read_zip",
}
"""What a profile gives as its `language`, to the module and function that reads it."""


@cache
def find_reader(language: str) -> Reader:
    """The reader, whose module is imported when a program needs it: a run meets few of them."""
    module, _, function = LANGUAGES[language].partition(".")
    reader: Reader = getattr(import_module(f"{__name__}.{module}"), function)
    return reader
