"""Launchers that start a command in another folder: what it reads there is judged there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.policy.decide import Policy

MakePolicy = Callable[..., Policy]
Put = Callable[..., Path]


@pytest.fixture
def decided(policy: MakePolicy, put: Put) -> Policy:
    for name in ("x", "sub/x", "sub/y"):
        put(name)
    return policy(
        """
        - {id: any, allow: bash, command: "**", paths: [., "**"]}
        - {id: kept, deny: read, path: sub/x}
        """
    )


@pytest.mark.parametrize(
    "launcher",
    [
        "uv run --directory sub",
        "uv --directory=sub run",
        "conda run --cwd sub",
        "poetry -C sub run",
        "mise exec -C sub --",
        "composer -d sub exec",
        "pnpm --dir sub exec",
        "sudo -D sub",
        "sudo --chdir=sub",
        "unshare -w sub",
        "env -C sub",
    ],
)
def test_a_file_of_that_folder_is_meant(decided: Policy, launcher: str) -> None:
    decision = decided.decide("bash", {"command": f"{launcher} cat x"})
    assert (decision.effect, decision.rule_id) == ("deny", "kept")
    assert decided.decide("bash", {"command": f"{launcher} cat y"}).effect == "allow"
    assert decided.decide("bash", {"command": f"{launcher} cat ../../y"}).effect == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "su - -c 'cat x'",
        "su -l root -c 'cat x'",
        "pkexec cat x",
        "systemd-run cat x",
        "chroot sub cat x",
        "unshare -R sub cat x",
        "sudo -R sub cat x",
        "nsenter -t 1 -m cat x",
        "npm -w sub exec -- cat x",
        "npx -w sub cat x",
        "pnpm -r exec cat x",
        "lerna exec -- cat x",
        "sudo PATH=. cat x",
        "sudo LD_PRELOAD=./y cat x",
    ],
)
def test_no_wildcard_lets_a_command_run_elsewhere_or_otherwise(decided: Policy, line: str) -> None:
    assert decided.decide("bash", {"command": line}).effect == "deny"
