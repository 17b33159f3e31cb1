"""The environment that a child gets: an allow-list, and settings that make prompts fail instead of waiting."""

import re
from collections.abc import Collection, Iterable, Mapping

from ci_agent.errors import ConfigurationError
from ci_agent.secret_names import JOB_TOKENS, MODEL_KEYS, matches, may_name_a_secret
from ci_agent.steering_names import RUNNER_COMMAND_FILES, changes_what_runs

DEFAULT_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")

PASSED = frozenset(
    {
        "CI",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "TMPDIR",
        "TRACEPARENT",  # by which what a command does is found under the span of whoever runs it
        "TRACESTATE",
        "TZ",
        "USER",
        "GITHUB_ACTIONS",
        "GITHUB_ACTOR",
        "GITHUB_BASE_REF",
        "GITHUB_EVENT_NAME",
        "GITHUB_HEAD_REF",
        "GITHUB_JOB",
        "GITHUB_REF",
        "GITHUB_REF_NAME",
        "GITHUB_REF_TYPE",
        "GITHUB_REPOSITORY",
        "GITHUB_REPOSITORY_OWNER",
        "GITHUB_RUN_ATTEMPT",
        "GITHUB_RUN_ID",
        "GITHUB_RUN_NUMBER",
        "GITHUB_SERVER_URL",
        "GITHUB_SHA",
        "GITHUB_WORKFLOW",
        "GITHUB_WORKSPACE",
        "RUNNER_ARCH",
        "RUNNER_OS",
        "RUNNER_TRACKING_ID",  # by which the runner finds what a job has left behind
    }
)
"""What every child gets of its parent's, besides `LC_*` and PATH."""

SET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "EDITOR": "true",  # an editor that changes nothing: what needs an edited text fails, the rest goes on
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PROXY_COMMAND": "",  # empty means: none; unset would mean: the first one that any configuration names
    "GIT_ASKPASS": "",  # empty means: no program; unset would mean: the next one, down to SSH_ASKPASS
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    # Git's own settings, which stand above those of a repository. A folder becomes a repository by holding a few
    # files, and its settings then name programs that `git status` runs.
    "GIT_CONFIG_COUNT": "4",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
    "GIT_CONFIG_KEY_2": "protocol.ext.allow",
    "GIT_CONFIG_VALUE_2": "never",
    # No rule has granted what a hook does, and its folder may be one that tools write to (`.husky`).
    "GIT_CONFIG_KEY_3": "core.hooksPath",
    "GIT_CONFIG_VALUE_3": "/dev/null",
    "GCM_INTERACTIVE": "never",
    "GH_PROMPT_DISABLED": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "COMPOSER_NO_INTERACTION": "1",
    "POETRY_NO_INTERACTION": "1",
    "TF_INPUT": "0",
}
"""What every child gets, whatever its parent has."""

NEVER_PASSED = (
    *JOB_TOKENS,
    *MODEL_KEYS,
    *RUNNER_COMMAND_FILES,
    "CI_AGENT_*",
    # They make bash run something before, or read it differently from, the command that was decided on.
    "BASH*",
    "CDPATH",
    "ENV",
    "EXECIGNORE",
    "FUNCNEST",
    "GLOBIGNORE",
    "HISTCHARS",
    "IFS",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS[0-4]",
    "SHELLOPTS",
    "TEXTDOMAIN*",
    # They make the loader put other code into every program.
    "DYLD_*",
    "LD_*",
)
"""Not even when a policy names them."""

_LOCALE = re.compile(r"LANG|LC_[A-Z]+")
_READ_AS_DECIDED = re.compile(r"(?:C|POSIX|(?:[A-Za-z_]+\.)?UTF-?8(?:@[a-z]+)?)?", re.IGNORECASE)
"""The locales in which bash takes the same bytes for the same characters as those who decided."""


def child_environment(
    parent: Mapping[str, str], pass_names: Collection[str] = (), secret_names: Collection[str] = ()
) -> dict[str, str]:
    """The environment of every tool's children, made once from the parent's.

    `pass_names` lets more of the parent's through: names, or patterns with `*`; a pattern passes nothing that
    looks like a secret or makes programs run or load something, such a variable must be spelled. `secret_names` never
    pass, nor do those of NEVER_PASSED, nor
    a locale with another encoding than UTF-8.
    """
    passed = {name: value for name, value in parent.items() if is_always_passed(name)}
    passed |= {name: value for name, value in parent.items() if _is_asked_for(name, pass_names)}
    environment = {
        name: value
        for name, value in passed.items()
        if not (_is_forbidden(name, secret_names) or _is_other_encoding(name, value))
    }
    return environment | SET | {"PATH": _search_path(parent.get("PATH", ""))}


def with_git_settings(environment: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """The environment with more of git's settings, by key."""
    count = int(environment.get("GIT_CONFIG_COUNT", "0"))
    result = dict(environment)
    for number, (key, value) in enumerate(settings.items(), count):
        result |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return result | {"GIT_CONFIG_COUNT": str(count + len(settings))}


def is_always_passed(name: str) -> bool:
    """Whether children get this variable of their parent's without being asked."""
    return name in PASSED or (name.startswith("LC_") and not may_name_a_secret(name))


def refuse_never_passed(pass_names: Iterable[str]) -> None:
    """Raise ConfigurationError for a name, or a pattern, that asks for what no command gets."""
    for name in pass_names:
        if matches(name.upper(), NEVER_PASSED):
            raise ConfigurationError(
                f"{name} is never passed to commands: it is a key, or steers the shell, the loader or the runner. "
                "Leave it out of --pass-env."
            )


def _is_asked_for(name: str, pass_names: Collection[str]) -> bool:
    if may_name_a_secret(name) or changes_what_runs(name):
        return name in pass_names
    return matches(name, pass_names)


def _is_forbidden(name: str, secret_names: Collection[str]) -> bool:
    return name in secret_names or matches(name.upper(), NEVER_PASSED)


def _is_other_encoding(name: str, value: str) -> bool:
    return _LOCALE.fullmatch(name) is not None and not _READ_AS_DECIDED.fullmatch(value)


def _search_path(parents: str) -> str:
    """The parent's absolute folders (a relative one would be looked up in the workspace), then the usual ones."""
    absolute = [folder for folder in parents.split(":") if folder.startswith("/")]
    return ":".join(dict.fromkeys([*absolute, *DEFAULT_PATH]))
