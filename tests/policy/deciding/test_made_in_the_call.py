"""Links and names that a call makes, and uses itself."""

import pytest
from policy_calls import MakePolicy, Put, bash

from ci_agent.workspace import Workspace


@pytest.mark.parametrize(
    "command",
    [
        "ln -s private x && cat x/key",
        "ln -s private/key x; cat x",
        "ln -s ../private src/x && cat src/x/key",
        "mkdir -p d && ln -s ../private d && cat d/private/key",
        "cp -P l x && cat x/key",
        "mv l src/x && cat src/x/key",
        "ln -s private x && cat < x/key",
        "ln -s private x && echo y > x/z",
        "ln -s private X && cat x/key",
        "cp -r linked new && cat new/inner/key",
        "cp -l private/key new; cat new",
        "cp -al private new && cat new/key",
        "mv linked new && cat new/inner/key",
    ],
)
def test_a_link_is_not_used_in_the_call_that_makes_it(
    policy: MakePolicy, put: Put, workspace: Workspace, command: str
) -> None:
    put("private/key")
    put("src/a")
    (workspace.root / "l").symlink_to("private")
    (workspace.root / "linked").mkdir()
    (workspace.root / "linked/inner").symlink_to(workspace.root / "private")
    decided = policy(
        '- {id: any, allow: bash, command: "**"}\n- {id: w, allow: write}\n- {id: k, deny: read, path: private/key}\n'
    )
    assert bash(decided, command).effect == "deny"


def test_making_a_link_is_fine(policy: MakePolicy, put: Put) -> None:
    put("src/a")
    decided = policy('- {id: any, allow: bash, command: "**"}\n')
    assert bash(decided, "ln -s src x && cat src/a").effect == "allow"
    assert bash(decided, "mv src/a src/b && cat src/b").effect == "allow"
    assert bash(decided, "cp -r src new && cat new/a").effect == "allow"


@pytest.mark.parametrize("command", ["touch -- -x; wc *", "> --files0-from=y; wc *", "cp a ./-x && wc -- *"])
def test_a_glob_is_not_used_in_the_call_that_makes_a_name_with_a_dash(policy: MakePolicy, command: str) -> None:
    decided = policy('- {id: any, allow: bash, command: "**"}\n- {id: w, allow: write}\n')
    assert bash(decided, command).code == "unparsable"
    assert bash(decided, command.replace("wc *", "wc ./*").replace("-- *", "./*")).effect == "allow"
