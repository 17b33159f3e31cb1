import os
from collections.abc import Callable
from pathlib import Path

import pytest
from policy_calls import MakePolicy

from ci_agent.policy.decide import Policy
from ci_agent.policy.disk import MAX_ENTRIES, MAX_ENTRIES_ABROAD, DiskBudget, walk
from ci_agent.policy.shell.program import BoundExceededError
from ci_agent.workspace import Workspace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.txt", ".git/config", "d/e/b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("d")
    (tmp_path / "dangling").symlink_to("nowhere")
    return tmp_path


def test_a_walk_names_all_beneath_and_follows_no_link(folder: Path) -> None:
    walked = walk(folder, DiskBudget())
    found = {"/".join((*above, entry.name)) for above, listing in walked for entry in listing.entries}
    assert found == {"a.txt", ".git", ".git/config", "d", "d/e", "d/e/b.txt", "link", "dangling"}


def test_a_walk_that_sees_too_much_exceeds_a_bound(folder: Path) -> None:
    with pytest.raises(BoundExceededError, match=str(MAX_ENTRIES)):
        list(walk(folder, DiskBudget(entries=5)))


def test_less_is_looked_at_outside_the_workspace(tmp_path: Path) -> None:
    budget = DiskBudget()
    inside = budget.at(tmp_path / "work" / "src", tmp_path / "work")
    outside = budget.at(tmp_path, tmp_path / "work")
    assert inside is budget
    assert budget.at(tmp_path / "work", tmp_path / "work") is budget
    assert (outside.entries, outside is budget.at(Path("/"), tmp_path / "work")) == (MAX_ENTRIES_ABROAD, True)
    with pytest.raises(BoundExceededError, match=f"more than {MAX_ENTRIES_ABROAD} files"):
        outside.spend_entries(MAX_ENTRIES_ABROAD + 1)


def test_a_folder_is_read_once_and_costs_less_when_it_is_seen_again(folder: Path) -> None:
    budget = DiskBudget()
    first = [listing for _, listing in walk(folder, budget)]
    spent = MAX_ENTRIES - budget.entries
    again = [listing for _, listing in walk(folder, budget)]
    assert all(one is other for one, other in zip(first, again, strict=True))
    assert 0 < MAX_ENTRIES - budget.entries - spent <= spent // 2


def test_a_checkout_with_its_dependencies_is_searched_again_and_again_by_one_line(
    policy: MakePolicy, workspace: Workspace
) -> None:
    for number in range(100):
        package = workspace.root / f"node_modules/p{number}"
        package.mkdir(parents=True)
        for name in range(50):
            (package / f"m{name}.js").touch()
    decided = policy(
        "- {id: all, allow: bash, command: ['grep -r **', 'rm -r **'], paths: ['.', '**']}\n"
        "- {id: secret, deny: [read, write, edit], path: ['**/*.pem', '**/.env']}"
    )
    line = "; ".join(f"grep -r a{n} ." for n in range(50)) + "; rm -r node_modules"
    assert decided.decide("bash", {"command": line}).effect == "allow"
    (package / "key.pem").touch()
    decision = decided.decide("bash", {"command": line})
    assert (decision.rule_id, decision.fact and decision.fact.value) == ("secret", f"{package}/key.pem")


def test_what_a_part_of_a_budget_spends_is_spent_in_the_whole() -> None:
    budget = DiskBudget(entries=10)
    part = budget.part(20)
    part.spend_entries(4)
    assert (budget.left(), part.left()) == (6, 6)
    with pytest.raises(BoundExceededError):
        part.spend_entries(7)


def test_links_are_followed_as_the_system_follows_them(folder: Path) -> None:
    for name, target in {
        "chain": "link",
        "absolute": str(folder / "d/e"),
        "up": "d/../a.txt",
        "self": "self",
        "through": "link/e/../..",
    }.items():
        (folder / name).symlink_to(target)
    (folder / "d/back").symlink_to("../chain/e/b.txt")
    budget = DiskBudget()
    links = [entry for _, listing in walk(folder, budget) for entry in listing.links]
    assert len(links) == 8
    for link in (*links, *links):
        assert budget.target_of(link) == os.path.realpath(link.path)


@pytest.mark.parametrize("name", ["c39", "loop"])
def test_many_paths_through_many_links_are_too_much_to_look_at(
    policy: MakePolicy, workspace: Workspace, name: str
) -> None:
    (workspace.root / "loop").symlink_to("loop")
    (workspace.root / "c0").mkdir()
    for number in range(1, 40):
        (workspace.root / f"c{number}").symlink_to(f"c{number - 1}")
    rules = policy('- {id: cat, allow: bash, command: "cat **"}')
    few = rules.decide("bash", {"command": "cat " + " ".join(f"c9/{n}" for n in range(100))})
    many = rules.decide("bash", {"command": "cat " + " ".join(f"{name}/{n}" for n in range(250))})
    assert (few.effect, many.effect, many.code) == ("allow", "deny", "limit"), (few, many)


def test_many_combinations_of_values_are_too_much_to_look_at(policy: MakePolicy) -> None:
    loops = "for a in log show diff status; do for b in -p -s -n -q; do for c in a b c d; do {}done; done; done"
    rules = policy('- {id: git, allow: bash, command: "git {log,show,diff,status} **"}')
    one = rules.decide("bash", {"command": loops.format("git $a $b $c; ")})
    many = rules.decide("bash", {"command": loops.format("git $a $b $c; " * 20)})
    assert (one.code == "limit", many.code) == (False, "limit"), (one, many)


def test_a_loop_may_name_its_files_several_times(policy: Callable[..., Policy], put: Callable[..., Path]) -> None:
    for number in range(250):
        put(f"f{number}.py")
    decided = policy("- {id: a, allow: bash, command: ['{head,wc,cat} **']}")
    line = 'for f in *.py; do head -1 "$f"; wc -l "$f"; cat "$f"; done'
    assert decided.decide("bash", {"command": line}).effect == "allow"
