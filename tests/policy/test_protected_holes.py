"""Ways around what is protected, each found by running the real programs: named as attacks, held by their denial."""

import os
import re

import pytest
from policy_calls import MakePolicy, Put, bash

from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.protected import Surroundings
from ci_agent.workspace import Workspace

EVERYTHING = """
    - {id: files, allow: [read, write, edit, grep, find, ls], path: [".", "**"]}
    - {id: shell, allow: bash, command: "**", paths: [".", "**"]}
    - {id: spelled, allow: bash, command: ["git **", "sed -i **"], paths: [".", "**"]}
"""


@pytest.mark.parametrize("name", ["sub/.git", "sub/.git/config", "sub/.github/workflows/x.yml"])
def test_a_hard_link_to_a_protected_file_in_another_folder(
    policy: MakePolicy, put: Put, workspace: Workspace, name: str
) -> None:
    os.link(put(name), workspace.root / "notes")
    decided = policy(EVERYTHING)
    assert bash(decided, "echo EVIL > notes").code == "hazard"
    assert decided.decide("write", {"path": "notes", "content": "EVIL"}).code == "hazard"
    assert bash(decided, "rm notes").effect == "allow"


@pytest.mark.parametrize(
    "path",
    [".git./config", ".git /config", ".git. ./x", "GIT~1/config", ".github./workflows /x.yml", ".GITHUB/WORKFLOWS./x"],
)
def test_spellings_that_other_file_systems_take_for_the_same(policy: MakePolicy, path: str) -> None:
    decided = policy(EVERYTHING)
    assert decided.decide("write", {"path": path, "content": ""}).code == "hazard"
    assert bash(decided, f"mkdir -p '{path}'").code == "hazard"


@pytest.fixture
def recorded(workspace: Workspace, put: Put) -> Policy:
    """A policy and a record within the workspace, within reach of wildcards."""
    file = put("ci/policy.yml")
    file.write_text("policy: 1\nrules:\n" + EVERYTHING)
    put("out/t.json.journal")
    around = Surroundings(records=(workspace.root / "out/t.json", workspace.root / "out/t.json.journal"))
    return compile_policy(load_policy_source(file), workspace, around=around)


@pytest.mark.parametrize(
    "command",
    [
        "mkdir -p out/t.json/x",
        "mkdir out/t.json",
        "touch out/t.json/x",
        "mv CI x",
        "rm -rf Ci",
        "mv OUT elsewhere",
        "rm -r OUT",
        "rm -r Out/",
        "echo x > Out/T.json",
        "cp -r d/. Out",
    ],
)
def test_the_record_and_the_policy_by_their_folders_in_any_case(recorded: Policy, put: Put, command: str) -> None:
    put("d/x")
    assert bash(recorded, command).code == "hazard"


@pytest.mark.parametrize(
    "command",
    [
        "mkdir .github; mv workflows .github",
        "mkdir -p .github && cp -r workflows .github",
        "mkdir .github; mv -t .github workflows",
        "mkdir -p .github/x && cp -r workflows .github",
        "mkdir -p d/.github && mv workflows d/.github",
        "mkdir .github; rsync -a workflows .github",
        "install -d .github; cp -r workflows .github",
        "mv wfdir n && mv n .GitHub",
        "rsync -a wfdir/workflows .github",
        "rsync -a wfdir/workflows ./.github/",
        "rsync -a --mkpath workflows n/.github/",
        "for i in 1 2; do cp -r workflows .github; mkdir .github; done",
        "f() { mkdir .github; }; f; cp -r workflows .github",
        "mkdir .github & cp -r workflows .github",
        "if mkdir .github; then cp -r workflows .github; fi",
        "test -d .github || mkdir .github; cp -r workflows .github/",
        "git clone bundle .github",
        "git worktree add .github evil",
        "mkdir .github && cd .github && git clone ../bundle .",
        "cp -r .github n; mv workflows n; rmdir .github; mv n .github",
    ],
)
@pytest.mark.parametrize("there", [False, True], ids=["missing", "empty"])
def test_workflows_come_with_a_folder_that_takes_the_name_of_their_parent(
    policy: MakePolicy, put: Put, workspace: Workspace, command: str, there: bool
) -> None:
    for name in ("workflows/evil.yml", "wfdir/workflows/evil.yml", "bundle"):
        put(name)
    if there:
        (workspace.root / ".github").mkdir()
    assert bash(policy(EVERYTHING), command).code == "hazard", command


