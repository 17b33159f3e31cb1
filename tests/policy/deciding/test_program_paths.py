"""Programs that a rule spells by a path, seen from other folders."""

import pytest
from policy_calls import MakePolicy, Put, bash


@pytest.mark.parametrize(
    "command",
    [
        "cd sub && ./build.sh",
        "(cd sub && timeout 5 ./build.sh)",
        "cd sub && ./../sub/build.sh",
        "cd src && src/run.sh",
        "cd src/tools && ./run.sh",
        "cd src && tools/../../evil.sh",
        "./tools/../evil.sh",
        "/usr/bin/../../tmp/evil",
        "cd sub && env -C . ./build.sh",
    ],
)
def test_a_program_of_the_same_spelling_in_another_folder_is_another_program(
    policy: MakePolicy, put: Put, command: str
) -> None:
    for name in ("build.sh", "sub/build.sh", "src/run.sh", "src/src/run.sh", "src/tools/run.sh", "evil.sh"):
        put(name)
    decided = policy(
        """
        - {id: cd, allow: bash, command: ["cd **", "env **"]}
        - {id: mine, allow: bash, command: [./build.sh, "xargs ./build.sh", src/run.sh, "./tools/*", "/usr/bin/*"]}
        - {id: run, allow: bash, command: ./run.sh}
        """
    )
    assert bash(decided, command).code == "default"


@pytest.mark.parametrize(
    "command",
    [
        "./build.sh",
        "cd sub && ../build.sh",
        "cd src && ./run.sh",
        "cd src/tools && ../run.sh",
        "cd tools && ./check",
        "cd sub && timeout 5 ../build.sh",
    ],
)
def test_a_program_is_the_one_that_the_rule_spells_wherever_it_is_run_from(
    policy: MakePolicy, put: Put, command: str
) -> None:
    for name in ("build.sh", "sub/a", "src/run.sh", "src/tools/a", "tools/check"):
        put(name)
    decided = policy(
        """
        - {id: cd, allow: bash, command: ["cd **", "xargs **"]}
        - {id: mine, allow: bash, command: [./build.sh, src/run.sh, "./tools/*"]}
        """
    )
    assert bash(decided, command).effect == "allow"
