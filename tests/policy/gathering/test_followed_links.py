"""A folder that is read by a program that follows links is read as far as they lead."""

import shutil
import subprocess
from pathlib import Path

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

PROGRAMS = "{grep,rg,cp,rsync,zip,tar,diff,find,xargs,cat,wc,ruff,mypy,git,ls,scp,mytool,head,cd} **"


@pytest.fixture
def decided(policy: MakePolicy, put: Put, workspace: Workspace) -> Policy:
    (workspace.root.parent / "outside").mkdir()
    (workspace.root.parent / "outside/key").write_text("secret")
    for name in ("src/a.py", "docs/a.md", "docs/private/key"):
        put(name)
    (workspace.root / "src/out").symlink_to("../../outside")
    (workspace.root / "src/key.py").symlink_to("../../outside/key")
    return policy(f'- {{id: any, allow: bash, command: "{PROGRAMS}"}}')


FOLLOWING = [
    "grep -R secret src",
    "grep -rnR secret .",
    "grep --dereference-rec secret src",
    "rg -L secret",
    "rg --follow secret src",
    "cp -rL src new",
    "cp -r --dereference src new",
    "rsync -aL src new",
    "rsync -a --copy-links src new",
    "zip -r a.zip src",
    "tar chf a.tar src",
    "tar -chf a.tar src",
    "tar -c --dereference -f a.tar src",
    "diff -r src docs",
    "find src -exec cat {} +",
    "find . -name '*.py' -exec cat {} +",
    "find src | xargs cat",
    "find src -name out -exec grep -r secret {} +",
]


@pytest.mark.parametrize("command", FOLLOWING)
def test_a_link_out_of_the_workspace_is_not_followed(decided: Policy, command: str) -> None:
    decision = decided.decide("bash", {"command": command})
    assert (decision.effect, decision.code) == ("deny", "default"), decision


@pytest.mark.parametrize(
    "command",
    [
        "grep -rn secret .",
        "grep -rn --include='*.py' secret src",
        "rg secret",
        "cp -r src new",
        "rsync -a src new",
        "tar czf a.tgz src",
        "zip -ry a.zip src",
        "ruff check .",
        "mypy src",
        "git diff -- src",
        "find src -name '*.md' -exec cat {} +",
        "find src -type f -exec cat {} +",
        "ls -R src",
        "grep -R secret docs",
    ],
)
def test_what_passes_links_by_is_free(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "allow"


@pytest.mark.parametrize("command", FOLLOWING)
def test_a_virtual_environment_is_no_way_out(policy: MakePolicy, put: Put, workspace: Workspace, command: str) -> None:
    for name in ("src/a.py", "docs/a", "src/.venv/lib/b.py"):
        put(name)
    (workspace.root / "src/.venv/lib64").symlink_to("lib")
    (workspace.root / "src/.venv/python3").symlink_to("/usr/bin/env")
    (workspace.root / "src/.venv/python").symlink_to("python3")
    (workspace.root / "src/gone").symlink_to("missing")
    decided = policy(f'- {{id: any, allow: bash, command: "{PROGRAMS}"}}')
    assert decided.decide("bash", {"command": command}).effect == "allow"


@pytest.mark.parametrize("command", ["grep -R secret src", "find src -exec grep -r x {} +", "zip -r a.zip src"])
def test_a_forbidden_file_behind_a_link_to_a_folder_is_forbidden(
    policy: MakePolicy, put: Put, workspace: Workspace, command: str
) -> None:
    put("docs/private/key")
    put("src/a")
    (workspace.root / "src/docs").symlink_to("../docs")
    decided = policy(
        f'- {{id: any, allow: bash, command: "{PROGRAMS}"}}\n- {{id: k, deny: read, path: docs/private/**}}\n'
    )
    assert decided.decide("bash", {"command": command}).rule_id == "k"


def test_links_that_lead_in_circles_end(policy: MakePolicy, put: Put, workspace: Workspace) -> None:
    put("a/x")
    put("b/x")
    (workspace.root / "a/b").symlink_to("../b")
    (workspace.root / "b/a").symlink_to("../a")
    (workspace.root / "b/self").symlink_to("self")
    (workspace.root / "b/up").symlink_to("..")
    decided = policy(f'- {{id: any, allow: bash, command: "{PROGRAMS}"}}')
    assert decided.decide("bash", {"command": "grep -R x a"}).effect == "allow"


def test_a_rule_for_some_folders_is_not_left_by_a_link(policy: MakePolicy, put: Put, workspace: Workspace) -> None:
    put("docs/a")
    put("src/a")
    (workspace.root / "src/docs").symlink_to("../docs")
    decided = policy('- {id: src, allow: bash, command: "grep **", paths: "src/**"}')
    assert decided.decide("bash", {"command": "grep -R x src"}).effect == "deny"
    assert decided.decide("bash", {"command": "grep -r x src"}).effect == "allow"


UNPACKING = """
- id: any
  allow: bash
  command: ["{tar,unzip,truncate,chown} **", "find src -name * -exec truncate -s 0 {} ';'", "find -L src -delete"]
  paths: [".", "**", "**/.git/**", "**/.github/workflows/**"]
"""


@pytest.mark.parametrize(
    ("command", "touched"),
    [
        ("tar xf a.tar -C src", "outside/new"),
        ("unzip -qo a.zip -d src", "outside/new"),
        (r"find src -name key.py -exec truncate -s 0 {} \;", "outside/key"),
        ("find -L src -delete", "outside/key"),
    ],
)
def test_a_link_to_a_folder_is_no_way_out_for_what_is_written(
    policy: MakePolicy, put: Put, workspace: Workspace, command: str, touched: str
) -> None:
    """Each of these really changes what lies outside, by way of a link that was there before."""
    place = workspace.root.parent
    (place / "outside").mkdir()
    (place / "outside/key").write_text("secret")
    put("new/out/new", "evil")
    for archive in ("tar", "zip"):
        shutil.make_archive(str(workspace.root / "a"), archive, workspace.root / "new", "out/new")
    put("src/a.py")
    (workspace.root / "src/out").symlink_to("../../outside")
    (workspace.root / "src/key.py").symlink_to("../../outside/key")
    before = _content(place / touched)
    decision = policy(UNPACKING).decide("bash", {"command": command})
    assert (decision.effect, "outside" in decision.reason or "links" in decision.reason) == ("deny", True)
    subprocess.run(["bash", "-c", command], cwd=workspace.root, check=False, stderr=subprocess.DEVNULL)
    if shutil.which(command.partition(" ")[0]):
        assert _content(place / touched) != before


def _content(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


@pytest.mark.parametrize(
    "command", ["tar xf a.tar -C docs", r"find docs -name key -exec truncate -s 0 {} \;", "chown -R nobody src"]
)
def test_where_no_link_leads_out_writing_is_free(
    policy: MakePolicy, put: Put, workspace: Workspace, command: str
) -> None:
    put("docs/key")
    put("src/a.py")
    (workspace.root / "docs/link").symlink_to("../src")
    rule = UNPACKING.replace("find src", "find docs")
    assert policy(rule).decide("bash", {"command": command}).effect == "allow"
