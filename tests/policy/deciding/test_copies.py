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
