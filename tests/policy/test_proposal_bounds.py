"""What a policy lets a run propose: how it is written, and how policies that extend one another agree."""

from pathlib import Path

import pytest

from ci_agent.errors import InvalidFileError
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.proposal_bounds import (
    NOTHING_TO_PROPOSE,
    CommentBounds,
    LabelBounds,
    PatchBounds,
    ProposalBounds,
)

RULES = "rules: [{id: out, allow: propose}]\n"


def bounds(proposals: str) -> ProposalBounds:
    return load_policy_source(text=f"policy: 1\n{RULES}proposals: {proposals}\n").proposals


def test_a_policy_without_the_key_lets_nothing_be_proposed() -> None:
    assert load_policy_source("read-only").proposals == NOTHING_TO_PROPOSE
    assert NOTHING_TO_PROPOSE.kinds == ()


def test_what_is_not_written_has_its_default() -> None:
    assert bounds("{comment: {}, label: {names: bug}, patch: {paths: [a, b]}}") == ProposalBounds(
        comment=CommentBounds(max_count=1, max_chars=10_000, prefix=""),
        label=LabelBounds(names=("bug",), max_count=3),
        patch=PatchBounds(paths=(("a", "b"),), max_bytes=100_000, branch_prefix="ci-agent/"),
    )


def test_the_digest_of_a_policy_tells_what_may_be_proposed() -> None:
    digests = {
        load_policy_source(text=f"policy: 1\n{RULES}{proposals}").sha256
        for proposals in ("", "proposals: {comment: {}}", "proposals: {comment: {max_count: 2}}")
    }
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("proposals", "message"),
    [
        ("{}", "nothing may be proposed: name comment, label, issue or patch"),
        ("{coment: {}}", 'unknown key "coment": did you mean "comment"?'),
        ("{comment: {max_count: 0}}", "expected at least 1, got the number 0"),
        ("{comment: {max_chars: 65001}}", "expected at most 65000, got the number 65001"),
        ("{label: {}}", 'the key "names" is missing here'),
        ("{label: {names: []}}", "must not be empty"),
        ('{label: {names: "a,b"}}', '"a,b" is no label'),
        ("{patch: {paths: /etc/x}}", "a patch has files of the repository alone"),
        ("{patch: {paths: ../x}}", "climbs with `..`"),
        ("{patch: {paths: x, branch_prefix: main}}", '"main" begins no name of a branch'),
        ("{patch: {paths: x, branch_prefix: a../}}", '"a../" begins no name of a branch'),
        ("{patch: {paths: x, branch_prefix: -x/}}", '"-x/" begins no name of a branch'),
        ("{patch: {paths: x, max_bytes: 1000001}}", "expected at most 1e+06"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(proposals: str, message: str) -> None:
    with pytest.raises(InvalidFileError) as caught:
        bounds(proposals)
    assert message in str(caught.value)
    assert str(caught.value).startswith("<text>:3:")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "base.yml").write_text(
        f"policy: 1\n{RULES}proposals:\n  comment: {{max_count: 2, max_chars: 100, prefix: 'Bot:'}}\n"
        "  label: {names: [bug, docs], max_count: 5}\n"
        "  patch: {paths: ['src/**'], max_bytes: 500, branch_prefix: bot/}\n"
    )
    return tmp_path


def extended(folder: Path, proposals: str) -> ProposalBounds:
    (folder / "own.yml").write_text(f"policy: 1\nextends: ./base.yml\nproposals: {proposals}\n")
    return load_policy_source(folder / "own.yml").proposals


def test_attack_an_extension_cannot_loosen_a_bound(base: Path) -> None:
    own = "{comment: {max_count: 9, max_chars: 60000, prefix: 'Bot: hi'}, label: {names: [bug, admin], max_count: 9}, "
    own += "patch: {paths: ['**'], max_bytes: 1000000, branch_prefix: bot/x/}}"
    tightened = extended(base, own)
    assert tightened.comment == CommentBounds(max_count=2, max_chars=100, prefix="Bot: hi")
    assert tightened.label == LabelBounds(names=("bug",), max_count=5)
    assert tightened.patch is not None
    assert (tightened.patch.max_bytes, tightened.patch.branch_prefix) == (500, "bot/x/")
    assert tightened.patch.covers("src/a.py")
    assert not tightened.patch.covers("docs/a.md")


def test_attack_an_extension_cannot_take_a_prefix_away(base: Path) -> None:
    with pytest.raises(InvalidFileError, match=r"own\.yml:3:12: prefix 'Official:' does not begin with 'Bot:'"):
        extended(base, "{comment: {prefix: 'Official:'}}")


def test_a_kind_that_the_base_does_not_name_is_added_as_rules_are(base: Path) -> None:
    assert extended(base, "{issue: {}}").kinds == ("comment", "label", "issue", "patch")


@pytest.mark.parametrize(
    ("glob", "path", "covered"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/**", "src", False),
        ("src/**", "src2/a", False),
        ("*.md", "a.md", True),
        ("*.md", "docs/a.md", False),
        ("{a,b}/*.py", "b/x.py", True),
    ],
)
def test_paths_of_a_patch_are_matched_name_by_name(glob: str, path: str, *, covered: bool) -> None:
    assert PatchBounds(paths=((glob,),)).covers(path) is covered
