import os
import subprocess
from pathlib import Path

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.process import child_environment, refuse_never_passed
from ci_agent.process.environment import DEFAULT_PATH, PASSED, SET

USUAL_PATH = ":".join(DEFAULT_PATH)

NEVER = [
    "ACTIONS_CACHE_URL",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "ANTHROPIC_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_OPENAI_API_KEY",
    "BASHOPTS",
    "BASH_COMPAT",
    "BASH_ENV",
    "BASH_FUNC_ls%%",
    "CDPATH",
    "CI_AGENT_POLICY",
    "DYLD_INSERT_LIBRARIES",
    "ENV",
    "EXECIGNORE",
    "FUNCNEST",
    "GEMINI_API_KEY",
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_TOKEN",
    "GLOBIGNORE",
    "IFS",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "OPENAI_API_KEY",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "TEXTDOMAIN",
    "TEXTDOMAINDIR",
    "histchars",
]


def test_a_child_gets_the_allowed_facts_of_its_parent_and_the_settings_against_prompts_and_nothing_else() -> None:
    parent = {
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "CI": "true",
        "GITHUB_SHA": "abc",
        "RUNNER_TRACKING_ID": "github_1",
        "TERM": "xterm-256color",
        "PATH": "/opt/tool/bin:/usr/bin",
        "HTTPS_PROXY": "http://user:password@proxy",
        "DATABASE_URL": "postgres://",
        "LD_PRELOAD": "/tmp/evil.so",
        "GIT_DIR": "/elsewhere",
        "GIT_SSH_COMMAND": "evil",
    }
    assert child_environment(parent) == SET | {
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "CI": "true",
        "GITHUB_SHA": "abc",
        "RUNNER_TRACKING_ID": "github_1",
        "PATH": "/opt/tool/bin:/usr/bin:/usr/local/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    }


def test_an_empty_parent_makes_a_usable_child() -> None:
    assert child_environment({}) == SET | {"PATH": USUAL_PATH}


@pytest.mark.parametrize("path", ["", ".", "bin:./tools::..", "~/bin"])
def test_relative_folders_are_no_place_to_look_for_programs(path: str) -> None:
    assert child_environment({"PATH": path})["PATH"] == USUAL_PATH


def test_named_variables_and_patterns_pass() -> None:
    parent = {"NODE_ENV": "test", "NPM_TOKEN": "mine", "MY_A": "1", "MY_B": "2", "OTHER": "3"}
    passed = child_environment(parent, ["NODE_ENV", "NPM_TOKEN", "MY_*"])
    assert passed == child_environment({}) | {"NODE_ENV": "test", "NPM_TOKEN": "mine", "MY_A": "1", "MY_B": "2"}


def test_a_pattern_passes_nothing_that_looks_like_a_secret() -> None:
    parent = {"APP_TOKEN": "1", "APP_SECRET_2": "2", "app_password": "3", "MY_API_KEY": "4", "APP_NAME": "shop"}
    assert child_environment(parent, ["*"]) == child_environment({}) | {"APP_NAME": "shop"}


def test_a_pattern_passes_nothing_that_makes_programs_run_or_load_something() -> None:
    parent = {"LESSOPEN": "|evil", "NODE_OPTIONS": "-r ./evil", "GIT_SSH_COMMAND": "evil", "HTTPS_PROXY": "http://evil"}
    assert child_environment(parent, ["*", "GIT_*", "NODE_*"]) == child_environment({})
    assert child_environment(parent, ["NODE_OPTIONS"])["NODE_OPTIONS"] == "-r ./evil"


@pytest.mark.parametrize("name", NEVER)
@pytest.mark.parametrize("by_name", [True, False])
def test_keys_and_what_steers_the_runner_or_bash_never_pass(name: str, by_name: bool) -> None:
    assert child_environment({name: "canary"}, [name if by_name else "*"]) == child_environment({})


@pytest.mark.parametrize("name", [*NEVER, "LD_*", "BASH_*", "ld_preload"])
def test_asking_for_what_never_passes_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is never passed to commands") as caught:
        refuse_never_passed(["NODE_ENV", name])
    assert str(caught.value).startswith(name)


def test_asking_for_other_names_and_patterns_is_not_refused() -> None:
    refuse_never_passed(["NODE_ENV", "NPM_TOKEN", "MY_*", "*", "LANG", "PSQL"])


@pytest.mark.parametrize(
    "value", ["", "C", "POSIX", "C.UTF-8", "en_US.UTF-8", "en_US.utf8", "de_DE.UTF-8@euro", "UTF-8"]
)
@pytest.mark.parametrize("name", ["LANG", "LC_ALL", "LC_CTYPE"])
def test_a_locale_in_which_bash_reads_what_was_decided_on_passes(name: str, value: str) -> None:
    assert child_environment({name: value})[name] == value


@pytest.mark.parametrize("value", ["ja_JP.SJIS", "zh_CN.GBK", "en_US", "de_DE@euro", "C.ISO-8859-1", "/tmp/x.UTF-8"])
@pytest.mark.parametrize("name", ["LANG", "LC_ALL", "LC_CTYPE"])
def test_a_locale_with_another_encoding_does_not_pass(name: str, value: str) -> None:
    assert child_environment({name: value}, [name]) == child_environment({})


def test_a_name_that_differs_in_case_is_no_way_around() -> None:
    assert child_environment({"github_token": "canary"}, ["github_token"]) == child_environment({})


def test_the_runs_own_secrets_never_pass() -> None:
    parent = {"MY_PROXY_KEY": "canary"}
    assert child_environment(parent, ["MY_PROXY_KEY"], secret_names=["MY_PROXY_KEY"]) == child_environment({})


def test_the_settings_against_prompts_win_over_what_a_policy_passes() -> None:
    assert child_environment({"GIT_ASKPASS": "/bin/evil"}, ["GIT_ASKPASS"])["GIT_ASKPASS"] == ""


def test_no_name_is_both_allowed_and_forbidden() -> None:
    environment = child_environment(dict.fromkeys(PASSED, "C"))
    assert set(environment) == PASSED | set(SET) | {"PATH"}


def test_git_asks_nobody(tmp_path: Path) -> None:
    """Asked for a password by a server, git would open the terminal, or a program that opens a window."""
    script = "printf 'protocol=https\\nhost=localhost\\n\\n' | git credential fill"
    environment = child_environment({**os.environ, "SSH_ASKPASS": "/bin/true", "HOME": str(tmp_path)})
    done = subprocess.run(
        ["bash", "-c", script],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        start_new_session=True,
    )
    assert (done.returncode, "terminal prompts disabled" in done.stderr) == (128, True)


@pytest.mark.parametrize("guarded", [False, True])
def test_a_folder_made_into_a_repository_runs_no_program_of_its_settings(tmp_path: Path, guarded: bool) -> None:
    """Without the settings of the environment git does run it, which is what they are for."""
    folder = tmp_path / "work" / "src"
    for name in ("objects", "refs", "tree"):
        (folder / name).mkdir(parents=True)
    canary = tmp_path / "canary"
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = tree\n"
        f'\tfsmonitor = "touch {canary}; false"\n'
    )
    parent = {**os.environ, "HOME": str(tmp_path)}
    environment = child_environment(parent) if guarded else parent
    subprocess.run(["git", "-C", str(folder), "status"], check=False, capture_output=True, env=environment)
    assert canary.exists() is not guarded


