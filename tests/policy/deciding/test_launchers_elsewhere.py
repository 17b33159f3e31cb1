"""Launchers that start a command in another folder: what it reads there is judged there."""

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy


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


SPELLED = """
- {id: any, allow: bash, command: "**", paths: [., "**"]}
- id: packages
  allow: bash
  command: ["{lerna,nx} exec **", "pnpm -r exec **", "pnpm --filter * exec **", "pnpm -r -c exec **",
    "npm exec -w * **", "npm -w * exec **", "npm -ws exec **", "npx -w * **", "npm --prefix * exec **",
    "npm --prefix * run **", "npm -C * exec **", "npm -w * run **", "yarn workspace * exec **",
    "yarn workspaces foreach -A exec **", "turbo run * --cwd * -- **", "bun --filter * run **",
    "git submodule foreach **", "pnpm {-C,--dir} * exec **", "yarn --cwd * **", "bun --cwd * x **"]
  paths: [., "**"]
- {id: kept, deny: read, path: "packages/*/x"}
"""


@pytest.fixture
def spelled(policy: MakePolicy, put: Put) -> Policy:
    for name in ("package.json", "packages/a/package.json", "packages/a/x", "packages/b/package.json", "packages/b/y"):
        put(name)
    return policy(SPELLED)


LAUNCHERS = [
    "lerna exec --",
    "lerna exec",
    "lerna exec --scope a --",
    "npx lerna exec --",
    "nx exec --",
    "pnpm -r exec",
    "pnpm -r -c exec",
    "pnpm --filter a exec",
    "npm exec -w a --",
    "npm -w a exec --",
    "npm -ws exec --",
    "npx -w packages/a",
    "npm --prefix packages/a exec --",
    "npm -C packages/a exec --",
    "pnpm -C packages/a exec",
    "pnpm --dir packages/a exec",
    "yarn --cwd packages/a exec",
    "bun --cwd packages/a x",
    "yarn workspace a exec",
    "yarn workspaces foreach -A exec",
    "git submodule foreach",
]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_spelled_launcher_reads_in_the_folder_of_any_package(spelled: Policy, launcher: str) -> None:
    decision = spelled.decide("bash", {"command": f"{launcher} cat x"})
    assert (decision.effect, decision.rule_id) == ("deny", "kept")
    assert spelled.decide("bash", {"command": f"{launcher} cat y"}).effect == "allow"
    assert spelled.decide("bash", {"command": f"{launcher} cat ../../../y"}).effect == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "npm exec -w a -c 'cat x'",
        "npx -w a -c 'cat x'",
        "git submodule foreach 'cat x'",
        "npm -w a run show -- x",
        "npm --prefix packages/a run show -- x",
        "pnpm -r run show x",
        "yarn workspace a show x",
        "yarn workspaces run show x",
        "lerna run show -- x",
        "nx run-many -t show -- x",
        "turbo run show -- x",
        "turbo run show --cwd packages/a -- x",
        "bun --filter '*' run show x",
        "yarn --cwd packages/a show x",
        "go -C packages/a run x",
        "make -C packages/a -f x",
        "cargo -C packages/a build x",
    ],
)
def test_shell_text_and_words_for_scripts_of_packages_mean_files_there_too(spelled: Policy, line: str) -> None:
    assert spelled.decide("bash", {"command": line}).rule_id == "kept"
    assert spelled.decide("bash", {"command": line.replace(" x", " y")}).rule_id != "kept"


@pytest.mark.parametrize(
    "line", ["lerna exec 'cat y'", "lerna exec -- cat '$HOME'", "nx exec -- 'true; cat y'", "pnpm -r -c exec 'cat y'"]
)
def test_words_that_a_shell_reads_once_more_are_plain(spelled: Policy, line: str) -> None:
    assert "a shell reads the command once more" in spelled.decide("bash", {"command": line}).reason


@pytest.mark.parametrize("before", ["mkdir c; echo > c/package.json", "cp -r packages/b c", "git checkout main"])
def test_packages_that_the_call_brings_are_not_known(spelled: Policy, before: str) -> None:
    assert spelled.decide("bash", {"command": "pnpm -r exec cat y"}).effect == "allow"
    assert spelled.decide("bash", {"command": f"{before}; pnpm -r exec cat y"}).effect == "deny"


def test_more_packages_than_can_be_looked_at_are_denied(spelled: Policy, put: Put) -> None:
    for number in range(60):
        put(f"more/{number}/package.json")
    assert "more than 60 folders" in spelled.decide("bash", {"command": "pnpm -r exec cat y"}).reason


def test_what_was_installed_is_no_package_of_the_workspace(policy: MakePolicy, put: Put) -> None:
    for name in ("package.json", "node_modules/dep/package.json", "node_modules/dep/x"):
        put(name)
    decided = policy(SPELLED.replace("packages/*/x", "node_modules/dep/x"))
    assert decided.decide("bash", {"command": "pnpm -r exec cat x"}).effect == "allow"