@pytest.mark.parametrize(
    "command", ["mkdir -p .github/ISSUE_TEMPLATE", "cp a .github/CODEOWNERS", "chmod -R u+w .github"]
)
def test_what_else_belongs_into_that_folder_is_free(policy: MakePolicy, put: Put, command: str) -> None:
    put(".github/dependabot.yml")
    put("a")
    assert bash(policy(EVERYTHING), command).effect == "allow"
    assert policy(EVERYTHING).decide("write", {"path": ".github/CODEOWNERS", "content": ""}).effect == "allow"


@pytest.mark.parametrize(
    "command",
    ["fallocate -l 10 .git/x", "ssh-keygen -f .git/hooks/x -N ''", "mytool --out=.github/workflows/x", "mytool .git"],
)
def test_a_program_of_which_nothing_is_known_is_not_handed_what_is_protected(
    policy: MakePolicy, put: Put, command: str
) -> None:
    put(".git/hooks/y")
    put(".github/workflows/y.yml")
    decided = policy(EVERYTHING)
    assert bash(decided, command).code == "hazard"
    assert bash(decided, "mytool . hooks").effect == "allow"
    assert bash(decided, "actionlint .github/workflows/y.yml").effect == "allow"


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        "mytool -o .github/workflows/x.yml",
        "mytool --to=sub/.git/hooks/post-checkout",
        "mytool -o.github/workflows/x.yml",
        "./gen.sh .github/workflows/x.yml",
        "python3 gen.py .github/workflows/x.yml",
        "node gen.js --out .GitHub/Workflows/x.yml",
        "sh gen.sh a/../.github/workflows/x.yml",
    ],
)
def test_unknown_code_is_not_handed_what_is_protected_before_it_is_there(
    policy: MakePolicy, put: Put, command: str, there: bool
) -> None:
    if there:
        put(".github/workflows/y.yml")
        put("sub/.git/hooks/y")
        put("a/b")
    scripts = "{id: run, allow: bash, command: ['python3 gen.py **', 'node gen.js **', 'sh gen.sh **'], paths: ['**']}"
    decided = policy(f"{EVERYTHING}    - {scripts}\n")
    assert bash(decided, command).code == "hazard"
    elsewhere = re.sub("(?i)workflows|.git/hooks", "actions", command)
    assert bash(decided, elsewhere).effect == "allow"


# Where things land when the call itself makes or moves the target


@pytest.mark.parametrize(
    "command",
    [
        "mkdir conf && cp prod.yml conf",
        "mkdir conf; mv prod.yml conf",
        "mkdir -p conf/x && install prod.yml conf",
        "mkdir conf && cd conf && cp ../prod.yml .",
        "mkdir n && cp prod.yml n && mv n m && mv m conf",
        "cp -r src conf",
        "mv src conf",
        "rm -r old; cp -r src old",
        "mv old aside; mv src old",
        "rsync -a prod.yml conf/",
        "rsync -a src/ conf",
    ],
)
def test_a_forbidden_file_is_not_brought_with_a_folder_that_the_call_makes(
    policy: MakePolicy, put: Put, command: str
) -> None:
    for name in ("prod.yml", "src/prod.yml", "old/x"):
        put(name)
    decided = policy(EVERYTHING + '    - {id: locked, deny: write, path: ["conf/prod.yml", "old/prod.yml"]}\n')
    decision = bash(decided, command)
    assert (decision.code, decision.rule_id) == ("rule", "locked")
    for harmless in (
        "mkdir conf && cp src/other conf",
        "mkdir -p dist && cp -r src dist",
        "cp prod.yml a && mv a b && mv b a",
        "mv src a && mv fx b && mv a c",
    ):
        assert bash(decided, harmless).effect == "allow", harmless


def test_no_head_comes_into_a_folder_that_the_call_makes(policy: MakePolicy, put: Put) -> None:
    put("fixtures/HEAD")
    assert bash(policy(EVERYTHING), "mkdir bare && cp fixtures/HEAD bare").code == "hazard"


def test_copies_that_go_on_and_on_end_soon(policy: MakePolicy, put: Put) -> None:
    put("a/x")
    chain = "; ".join(f"cp -r a{number} a{number + 1}; mv a{number + 1}/x a{number}" for number in range(60))
    assert bash(policy(EVERYTHING), f"mkdir a0; cp -r a a0; {chain}").effect in ("allow", "deny")