def test_a_repository_found_by_its_git_folder_runs_no_fsmonitor_and_no_hooks(tmp_path: Path) -> None:
    environment = child_environment({**os.environ, "HOME": str(tmp_path)})
    canary, work = tmp_path / "canary", tmp_path / "work"
    script = f"""
        git init -q {work} && cd {work} &&
        git config core.fsmonitor 'touch {canary}; false' &&
        printf '#!/bin/sh\ntouch {canary}\n' | tee .git/hooks/pre-commit > .git/hooks/post-index-change &&
        chmod +x .git/hooks/p* &&
        git status && git -c user.name=a -c user.email=a@b.invalid commit -q --allow-empty -m x
    """
    subprocess.run(["bash", "-c", script], check=True, capture_output=True, env=environment)
    assert not canary.exists()


def test_who_spells_the_folder_of_hooks_has_them_run(tmp_path: Path) -> None:
    environment = child_environment({**os.environ, "HOME": str(tmp_path)})
    hooked, work = tmp_path / "hooked", tmp_path / "work"
    script = f"""
        git init -q {work} && cd {work} &&
        printf '#!/bin/sh\ntouch {hooked}\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit &&
        git -c core.hooksPath=.git/hooks -c user.name=a -c user.email=a@b.invalid commit -q --allow-empty -m x
    """
    subprocess.run(["bash", "-c", script], check=True, capture_output=True, env=environment)
    assert hooked.exists()
