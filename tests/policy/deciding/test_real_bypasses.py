"""Lines that do more than they seem to: each is run, does what it must not, and is denied by a wide policy for that."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from policy_calls import MakePolicy

from ci_agent.workspace import Workspace

# Whatever program, wherever in the workspace, but for one file, which is neither read nor written.
WIDE = """
- {id: any, allow: bash, command: ["**"], paths: [".", "**"]}
- {id: any-file, allow: [read, write]}
- {id: kept, deny: [read, write], path: "kept*"}
"""

WRITING = [
    "cp -b -S .yaml new kept",
    "mv -b -S .yaml new kept",
    "install -b -S .yaml new kept",
    "ln -bf -S .yaml new kept",
    "sed -i.yaml s/old/new/ kept",
    "perl -i.yaml -pe s/old/new/ kept",
    "perl -ne print '>kept.yaml'",
    "perl -ne print 'cp new kept.yaml|'",
    "gunzip -f kept.yaml-gz",
    "gunzip -f kept.yaml_z",
    "gunzip -f -S .foo kept.yaml.foo",
    "gunzip -fN archived.gz",
    "bunzip2 -f kept.yaml.bz",
    "bzip2 -tdf kept.yaml.bz2",
    "xz -t -d -f kept.yaml.xz",
    "split -l 1 -a 1 --additional-suffix=.yaml new kept",
    "zip -q kept new",
    "git apply --check --apply p.diff",
    "git apply --stat --no-stat p.diff",
    "git clean -n --no-dry-run -fq kept.yaml",
    "tar -xf a.tar --backup=simple --suffix=.old",
    "bash /dev/stdin <<< 'echo new > kept'",
    "sh - <<< 'echo new > kept'",
    "python3 /dev/fd/0 <<< \"open('kept', 'w')\"",
    "perl /dev/stdin <<< 'open(F, q(>kept))'",
    "python3 -i new <<< \"open('kept', 'w')\"",
    "gcc -x c -E --output=kept new",
    "ar x a.a",
    "patch new renaming.diff",
    "gzip -M kept",
    "zstd -q --rm -T kept",
    "xz --lzma2 kept",
    "cmake --help-full kept",
    "openssl x509 -newkey -writerand kept new",
    "find . -name new | xargs --process-slot-var=BASH_ENV bash -c true",
]


@pytest.fixture
def place(workspace: Workspace) -> Path:
    root = workspace.root
    (root / "kept.yaml").write_text("old\n")
    (root / "kept").write_text("old\n")
    (root / "new").write_text("new\n")
    for name, command in (
        ("kept.yaml-gz", "gzip -c new"),
        ("kept.yaml_z", "gzip -c new"),
        ("kept.yaml.foo", "gzip -c new"),
        ("kept.yaml.bz", "bzip2 -c new"),
        ("kept.yaml.bz2", "bzip2 -c new"),
        ("kept.yaml.xz", "xz -c new"),
        ("archived.gz", "cp new kept.yaml && gzip -cN kept.yaml; printf 'old\\n' > kept.yaml"),
    ):
        done = subprocess.run(command, shell=True, cwd=root, check=False, capture_output=True)
        (root / name).write_bytes(done.stdout)
    (root / "p.diff").write_text("--- a/kept.yaml\n+++ b/kept.yaml\n@@ -1 +1 @@\n-old\n+new\n")
    (root / "renaming.diff").write_text("diff --git a/new b/kept.txt\nrename from new\nrename to kept.txt\n")
    (root / "0").write_text("echo new > kept\n")
    shutil.make_archive(str(root / "a"), "tar", root, "kept.yaml")
    subprocess.run("cp new kept.new; ar qc a.a kept.new; rm kept.new", shell=True, cwd=root, check=False)
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    return root


@pytest.mark.parametrize("line", WRITING)
def test_what_writes_a_forbidden_file_is_denied(policy: MakePolicy, place: Path, line: str) -> None:
    decision = policy(WIDE).decide("bash", {"command": line})
    assert decision.effect == "deny"
    before = _content(place)
    subprocess.run(["bash", "-c", line], cwd=place, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    if shutil.which(line.partition(" ")[0]):
        assert _content(place) != before


def _content(place: Path) -> dict[str, bytes]:
    return {name: (place / name).read_bytes() for name in sorted(os.listdir(place)) if name.startswith("kept")}


READING = [
    "jq -R . kept --args",
    "env -C sub -C . cat kept",
    "column -d kept",
    "sdiff -W kept new",
    "zstd -q -T kept --stdout",
    "git diff -U kept sub",
    "git grep --no-index -l --no-files-with-matches old",
    "git diff --quiet --no-quiet",
]


@pytest.mark.parametrize("line", READING)
def test_what_reads_a_forbidden_file_is_denied(policy: MakePolicy, place: Path, line: str) -> None:
    (place / "sub").mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a"]
    subprocess.run([*git, "add", "kept"], cwd=place, check=True)
    subprocess.run([*git, "commit", "-qm", "x"], cwd=place, check=True)
    (place / "kept").write_text("older\n")
    decision = policy(WIDE).decide("bash", {"command": line})
    assert (decision.effect, decision.rule_id) == ("deny", "kept")
    done = subprocess.run(["bash", "-c", line], cwd=place, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    if shutil.which(line.partition(" ")[0]):
        assert b"old" in done.stdout
