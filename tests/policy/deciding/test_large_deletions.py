"""A folder with more in it than one decision looks at is deleted by a rule that covers it whatever it holds."""

from pathlib import Path

import pytest

from ci_agent import Policy, load_policy

SPELLED = '["**", "node_modules/**/.git/**", "node_modules/**/.github/workflows/**"]'


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    for number in range(3_000):
        (folder / "node_modules" / f"p{number}").mkdir(parents=True)
    return folder


def _policy(workspace: Path, paths: str, *denies: str) -> Policy:
    rules = "".join(f"- {{id: d{at}, deny: {deny}}}\n" for at, deny in enumerate(denies))
    allow = f"- {{id: clean, allow: bash, command: [rm -rf **, echo **], paths: {paths}}}\n"
    return load_policy(text=f"policy: 1\nrules:\n{allow}{rules}", workspace=workspace)


def test_a_rule_that_spells_what_is_protected_covers_it(workspace: Path) -> None:
    decision = _policy(workspace, SPELLED).decide("bash", {"command": "rm -rf node_modules && echo done"})
    assert decision.reason == "Allowed by policy rule clean."


def test_a_wildcard_does_not(workspace: Path) -> None:
    assert _policy(workspace, '["**"]').decide("bash", {"command": "rm -rf node_modules"}).code == "hazard"


def test_a_deny_that_cannot_be_about_anything_there_needs_no_look(workspace: Path) -> None:
    policy = _policy(workspace, SPELLED, 'write, path: "src/**"', 'read, path: "**/.env"')
    assert policy.decide("bash", {"command": "rm -rf node_modules"}).effect == "allow"


@pytest.mark.parametrize(
    "deny", ['write, path: "**/.env"', 'write, path: "node_modules/x/*"', 'edit, path: "NODE_MODULES/**/*.pem"']
)
def test_a_deny_that_may_be_about_something_there_does(workspace: Path, deny: str) -> None:
    assert _policy(workspace, SPELLED, deny).decide("bash", {"command": "rm -rf node_modules"}).effect == "deny"
