"""Which environment variables change what runs."""

import pytest

from ci_agent.steering_names import changes_what_runs


@pytest.mark.parametrize(
    "name",
    """
    LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES PATH BASH_ENV BASH_FUNC_x%% ENV IFS PS4 PROMPT_COMMAND SHELLOPTS
    GIT_EXTERNAL_DIFF GIT_SSH_COMMAND GIT_CONFIG_COUNT PAGER MANPAGER EDITOR VISUAL NODE_OPTIONS npm_config_script_shell
    NPM_CONFIG_SCRIPT_SHELL PYTHONPATH PYTHONSTARTUP PYTEST_ADDOPTS PERL5LIB PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS GOFLAGS
    MAKEFLAGS HOME XDG_CONFIG_HOME LESSOPEN TAR_OPTIONS RIPGREP_CONFIG_PATH CARGO_HOME RUSTC_WRAPPER HTTPS_PROXY
    https_proxy KUBECONFIG DOCKER_HOST CC SUDO_ASKPASS VIRTUAL_ENV
    """.split(),  # noqa: SIM905  # reads better than fifty quoted names
)
def test_carriers(name: str) -> None:
    assert changes_what_runs(name)


@pytest.mark.parametrize(
    "name", ["CI", "NODE_ENV", "LC_ALL", "LANG", "GOOS", "GOARCH", "DEBUG", "TZ", "FOO", "VERSION"]
)
def test_ordinary_variables(name: str) -> None:
    assert not changes_what_runs(name)
