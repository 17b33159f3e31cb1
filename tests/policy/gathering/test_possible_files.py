"""Words of programs that have no profile: a link out of the workspace, and a file that a rule forbids reading."""

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

RULES = """
    - {id: any, allow: bash, command: ["{mytool,batcat,ul,python,make,for,cd} **", "python -m pytest **"]}
    - {id: secrets, deny: read, path: ["**/.env", "private/**"]}
"""


@pytest.fixture
def decided(policy: MakePolicy, put: Put, workspace: Workspace) -> Policy:
    outside = workspace.root.parent / "outside"
    outside.mkdir()
    (outside / "test_x.py").write_text("evil")
    for name in (".env", "sub/.env", "private/key", "src/a.py", "tests/test_a.py"):
        put(name)
    (workspace.root / "src/lnk").symlink_to(outside)
    (workspace.root / "file").symlink_to(outside / "test_x.py")
    (workspace.root / "inside").symlink_to("src")
    (workspace.root / "env").symlink_to(".env")
    (workspace.root / "kernel").symlink_to("/proc/self/cwd")
    return policy(RULES)


@pytest.mark.parametrize(
    "command",
    [
        "python -m pytest src/lnk/test_x.py",
        "python -m pytest src/lnk/test_x.py::test_a",
        "mytool src/lnk/test_x.py",
        "mytool src/lnk/new",
        "mytool src/lnk",
        "mytool file",
        "mytool --config=file",
        "mytool config=src/lnk/x",
        "mytool -Isrc/lnk",
        "mytool @file",
        "mytool a:src/lnk/x",
        "mytool src/a.py,src/lnk/x",
        "mytool --mount=from=src/lnk,to=b",
        "mytool -- file",
        "mytool fil?",
        "mytool inside/lnk/x",
        "mytool kernel/x",
        "cd src && mytool lnk",
        'for f in file src/lnk; do mytool "$f"; done',
    ],
)
def test_a_link_that_leads_out_is_a_way_out_for_a_program_nobody_knows(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "ul .env",
        "batcat .env",
        "batcat sub/.env",
        "mytool --file=.env",
        "mytool -f.env",
        "mytool file=.env",
        "mytool private",
        "mytool env",
        "cd sub && ul .env",
        "mytool @.env",
        "mytool .en*",
    ],
)
def test_a_forbidden_file_is_not_handed_to_a_program_nobody_knows(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).rule_id == "secrets"


@pytest.mark.parametrize(
    "command",
    [
        "mytool src/a.py",
        "mytool build",
        "mytool https://example.com/a:b,c",
        "mytool localhost:8080",
        "mytool inside/a.py",
        "mytool 'a\nb'",
        "mytool .env.example",
        "mytool --x=y",
        "python -m pytest tests/test_a.py",
        "python -m pytest tests -k env",
        "mytool src",
        "make test",
    ],
)
def test_other_words_are_free(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "allow"


def test_a_rule_need_not_reach_a_file_that_a_word_only_happens_to_name(policy: MakePolicy, put: Put) -> None:
    put("build/a")
    decided = policy('- {id: tool, allow: bash, command: "mytool **", paths: src/**}')
    assert decided.decide("bash", {"command": "mytool build"}).effect == "allow"


def test_a_word_of_endless_parts_exceeds_a_bound(decided: Policy) -> None:
    decision = decided.decide("bash", {"command": "mytool " + ",".join(map(str, range(20_000)))})
    assert (decision.effect, decision.code) == ("deny", "limit")


@pytest.mark.parametrize("command", ["mytool .", "mytool sub", "mytool sub/", "mytool --dir=sub", "cd sub && mytool ."])
def test_a_folder_handed_to_a_program_nobody_knows_counts_with_all_that_is_in_it(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).rule_id == "secrets"


@pytest.mark.parametrize("command", ["python -m pytest sub", "make sub", "mytool src tests"])
def test_a_known_program_s_words_are_only_what_its_profile_says(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "allow"
