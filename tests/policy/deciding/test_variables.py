"""Variables before a command: a wildcard covers harmless ones, and none that make a program run or load something."""

import os
import subprocess
from pathlib import Path

import pytest
from policy_calls import MakePolicy

from ci_agent.policy.decide import Policy

STEERING = """
    LESSOPEN LESS TAR_OPTIONS GREP_OPTIONS PYTHONPATH PYTHONSTARTUP PYTHONHOME NODE_OPTIONS NODE_PATH PERL5OPT
    PERL5LIB RUBYOPT RUBYLIB GIT_DIR GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PAGER GIT_CONFIG_COUNT LD_PRELOAD
    GIT_CONFIG_PARAMETERS LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV PATH IFS PAGER EDITOR VISUAL JAVA_TOOL_OPTIONS
    MAKEFLAGS CC HTTPS_PROXY DOTNET_STARTUP_HOOKS LUA_INIT VIMINIT ZDOTDIR GTK_MODULES R_PROFILE ERL_AFLAGS
    GNUPGHOME SVN_SSH NIX_PATH ANSIBLE_CONFIG DBUS_SESSION_BUS_ADDRESS MONO_PATH VK_ICD_FILENAMES GI_TYPELIB_PATH MAILRC
    CUDA_INJECTION64_PATH GHC_ENVIRONMENT OCAMLPATH ES_JAVA_OPTS JJ_EDITOR OCTAVE_SITE_INITFILE
""".split()  # noqa: SIM905 - reads better than forty quoted names


def effect(policy: Policy, command: str) -> str:
    return policy.decide("bash", {"command": command}).effect


@pytest.mark.parametrize("name", STEERING)
def test_no_wildcard_covers_a_variable_that_makes_programs_run_something(policy: MakePolicy, name: str) -> None:
    rule = "[{{id: a, allow: bash, command: 'make test', env: [{env}]}}]"
    for pattern in ("'*'", f"'{name[:2]}*'", f"'{name[:-1]}*'"):
        assert effect(policy(rule.format(env=pattern)), f"{name}=x make test") == "deny"


@pytest.mark.parametrize("name", ["NODE_OPTIONS", "PYTHONPATH", "CC", "GIT_SSH_COMMAND"])
def test_who_spells_such_a_variable_has_it(policy: MakePolicy, name: str) -> None:
    decided = policy(f"[{{id: a, allow: bash, command: 'make test', env: [{name}]}}]")
    assert effect(decided, f"{name}=x make test") == "allow"


def test_a_wildcard_covers_the_others(policy: MakePolicy) -> None:
    decided = policy("[{id: a, allow: bash, command: 'make test', env: ['*']}]")
    assert {effect(decided, f"{name}=x make test") for name in ("NODE_ENV", "GOOS", "MY_VAR")} == {"allow"}


@pytest.mark.parametrize(
    "command",
    [
        "PYTHONSTARTUP={script} python3 -i",
        "PERL5OPT=-Mevil PERL5LIB={folder} perl -e 1",
        "GREP_OPTIONS=x TAR_OPTIONS='--to-command={script}' tar -xf a.tar",
        "GIT_EXTERNAL_DIFF={script} git diff --no-index --ext-diff a b",
        "BASH_ENV={script} bash -c true",
        "RM={script} make -f {folder}/clean.mk",
    ],
)
def test_what_such_a_variable_does_is_real(policy: MakePolicy, tmp_path: Path, command: str) -> None:
    """Each of these programs runs the canary; the policy that grants the program and any variable does not."""
    canary, script = tmp_path / "canary", tmp_path / "script"
    script.write_text(
        f"#!/bin/sh\n: ; exec touch {canary}\n" if "PYTHON" not in command else f"open({str(canary)!r}, 'w')"
    )
    script.chmod(0o755)
    (tmp_path / "evil.pm").write_text(f"open(F, '>', '{canary}'); 1;")
    (tmp_path / "clean.mk").write_text("clean:\n\t$(RM) a\n")
    for name in "ab":
        (tmp_path / name).write_text(name)
    subprocess.run(["tar", "-cf", "a.tar", "a"], cwd=tmp_path, check=True)
    line = command.format(script=script, folder=tmp_path)
    subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL, check=False
    )
    assert canary.exists()
    decided = policy("[{id: a, allow: bash, command: ['**'], env: ['*']}]")
    assert effect(decided, line) == "deny"


@pytest.mark.parametrize(("exported", "answer"), [((), "allow"), (("ZIP",), "deny")])
def test_an_everyday_word_may_be_a_variable_unless_programs_get_it(
    policy: MakePolicy, exported: tuple[str, ...], answer: str
) -> None:
    decided = policy("[{id: a, allow: bash, command: 'echo **'}]", exported=frozenset(exported))
    assert effect(decided, 'ZIP="a.zip"; echo "$ZIP"') == answer


@pytest.mark.parametrize(
    "command",
    [
        "(( PATH = 10 )); ls",
        "(( 1 && (PATH = 10) )); ls",
        ": $((PATH=10)); ls",
        ": $((0 ? 1 : (PATH = 10))); ls",
        "for ((PATH = 10; PATH < 11; PATH++)); do ls; done",
        "exec {PATH}> out; ls",
        "exec {PATH}<<< x; ls",
        "printf 1234567890%n PATH; ls",
        "{ /bin/true; } {PATH}> out; ls",
        'echo "$(: $((PATH = 10)); ls)"',
    ],
)
def test_such_a_variable_gets_no_number_either(policy: MakePolicy, tmp_path: Path, command: str) -> None:
    """A number is the name of a folder, too: the first free descriptor is 10."""
    canary, program = tmp_path / "canary", tmp_path / "10/ls"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n: > {canary}\n")
    program.chmod(0o755)
    subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=False)
    assert canary.exists()
    decided = policy("[{id: a, allow: bash, command: ['**']}, {id: b, allow: write}]")
    assert "%n" in command or effect(decided, command.replace("PATH", "COUNT")) == "allow"
    assert effect(decided, command) == "deny"
