"""Which environment variables change what runs."""

import pytest

from ci_agent.steering_names import changes_what_runs, matters_to_shell_alone


@pytest.mark.parametrize(
    "name",
    """
    LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES PATH BASH_ENV BASH_FUNC_x%% ENV IFS PS4 PROMPT_COMMAND SHELLOPTS
    GIT_EXTERNAL_DIFF GIT_SSH_COMMAND GIT_CONFIG_COUNT PAGER MANPAGER EDITOR VISUAL NODE_OPTIONS npm_config_script_shell
    NPM_CONFIG_SCRIPT_SHELL PYTHONPATH PYTHONSTARTUP PYTEST_ADDOPTS PERL5LIB PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS GOFLAGS
    MAKEFLAGS HOME XDG_CONFIG_HOME LESSOPEN TAR_OPTIONS RIPGREP_CONFIG_PATH CARGO_HOME RUSTC_WRAPPER HTTPS_PROXY
    https_proxy KUBECONFIG DOCKER_HOST CC SUDO_ASKPASS VIRTUAL_ENV ZIP UNZIPOPT BZIP2 BC_ENV_ARGS MANOPT GOCACHEPROG
    GOAUTH GOPACKAGESDRIVER GROFF_COMMAND_PREFIX HARNESS_PERL SPEC_OPTS RUBOCOP_OPTS CONFIG_SITE APT_CONFIG
    CLOUDSDK_PYTHON KUBECTL_EXTERNAL_DIFF CONTAINERS_CONF ESBUILD_BINARY_PATH CCACHE_PREFIX RUSTFMT HGMERGE
    LIBCLANG_PATH VALGRIND_OPTS ASAN_SYMBOLIZER_PATH DEBUGINFOD_URLS SSLKEYLOGFILE LLVM_PROFILE_FILE PERLIO
    SUNPRO_DEPENDENCIES SIMPLE_BACKUP_SUFFIX POSIXLY_CORRECT TAPE RM Npm_Config_Script_Shell Https_Proxy MY_JAVA_OPTIONS
    X_WRAPPER JAVACMD NINJA M4 MPLBACKEND USE_BAZEL_VERSION OTEL_EXPORTER_OTLP_ENDPOINT APP_SETTINGS_MODULE
    X_CONFIG_FILE
    """.split(),  # noqa: SIM905  # reads better than fifty quoted names
)
def test_carriers(name: str) -> None:
    assert changes_what_runs(name)


@pytest.mark.parametrize(
    "name", ["CI", "NODE_ENV", "LC_ALL", "LANG", "GOOS", "GOARCH", "DEBUG", "TZ", "FOO", "VERSION"]
)
def test_ordinary_variables(name: str) -> None:
    assert not changes_what_runs(name)


@pytest.mark.parametrize(("name", "matters"), [("PATH", True), ("TAR_OPTIONS", True), ("ZIP", False), ("FOO", False)])
def test_an_everyday_word_is_free_until_programs_get_it(name: str, matters: bool) -> None:
    assert matters_to_shell_alone(name) is matters
