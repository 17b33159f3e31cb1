"""Copies of the contents of a folder are judged by the names that land in the other one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.policy.decide import Policy

EVERYTHING = """
    - {id: shell, allow: bash, command: "**", paths: ["**", "/**"]}
"""


@pytest.mark.parametrize(
    "command",
    [
        "cp -r w/workflows .github/",
        "cp -r w/. .github",
        "cp -r w/. .github/",
        "cp -rT w .github",
        "cp -a w/. new/.github",
        "rsync -a w/ .github/",
        "rsync -a w/ new/.github",
        "mv -T w .github",
        "cp -r w/. --target-directory=.github",
    ],
)
def test_contents_that_land_under_a_protected_name_are_noticed(
    policy: Callable[..., Policy], put: Callable[..., Path], command: str
) -> None:
    put("w/workflows/x.yml")
    put(".github/CODEOWNERS")
    decision = policy(EVERYTHING).decide("bash", {"command": command})
    assert (decision.effect, decision.code) == ("deny", "hazard"), decision


@pytest.mark.parametrize("command", ["cp -r w/. dist", "cp -rT w dist", "rsync -a w/ dist/", "mv -T w new"])
def test_contents_that_land_elsewhere_are_free(
    policy: Callable[..., Policy], put: Callable[..., Path], command: str
) -> None:
    put("w/inner/x.yml")
    put("w/.hidden")
    put("dist/a")
    assert policy(EVERYTHING).decide("bash", {"command": command}).effect == "allow"


def test_what_the_call_puts_into_a_folder_arrives_with_each_of_its_copies(
    policy: Callable[..., Policy], put: Callable[..., Path]
) -> None:
    put("src/a")
    rules = EVERYTHING + '    - {id: no-keys, deny: write, path: ["c/**/*.pem"]}\n'
    line = "touch src/k.pem; cp -r src a; cp -r a b; mv b c"
    decision = policy(rules).decide("bash", {"command": line})
    assert (decision.effect, decision.rule_id) == ("deny", "no-keys"), decision
    assert decision.fact is not None
    assert decision.fact.value.endswith("/c/src/k.pem") or decision.fact.value.endswith("/c/k.pem"), decision


@pytest.mark.parametrize(
    "line",
    [
        "touch " + " ".join(f"src/g{n}" for n in range(90)) + "".join(f"; cp -r src e{n}" for n in range(30)),
        "mkdir a b c" + "".join(f"; cp -r a/x{n} b; cp -r b c; cp -r c a" for n in range(30)),
    ],
    ids=["a filled folder again and again", "folders into one another"],
)
def test_what_is_copied_on_and_on_is_refused(
    policy: Callable[..., Policy], put: Callable[..., Path], line: str
) -> None:
    put("src/a")
    decision = policy(EVERYTHING).decide("bash", {"command": line})
    assert (decision.effect, decision.code) == ("deny", "limit"), decision
    assert "files are copied and moved on and on" in decision.reason
