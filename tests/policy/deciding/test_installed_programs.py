"""Programs that are spelled by the folder that they are installed in count as what their name says, and as no more."""

import pytest
from policy_calls import MakePolicy, Put, bash

ANYTHING = """
    - {id: shell, allow: bash, command: "**", paths: [".", "**"]}
    - {id: no-env, deny: read, path: ["**/.env"]}
"""


@pytest.mark.parametrize(
    "command",
    [
        ".venv/bin/ruff check --fix src",
        ".venv/bin/ruff check --output-file src/x src",
        ".venv/bin/python -c 'import os'",
        "./.venv/bin/python3 -m evil",
        ".venv/bin/pytest -p evil",
        "node_modules/.bin/eslint --fix src",
        "sub/node_modules/.bin/eslint --rulesdir src",
        "vendor/bin/phpunit --bootstrap src/evil.php",
        "/opt/node/bin/node -e evil",
        "../tools/bin/git -c core.pager=evil log",
        "venv/Scripts/python -c evil",
        "timeout 5 .venv/bin/pytest -p evil",
    ],
)
def test_no_wildcard_covers_what_its_options_do(policy: MakePolicy, put: Put, command: str) -> None:
    put("src/a.py")
    assert bash(policy(ANYTHING), command).code == "hazard"


@pytest.mark.parametrize(
    "command",
    [
        ".venv/bin/ruff check src",
        ".venv/bin/ruff check .",
        ".venv/bin/pytest -q",
        "node_modules/.bin/eslint src",
        "bin/test -f src/a.py",
        "./bin/install --exec",
        "scripts/test -f src/a.py",
    ],
)
def test_what_its_name_does_is_free_and_scripts_of_the_workspace_have_options_of_their_own(
    policy: MakePolicy, put: Put, command: str
) -> None:
    put("src/a.py")
    put(".env")
    assert bash(policy(ANYTHING), command).effect == "allow"


@pytest.mark.parametrize(
    "command", ["x/bin/cat src/.env", ".venv/bin/python src/.env", "x/bin/git diff --no-index a src/.env"]
)
def test_its_operands_are_files(policy: MakePolicy, put: Put, command: str) -> None:
    put("src/.env")
    assert bash(policy(ANYTHING), command).rule_id == "no-env"


@pytest.mark.parametrize("wrapper", ["x/bin/timeout 5", "x/bin/env", "x/bin/xargs", "x/bin/nice"])
def test_a_wrapper_of_the_workspace_needs_a_rule_of_its_own(policy: MakePolicy, wrapper: str) -> None:
    decided = policy("- {id: ls, allow: bash, command: 'ls **'}")
    assert bash(decided, f"{wrapper} ls src").effect == "deny"


def test_what_a_program_of_the_workspace_prints_is_not_what_its_name_would_print(policy: MakePolicy, put: Put) -> None:
    put("src/a.py")
    rules = "- {id: cat, allow: bash, command: ['x/bin/git ls-files **', 'xargs cat **'], paths: [src, 'src/**']}"
    assert bash(policy(rules), "x/bin/git ls-files src | xargs cat").effect == "deny"
