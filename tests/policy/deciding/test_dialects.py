"""Text for a shell is read as that shell reads it; what `sh` is, nobody knows."""

from collections.abc import Callable

import pytest
from policy_calls import MakePolicy

COMMANDS = r"""
- id: run
  allow: bash
  command:
    - "{bash,sh,dash,busybox,timeout,env,xargs,find,flock,watch,script} **"
    - "{bash,sh,dash,/bin/bash,/bin/sh,/bin/dash} -c *"
    - "{bash,sh,dash} -eu -o pipefail -c *"
    - "bash {--posix,-l,-i,-k,+B} -c *"
    - "bash -o {posix,noglob} -c *"
    - "bash -O * -c *"
    - "{zsh,ksh,fish,csh} -c *"
    - "exec -a * bash -c *"
    - "env {-a,--argv0} sh bash -c *"
    - "script -c * out"
    - "flock out -c *"
    - "eval **"
    - "find . -exec **"
    - "{ls,cat,[[} **"
  env: [X, LC_ALL, HOME, POSIXLY_CORRECT, BASH_ENV, CDPATH]
- id: out
  allow: bash
  command: "{script,flock} **"
  paths: out
"""

BASH_ALONE = r"""ls $'a\'; rm #'"""


@pytest.fixture
def effect(policy: MakePolicy) -> Callable[[str], str]:
    decided = policy(COMMANDS)
    return lambda command: decided.decide("bash", {"command": command}).effect


@pytest.mark.parametrize(
    "command",
    [
        "bash -c 'ls {a,b}'",
        "/bin/bash -c 'ls {a,b}'",
        "bash -eu -o pipefail -c '[[ a == b ]] && ls'",
        "bash -l -c 'ls {a,b}'",
        "eval 'ls {a,b}'",
        "bash -c \"eval 'ls {a,b}'\"",
        "timeout 5 bash -c 'ls {a,b}'",
        "sh -c 'ls a && cat b | cat'",
        "sh -eu -o pipefail -c 'for f in a b; do cat \"$f\"; done'",
        "find . -exec sh -c 'cat a' ';'",
        "busybox sh -c 'ls a'",
        "X=1 sh -c 'ls a'",
        "LC_ALL=C sh -c 'ls a'",
        "LC_ALL=en_US.UTF-8 bash -c 'ls a'",
        "env LC_ALL=C bash -c 'ls a'",
    ],
)
def test_what_the_shell_certainly_reads_so_is_allowed(effect: Callable[[str], str], command: str) -> None:
    assert effect(command) == "allow"


@pytest.mark.parametrize(
    "start",
    [
        *("sh -c", "dash -c", "/bin/sh -c", "env sh -c", "timeout 5 sh -c", "xargs sh -c", "busybox sh -c"),
        *("bash --posix -c", "bash -o posix -c", "busybox bash -c", "sh -eu -o pipefail -c", "flock out -c", "watch"),
        *("zsh -c", "ksh -c", "fish -c", "csh -c"),
    ],
)
def test_what_bash_alone_reads_so_is_denied_elsewhere(effect: Callable[[str], str], start: str) -> None:
    assert effect(f"{start} 'ls {{a,b}}'") == "deny"


def test_text_for_script_and_inside_of_eval_is_for_the_shell_around(effect: Callable[[str], str]) -> None:
    assert effect("script -c 'ls a' out") == "allow"
    assert effect("script -c 'ls {a,b}' out") == "deny"
    assert effect("sh -c \"eval 'ls a'\"") == "allow"
    assert effect("sh -c \"eval 'ls {a,b}'\"") == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "zsh -c 'ls a'",
        "fish -c 'ls a'",
        "bash -O extglob -c 'ls a'",
        "bash -o noglob -c 'ls a'",
        "bash -k -c 'ls a'",
        "bash +B -c 'ls a'",
        "bash -i -c 'ls a'",
        "exec -a sh bash -c 'ls a'",
        "env -a sh bash -c 'ls a'",
        "env --argv0=sh bash -c 'ls a'",
        "env POSIXLY_CORRECT=1 bash -c 'ls a'",
        "env BASH_ENV=x bash -c 'ls a'",
        "env CDPATH=x bash -c 'cd a && ls b'",
        "env LC_ALL=ja_JP.SJIS bash -c 'ls a'",
        "LC_ALL=ja_JP.SJIS bash -c 'ls a'",
        "LC_ALL=ja_JP.SJIS eval 'ls a'",
    ],
)
def test_a_shell_told_to_read_otherwise_is_denied(effect: Callable[[str], str], command: str) -> None:
    assert effect(command) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "cd sub && bash -c 'cat $PWD/x'",
        "cd sub && eval 'cat $PWD/x'",
        "env -i bash -c 'cat $HOME/etc/passwd'",
        "HOME=/etc bash -c 'cat ~/passwd'",
    ],
)
def test_what_an_inner_shell_starts_with_is_not_known(policy: MakePolicy, command: str) -> None:
    decided = policy(COMMANDS + '- {id: home, allow: bash, command: "cat **", paths: ["~/**"]}')
    assert decided.decide("bash", {"command": command}).effect == "deny"


@pytest.mark.parametrize("command", ["rm [[ && echo kept", "rm [[ || echo kept", "rm -f [[ > out && echo kept"])
def test_behind_two_brackets_busybox_hands_the_next_command_to_the_one_before(policy: MakePolicy, command: str) -> None:
    decided = policy("""
        - {id: run, allow: bash, command: ["{sh,bash} -c *", "{rm,echo} **"], paths: ["**"]}
        - {id: out, allow: write}
        - {id: kept, deny: [read, write], path: kept}
    """)
    answers = {start: decided.decide("bash", {"command": f"{start} -c '{command}'"}).effect for start in ("sh", "bash")}
    assert answers == {"sh": "deny", "bash": "allow"}
