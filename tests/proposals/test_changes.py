"""What a run changed in a checkout, as a patch: attacks by files that are not what a reviewer takes them for."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.policy.proposal_bounds import PatchBounds
from ci_agent.proposals.changes import CheckoutPatch, may_be_patched, patch_of_checkout
from ci_agent.proposals.private_repository import GitError, private_repository

Git = Callable[..., str]

EVERYTHING = PatchBounds(paths=(("**",),))
SOURCE = PatchBounds(paths=(("src/**",),))


def patch_of(folder: Path, bounds: PatchBounds = EVERYTHING) -> CheckoutPatch:
    with private_repository(folder, os.environ) as repository:
        return patch_of_checkout(repository, bounds)


def test_what_was_changed_added_and_deleted_is_one_patch_and_the_checkout_stays_as_it_is(
    checkout: Path, git: Git
) -> None:
    (checkout / "src/a.py").write_text("a = 2\n")
    (checkout / "src/b.py").unlink()
    (checkout / "src/new.py").write_text("new = 1\n")
    (checkout / "ignored").write_text("x")
    git("add", "src/a.py")
    before = git("status", "--porcelain"), git("count-objects")
    patch = patch_of(checkout)
    assert (patch.base, patch.files, patch.left_out) == (
        git("rev-parse", "HEAD"),
        ("src/a.py", "src/b.py", "src/new.py"),
        (),
    )
    assert (git("status", "--porcelain"), git("count-objects")) == before
    assert "-a = 1\n+a = 2\n" in patch.diff
    assert "deleted file mode 100644" in patch.diff


def test_a_change_in_the_moment_of_the_commit_is_seen(checkout: Path, git: Git) -> None:
    """Same size, same time of change: only the content differs."""
    earlier = (checkout / "src/a.py").stat().st_mtime_ns - 10**10
    os.utime(checkout / "src/a.py", ns=(earlier, earlier))
    git("update-index", "--refresh")
    (checkout / "src/a.py").write_text("a = 2\n")
    os.utime(checkout / "src/a.py", ns=(earlier, earlier))
    os.utime(checkout / ".git/index", ns=(earlier, earlier))
    assert patch_of(checkout).files == ("src/a.py",)


def test_the_patch_is_what_git_apply_takes(checkout: Path, git: Git, tmp_path: Path) -> None:
    (checkout / "src/a.py").write_text("a = 2")
    (checkout / "src/ä b.py").write_text("é\n")
    (tmp_path / "x.patch").write_text(patch_of(checkout).diff)
    git("clone", "-q", str(checkout), str(tmp_path / "other"))
    git("apply", str(tmp_path / "x.patch"), folder=tmp_path / "other")
    assert (tmp_path / "other/src/a.py").read_text() == "a = 2"
    assert (tmp_path / "other/src/ä b.py").read_text() == "é\n"


def test_what_the_policy_does_not_cover_is_left_out_even_when_it_was_staged(checkout: Path, git: Git) -> None:
    (checkout / "src/a.py").write_text("a = 2\n")
    (checkout / "README.md").write_text("CANARY\n")
    (checkout / "notes").write_text("CANARY\n")
    git("add", "-A")
    patch = patch_of(checkout, SOURCE)
    assert (patch.files, patch.left_out) == (("src/a.py",), ("README.md", "notes"))
    assert "CANARY" not in patch.diff


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/ci.yml",
        ".github/workflows/new.yml",
        ".GitHub/Workflows/new.yml",
        ".github/actions/x/action.yml",
        ".github/CODEOWNERS",
        "src/.gitattributes",
        ".gitmodules",
    ],
)
def test_attack_what_github_or_git_runs_is_in_no_patch_whatever_the_globs_say(checkout: Path, path: str) -> None:
    (checkout / path).parent.mkdir(parents=True, exist_ok=True)
    (checkout / path).write_text("CANARY\n")
    (checkout / "src/a.py").write_text("a = 2\n")
    patch = patch_of(checkout, PatchBounds(paths=(("**", path),)))
    assert patch.files == ("src/a.py",)
    assert "CANARY" not in patch.diff


@pytest.mark.parametrize("path", [".git/config", "a/.git/hooks/x", ".GIT/x", "../x", "src/../../x"])
def test_attack_no_glob_lets_a_patch_reach_git_or_leave_the_repository(path: str) -> None:
    assert not may_be_patched(path, PatchBounds(paths=(("src/**", ".git/**", "a/**"),)))


def test_attack_a_link_to_a_secret(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("CANARY")
    (checkout / "src/link.py").symlink_to(tmp_path / "secret")
    with pytest.raises(GitError, match=r"'src/link\.py' is a symbolic link"):
        patch_of(checkout)


def test_attack_a_file_that_becomes_a_link(checkout: Path) -> None:
    (checkout / "src/a.py").unlink()
    (checkout / "src/a.py").symlink_to("/etc/passwd")
    with pytest.raises(GitError, match="its mode is changed from 100644 to 120000"):
        patch_of(checkout)


def test_attack_a_folder_that_becomes_a_link_to_one_with_secrets(checkout: Path, tmp_path: Path) -> None:
    (checkout / "src").rename(tmp_path / "moved")
    (tmp_path / "moved/a.py").write_text("CANARY\n")
    (checkout / "src").symlink_to(tmp_path / "moved")
    with pytest.raises(GitError, match="beyond a symbolic link"):
        patch_of(checkout, SOURCE)


def test_attack_a_mode_that_changes(checkout: Path) -> None:
    (checkout / "src/a.py").chmod(0o755)
    with pytest.raises(GitError, match="its mode is changed from 100644 to 100755"):
        patch_of(checkout)


def test_attack_a_new_program(checkout: Path) -> None:
    (checkout / "src/run.sh").write_text("#!/bin/sh\n")
    (checkout / "src/run.sh").chmod(0o755)
    with pytest.raises(GitError, match="is executable"):
        patch_of(checkout)


def test_attack_a_submodule(checkout: Path, git: Git) -> None:
    inner = checkout / "src/inner"
    inner.mkdir()
    git("init", "-q", folder=inner)
    git("commit", "-q", "--allow-empty", "-m", "x", folder=inner)
    git("update-index", "--add", "--cacheinfo", f"160000,{git('rev-parse', 'HEAD', folder=inner)},src/inner")
    (checkout / "src/a.py").write_text("a = 2\n")
    assert patch_of(checkout).files == ("src/a.py",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x00\x01\x02", "is binary"),
        (b"caf\xe9\n", "is not UTF-8"),
        ("admin \u202e nimda\n".encode(), r"characters that nobody sees: U\+202E"),
        ("a\u200bb\n".encode(), r"U\+200B"),
        (b"a\x1b[2Jb\n", r"U\+001B"),
    ],
)
def test_attack_content_that_nobody_can_review(checkout: Path, data: bytes, message: str) -> None:
    (checkout / "src/a.py").write_bytes(data)
    with pytest.raises(GitError, match=message):
        patch_of(checkout)


@pytest.mark.parametrize("name", ["a\nb", 'a"b', "a\\b", "a\tb", "a\u202eb"])
def test_attack_a_name_that_is_not_what_it_looks_like(checkout: Path, name: str) -> None:
    (checkout / "src" / name).write_text("x\n")
    with pytest.raises(GitError, match="with such a name"):
        patch_of(checkout)


def test_attack_a_large_patch(checkout: Path) -> None:
    (checkout / "src/a.py").write_text("a\n" * 5_000)
    with pytest.raises(GitError, match="bytes, and 1000 are the most: change less"):
        patch_of(checkout, PatchBounds(paths=(("**",),), max_bytes=1_000))


def test_attack_a_sparse_terabyte(checkout: Path) -> None:
    with (checkout / "src/huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(GitError, match="too large for a patch"):
        patch_of(checkout)


def test_attack_a_repository_that_names_programs_runs_none(checkout: Path, git: Git, tmp_path: Path) -> None:
    """Filters, drivers, monitors and hooks of the checkout's own configuration; and those of its attributes."""
    canary = tmp_path / "canary"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    evil.chmod(0o755)
    (checkout / ".git/hooks/post-index-change").write_text(evil.read_text())
    (checkout / ".git/hooks/post-index-change").chmod(0o755)
    (checkout / ".git/info/attributes").write_text("* filter=evil diff=evil\n")
    for key in ("filter.evil.clean", "filter.evil.process", "diff.evil.textconv", "diff.external", "core.fsmonitor"):
        git("config", key, str(evil))
    (checkout / "src/a.py").write_text("a = 2\n")
    (checkout / "src/.gitattributes").write_text("* filter=evil diff=evil ident\n")
    assert patch_of(checkout, PatchBounds(paths=(("src/*.py",),))).files == ("src/a.py",)
    assert not canary.exists()


def test_a_folder_without_a_repository_or_a_commit_says_so(tmp_path: Path, git: Git) -> None:
    (tmp_path / "checkout").mkdir()
    with pytest.raises(GitError, match="not a git repository"):
        patch_of(tmp_path / "checkout")
    git("init", "-q")
    with pytest.raises(GitError, match="git does not do it"):
        patch_of(tmp_path / "checkout")
