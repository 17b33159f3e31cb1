"""A word that names a file whose code runs means the same file as in the rule, whatever the folder it is seen from."""

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy

COMMANDS = """
- id: run
  allow: bash
  command:
    - ./build.sh
    - sh ./build.sh
    - bash -eu build.sh
    - python ./tool.py **
    - python scripts/*
    - source ./env.sh
    - . env.sh
    - make -f rules.mk
    - make --file=rules.mk all
    - node --require=./hook.js **
    - gcc -fplugin=./p.so **
    - cd *
"""


@pytest.fixture
def decided(policy: MakePolicy, put: Put) -> Policy:
    for name in ("build.sh", "tool.py", "env.sh", "rules.mk", "hook.js", "scripts/a.py"):
        put(name)
        put(f"sub/{name}")
    return policy(COMMANDS)


@pytest.mark.parametrize(
    "command",
    [
        "cd sub && ./build.sh",
        "cd sub && sh ./build.sh",
        "cd sub && bash -eu build.sh",
        "cd sub && python ./tool.py",
        "cd sub && python ./tool.py ../tool.py",
        "cd sub && python scripts/a.py",
        "cd sub && python scripts/new.py",
        "cd sub && source ./env.sh",
        "cd sub && . env.sh",
        "cd sub && make -f rules.mk",
        "cd sub && make --file=rules.mk all",
        "cd sub && node --require=./hook.js ../tool.py",
        "cd sub && for f in ./build.sh; do sh $f; done",
        "cd sub && timeout 5 sh ./build.sh",
        "cd sub/.. && cd sub && sh ./build.sh",
    ],
)
def test_a_rule_for_a_script_of_the_workspace_grants_no_other_folder_s(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "./build.sh",
        "sh ./build.sh",
        "cd sub && ../build.sh",
        "cd sub && sh ../build.sh",
        "cd sub && bash -eu ../build.sh",
        "cd sub && python ../tool.py a b",
        "cd sub && python ../scripts/a.py",
        "cd sub && source ../env.sh",
        "cd sub && . ../env.sh",
        "cd sub && make -f ../rules.mk",
        "cd sub && make --file=../rules.mk all",
        "for f in ./build.sh; do sh $f; done",
        "cd sub && for f in ../build.sh; do sh $f; done",
        "python scripts/a.py",
    ],
)
def test_the_script_itself_is_granted_from_everywhere(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "allow"


def test_the_paths_of_a_rule_bound_the_folder_that_its_command_runs_in(policy: MakePolicy, put: Put) -> None:
    for name in ("src/app/package.json", "notes/package.json"):
        put(name)
    decided = policy(
        """
        - {id: test, allow: bash, command: npm test, paths: "src/**"}
        - {id: look, allow: bash, command: cat **, paths: "src/*/*.json"}
        - {id: go, allow: bash, command: "cd *"}
        """
    )

    def effect(command: str) -> str:
        return decided.decide("bash", {"command": command}).effect

    assert effect("npm test") == "allow"
    assert effect("cd src && npm test") == "allow"
    assert effect("cd src/app && npm test") == "allow"
    assert effect("cd src/app && cat package.json") == "allow"
    assert effect("cd notes && npm test") == "deny"
    assert effect("cd notes && cat ../src/app/package.json") == "deny"
