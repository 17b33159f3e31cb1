"""Files that the file tools name, and what a deny on a file binds."""

import pytest
from policy_calls import MakePolicy, Put, bash

from ci_agent.workspace import Workspace


@pytest.mark.parametrize("tool", ["read", "grep", "find", "ls"])
def test_without_a_path_a_rule_reaches_the_workspace_alone(policy: MakePolicy, tool: str) -> None:
    decided = policy("- {id: look, allow: [read, grep, find, ls]}\n")
    assert decided.decide(tool, {"path": "a/b", "pattern": "x"}).effect == "allow"
    assert decided.decide(tool, {"path": "/etc/passwd", "pattern": "x"}).code == "default"
    assert decided.decide(tool, {"path": "../x", "pattern": "x"}).code == "default"


@pytest.mark.parametrize("tool", ["grep", "find", "ls"])
def test_the_workspace_itself_is_where_a_search_starts(policy: MakePolicy, tool: str) -> None:
    decided = policy("- {id: look, allow: [grep, find, ls]}\n")
    assert decided.decide(tool, {"pattern": "x"}).effect == "allow"


def test_a_folder_may_be_listed_when_all_that_it_holds_is_within_reach(policy: MakePolicy, put: Put) -> None:
    put("src/a.txt")
    put("docs/a.txt")
    decided = policy("- {id: look, allow: [ls, find, grep], path: src/**}\n")
    answers = {path: decided.decide("ls", {"path": path}).effect for path in ("src", "docs", ".")}
    assert answers == {"src": "allow", "docs": "deny", ".": "deny"}


def test_a_rule_for_one_file_tool_grants_no_other(policy: MakePolicy) -> None:
    decided = policy("- {id: search, allow: grep}\n")
    assert decided.decide("read", {"path": "a"}).effect == "deny"
    assert decided.decide("grep", {"path": "a", "pattern": "x"}).effect == "allow"


@pytest.mark.parametrize("call", [("read", {"path": ".env"}), ("grep", {"path": ".env"}), ("edit", {"path": ".env"})])
def test_a_deny_on_reading_binds_every_tool_that_reads(policy: MakePolicy, call: tuple[str, dict[str, str]]) -> None:
    decided = policy(
        """
        - {id: all, allow: [read, grep, edit, ls, find, write]}
        - {id: secret, deny: read, path: "**/.env"}
        """
    )
    assert decided.decide(*call).rule_id == "secret"


def test_a_deny_on_reading_leaves_listing_and_writing_alone(policy: MakePolicy, put: Put) -> None:
    put(".env")
    decided = policy(
        """
        - {id: all, allow: [ls, find, write]}
        - {id: shell, allow: bash, command: ["ls **", "find **", "test **"]}
        - {id: secret, deny: read, path: "**/.env"}
        """
    )
    calls = [
        decided.decide("ls", {}),
        decided.decide("ls", {"path": ".env"}),
        decided.decide("find", {"pattern": ".env"}),
        decided.decide("write", {"path": ".env", "content": ""}),
        bash(decided, "ls -a .env"),
        bash(decided, "find . -name .env"),
        bash(decided, "test -f .env"),
    ]
    assert [call.effect for call in calls] == ["allow"] * len(calls)


@pytest.mark.parametrize("denied", ["write", "edit", "[write, edit]"])
def test_a_deny_on_writing_binds_every_writer(policy: MakePolicy, denied: str) -> None:
    decided = policy(
        f"""
        - {{id: all, allow: [read, write, edit]}}
        - {{id: shell, allow: bash, command: ["echo **", "tee **", "rm **", "cp **"]}}
        - {{id: locked, deny: {denied}, path: "lock.json"}}
        """
    )
    calls = [
        decided.decide("write", {"path": "lock.json", "content": ""}),
        decided.decide("edit", {"path": "lock.json", "edits": []}),
        bash(decided, "echo x > lock.json"),
        bash(decided, "echo x | tee lock.json"),
        bash(decided, "rm lock.json"),
        bash(decided, "cp a lock.json"),
    ]
    assert [call.rule_id for call in calls] == ["locked"] * len(calls)
    assert decided.decide("read", {"path": "lock.json"}).effect == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "cat .env",
        "cat < .env",
        "grep -r KEY .",
        "grep -r KEY config",
        "cat config/../.env",
        "cat .e*",
        "cat $PWD/.env",
        "head -n 1 ./.env",
        "cp .env x",
        "mv .env x",
        "cat link.txt",
        "cat .ENV",
        "sed -n p .env",
        "cat -- .env",
        "for f in .env; do cat $f; done",
        "cd config && cat ../.env",
        "tar cf x.tar config",
        "while read l; do :; done < .env",
    ],
)
def test_a_deny_on_reading_binds_the_shell(policy: MakePolicy, put: Put, workspace: Workspace, command: str) -> None:
    put(".env")
    put("config/.env")
    (workspace.root / "link.txt").symlink_to(".env")
    decided = policy(
        """
        - {id: shell, allow: bash, command: "**"}
        - {id: out, allow: write}
        - {id: secret, deny: read, path: ["**/.env"]}
        """
    )
    assert bash(decided, command).rule_id == "secret", bash(decided, command)


def test_a_recursive_search_is_fine_where_nothing_forbidden_lies(policy: MakePolicy, put: Put) -> None:
    put("src/a.txt")
    put(".env")
    decided = policy('- {id: shell, allow: bash, command: "grep **"}\n- {id: secret, deny: read, path: "**/.env"}\n')
    assert bash(decided, "grep -r TODO src").effect == "allow"


def test_a_recursive_search_that_meets_a_link_to_what_is_forbidden_is_denied(
    policy: MakePolicy, put: Put, workspace: Workspace
) -> None:
    put(".env")
    put("src/a.txt")
    (workspace.root / "src/link").symlink_to("../.env")
    decided = policy('- {id: shell, allow: bash, command: "grep **"}\n- {id: secret, deny: read, path: "**/.env"}\n')
    assert bash(decided, "grep -r TODO src").rule_id == "secret"


def test_a_deny_is_about_the_link_and_about_where_it_leads(policy: MakePolicy, put: Put, workspace: Workspace) -> None:
    put("private/key")
    (workspace.root / "keys").symlink_to("private")
    by_link = policy("- {id: all, allow: read}\n- {id: keys, deny: read, path: keys/**}\n")
    by_target = policy("- {id: all, allow: read}\n- {id: keys, deny: read, path: private/**}\n")
    for decided in (by_link, by_target):
        answers = [decided.decide("read", {"path": path}).rule_id for path in ("keys/key", "private/key")]
        assert answers == ["keys", "keys"]


def test_denies_compare_case_folded_and_composed_and_allows_exactly(policy: MakePolicy) -> None:
    decided = policy(
        "- {id: src, allow: read, path: [src/**, SRC/**]}\n- {id: denied, deny: read, path: src/donn\u00e9es}\n"
    )
    assert decided.decide("read", {"path": "SRC/donne\u0301es"}).rule_id == "denied"
    assert decided.decide("read", {"path": "Src/x"}).code == "default"
