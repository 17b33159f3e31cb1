"""What a decision says, and which tools and files it opens."""

from pathlib import Path

import pytest
from policy_calls import MakePolicy, Put, bash

from ci_agent.errors import ConfigurationError
from ci_agent.hooks import Decision, FactVerdict, NearestRule
from ci_agent.policy.decide import compile_policy
from ci_agent.policy.rules import PolicySource, Rule
from ci_agent.workspace import Workspace


def test_an_allowed_call_names_the_rule_and_every_fact(policy: MakePolicy, workspace: Workspace) -> None:
    decided = policy(
        """
        - {id: search, allow: bash, command: "grep **"}
        - {id: build, allow: write, path: "build/**"}
        """
    )
    decision = bash(decided, "grep -n TODO src/a.txt > build/todo.txt")
    root = workspace.root
    assert decision == Decision(
        "allow",
        "rule",
        "Allowed by policy rule build.",
        rule_id="build",
        source="<text>:5",
        facts=(
            FactVerdict("write", f"{root}/build/todo.txt", granted_by="build"),
            FactVerdict("exec", "grep -n TODO src/a.txt", granted_by="search"),
            FactVerdict("read", f"{root}/src/a.txt", granted_by="search"),
        ),
    )


def test_a_deny_rule_speaks_in_its_own_words(policy: MakePolicy, workspace: Workspace) -> None:
    decided = policy(
        """
        - {id: all, allow: read}
        - id: no-secrets
          deny: [read, write, edit]
          path: ["**/.env"]
          because: secrets stay out of the run
          instead: read .env.example
          on_denied: stop
        """
    )
    fact = FactVerdict("read", f"{workspace.root}/.env", forbidden_by="no-secrets")
    assert decided.decide("read", {"path": ".env"}) == Decision(
        "deny",
        "rule",
        "Blocked by policy rule no-secrets: secrets stay out of the run. Instead: read .env.example",
        rule_id="no-secrets",
        source="<text>:5",
        fact=fact,
        facts=(FactVerdict("read", f"{workspace.root}/.env", granted_by="all", forbidden_by="no-secrets"),),
        argument="path",
        span=(0, 4),
        because="secrets stay out of the run",
        instead="read .env.example",
        on_denied="stop",
    )


def test_a_deny_rule_without_a_reason_says_what_it_forbids(policy: MakePolicy, workspace: Workspace) -> None:
    decided = policy("- {id: all, allow: read}\n- {id: locked, deny: read, path: secret.txt}\n")
    reason = decided.decide("read", {"path": "secret.txt"}).reason
    assert reason == f"Blocked by policy rule locked: it forbids reading {workspace.root}/secret.txt"


def test_a_forbidden_file_that_a_search_would_meet_is_named(policy: MakePolicy, workspace: Workspace, put: Put) -> None:
    put("src/a.txt")
    put("src/deep/.env")
    decided = policy(
        """
        - {id: search, allow: bash, command: "grep **"}
        - {id: no-secrets, deny: read, path: "**/.env", because: secrets stay out, instead: leave it out}
        """
    )
    decision = bash(decided, "grep -r TODO .")
    secret = f"{workspace.root}/src/deep/.env"
    assert decision.reason == (
        f"Blocked by policy rule no-secrets: secrets stay out (reading {secret}, because it lies beneath "
        f"{workspace.root}: name a folder without it or leave it out). Instead: leave it out"
    )
    assert decision.fact == FactVerdict("read", secret, forbidden_by="no-secrets")
    assert decision.facts == (
        FactVerdict("exec", "grep -r TODO .", granted_by="search"),
        FactVerdict("read", str(workspace.root), granted_by="search"),
        FactVerdict("read", secret, forbidden_by="no-secrets"),
    )


def test_a_link_that_leads_to_a_forbidden_file_is_named(policy: MakePolicy, workspace: Workspace, put: Put) -> None:
    put("hidden/.env")
    put("src/a.txt")
    (workspace.root / "src/link").symlink_to("../hidden/.env")
    decided = policy('- {id: search, allow: bash, command: "grep **"}\n- {id: hide, deny: read, path: "**/.env"}\n')
    decision = bash(decided, "grep -r TODO src")
    assert decision.reason == (
        f"Blocked by policy rule hide: it forbids reading {workspace.root}/src/link, because it lies beneath "
        f"{workspace.root}/src: name a folder without it or leave it out"
    )


def test_a_denial_says_what_else_of_the_call_is_denied(policy: MakePolicy, workspace: Workspace) -> None:
    decided = policy(
        """
        - {id: look, allow: bash, command: "cat **"}
        - {id: no-secrets, deny: read, path: ["**/.env", "**/*.key"], because: secrets stay out}
        """
    )
    root = workspace.root
    assert bash(decided, "cat .env a.key; cat b; rm c; d; e; d").reason == (
        f"Blocked by policy rule no-secrets: secrets stay out (reading {root}/.env). "
        f"Also denied: reading {root}/a.key, running `rm c`, running `d`, and 1 more"
    )
    assert bash(decided, "d; e $X | sh").reason.startswith("Blocked: what this would do cannot be known: ")
    assert ". Also denied: running `d`, " in bash(decided, "d; e $X | sh").reason
    assert "Also denied" not in bash(decided, "cat .env").reason
    assert "Also denied" not in bash(decided, "cat .env; cat .env").reason


def test_a_file_that_a_glob_turns_into_an_option_is_denied_with_the_cure(policy: MakePolicy, put: Put) -> None:
    put("-n.txt")
    decided = policy('- {id: count, allow: bash, command: "wc **"}\n')
    assert "write `--` or `./` before the glob" in bash(decided, "wc *").reason
    assert bash(decided, "wc -- *").effect == "allow"
    assert bash(decided, "wc ./*").effect == "allow"


def test_what_no_rule_grants_is_denied_with_the_nearest_rule(policy: MakePolicy) -> None:
    decided = policy(
        """
        - {id: inspect, allow: bash, command: "git {status,log} **", instead: use git log}
        - {id: test, allow: bash, command: "npm test"}
        """,
        head="on_denied: fail\n",
    )
    assert bash(decided, "git log && git push origin main") == Decision(
        "deny",
        "default",
        "Blocked: no policy rule allows running `git push origin main`. "
        "The nearest, inspect, does not fit: `push` is not `{status,log}`. Instead: use git log",
        fact=FactVerdict("exec", "git push origin main"),
        facts=(FactVerdict("exec", "git log", granted_by="inspect"), FactVerdict("exec", "git push origin main")),
        argument="command",
        span=(11, 31),
        nearest=NearestRule("inspect", "<text>:5", "`push` is not `{status,log}`"),
        instead="use git log",
        on_denied="fail",
    )


def test_a_program_that_no_rule_names_has_no_nearest_rule(policy: MakePolicy) -> None:
    decision = bash(policy('- {id: test, allow: bash, command: "npm test"}\n'), "curl https://a.test")
    assert decision.reason == "Blocked: no policy rule allows running `curl https://a.test`"
    assert decision.nearest is None


@pytest.mark.parametrize("pattern", ["pytest **", "head **", "npm test", "git {log,status} **"])
@pytest.mark.parametrize("command", ["ls", "docker ps", "make test"])
def test_a_rule_about_an_unrelated_program_is_not_the_nearest(policy: MakePolicy, pattern: str, command: str) -> None:
    decision = bash(policy(f'- {{id: test, allow: bash, command: "{pattern}"}}\n'), command)
    assert (decision.reason, decision.nearest) == (f"Blocked: no policy rule allows running `{command}`", None)


def test_a_program_that_is_spelled_in_another_way_is_near(policy: MakePolicy) -> None:
    decision = bash(policy('- {id: look, allow: bash, command: "ls **"}\n'), "/usr/bin/ls")
    assert decision.nearest == NearestRule("look", "<text>:3", "`/usr/bin/ls` is not `ls`")


@pytest.mark.parametrize("command", ['git status > "$TMPDIR/x"', 'cat "$TMPDIR/x"', "cat < $TMPDIR/x"])
def test_who_names_a_temporary_file_is_told_what_to_do(policy: MakePolicy, command: str) -> None:
    reason = bash(policy('- {id: any, allow: bash, command: "**"}\n- {id: w, allow: write}\n'), command).reason
    assert (
        "programs put their temporary files there by themselves; to name one, take a folder of the workspace" in reason
    )


def test_a_hazard_is_named(policy: MakePolicy) -> None:
    decision = bash(policy('- {id: diff, allow: bash, command: "git diff **"}\n'), "git diff --output=x")
    assert (decision.code, decision.nearest and decision.nearest.rule_id) == ("hazard", "diff")
    assert "`--output=x` writes a file" in decision.reason


@pytest.mark.parametrize("command", ["git diff --output=x", "git diff --output=build/y"])
def test_an_option_that_a_pattern_spells_is_no_hazard(policy: MakePolicy, command: str) -> None:
    decided = policy('- {id: diff, allow: bash, command: ["git diff --output=x", "git diff --output=build/*"]}\n')
    assert bash(decided, command).effect == "allow"


def test_what_cannot_be_parsed_points_at_the_place(policy: MakePolicy) -> None:
    decision = bash(policy('- {id: any, allow: bash, command: "**"}\n'), "ls 'open")
    assert (decision.effect, decision.code, decision.argument) == ("deny", "unparsable", "command")
    assert decision.span is not None
    assert decision.span[0] >= 3


@pytest.mark.parametrize("command", ["", "   ", "# only a comment", "x=1"])
def test_nothing_to_allow_is_a_denial(policy: MakePolicy, command: str) -> None:
    decision = bash(policy('- {id: any, allow: bash, command: "**"}\n'), command)
    assert (decision.effect, decision.code) == ("deny", "unparsable")


def test_a_tripwire_is_found_among_other_denials(policy: MakePolicy) -> None:
    decided = policy(
        """
        - {id: any, allow: bash, command: "cat **"}
        - {id: a-soft, deny: read, path: "**/.env"}
        - {id: wire, deny: read, path: "**/.env", on_denied: stop}
        - {id: z-fail, deny: read, path: "**/.env", on_denied: fail}
        """
    )
    decision = bash(decided, "curl https://a.test; cat b.txt $X; cat .env")
    assert (decision.rule_id, decision.on_denied) == ("wire", "stop")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {}),
        ("read", {"path": None}),
        ("read", {"path": ["a"]}),
        ("read", {"path": ""}),
        ("read", {"path": "a\u200bb"}),
        ("read", {"path": "a\0b"}),
        ("read", {"path": "x" * 5_000}),
        ("write", {"path": 1, "content": ""}),
        ("bash", {}),
        ("bash", {"command": None}),
        ("bash", {"command": ["ls"]}),
        ("bash", {"command": "ls", "env": {}}),
        ("bash", {"command": "ls \ud800"}),
        ("fetch", {}),
        ("fetch", {"url": 1}),
        ("fetch", {"url": "https://a.test", "method": 1}),
        ("", {}),
        ("read\n", {"path": "a"}),
        ("github__x\u200b", {}),
    ],
)
def test_malformed_calls_are_denied_whatever_the_rules(
    policy: MakePolicy, tool: str, arguments: dict[str, object]
) -> None:
    decided = policy(
        """
        - {id: files, allow: [read, write, edit, grep, find, ls]}
        - {id: commands, allow: bash, command: "**"}
        - {id: requests, allow: fetch}
        - {id: servers, allow: "*__*"}
        """
    )
    decision = decided.decide(tool, arguments)
    assert (decision.effect, decision.code) == ("deny", "unparsable"), decision


def test_an_empty_set_of_rules_denies_everything(workspace: Workspace) -> None:
    decided = compile_policy(PolicySource("none", "0", None, ()), workspace)
    for tool, arguments in [("read", {"path": "a"}), ("bash", {"command": "ls"}), ("github__x", {})]:
        assert decided.decide(tool, arguments).code == "default"


def test_a_wrong_matcher_is_a_configuration_error_with_its_place(workspace: Workspace) -> None:
    rule = Rule("home", "allow", ("read",), "p.yml:7", path=("~/x",))
    with pytest.raises(ConfigurationError, match=r"p\.yml:7: rule home: .*home folder is not known"):
        compile_policy(PolicySource("p", "0", None, (rule,)), workspace)


def test_only_tools_that_some_rule_could_allow_are_offered(policy: MakePolicy) -> None:
    decided = policy(
        """
        - {id: files, allow: [read, write]}
        - {id: servers, allow: "github__*"}
        - {id: no-write, deny: write}
        - {id: no-env, deny: read, path: .env}
        - {id: no-delete, deny: "*__delete_repo"}
        """
    )
    tools = ("read", "write", "bash", "github__x", "github__delete_repo", "gitlab__x")
    assert [tool for tool in tools if decided.can_allow(tool)] == ["read", "github__x"]


def test_a_file_is_opened_only_when_the_policy_permits_it(policy: MakePolicy, workspace: Workspace) -> None:
    decided = policy(
        """
        - {id: look, allow: [read, grep]}
        - {id: src, allow: write, path: src/**}
        - {id: secret, deny: read, path: "**/.env"}
        - {id: locked, deny: edit, path: src/lock}
        """
    )
    root = workspace.root
    assert decided.permits_path("grep", "read", root / "a/b")
    assert not decided.permits_path("grep", "read", root / "a/.env")
    assert not decided.permits_path("read", "read", Path("/etc/passwd"))
    assert not decided.permits_path("find", "read", root / "a")
    assert decided.permits_path("grep", "list", root)
    assert not decided.permits_path("grep", "list", Path("/etc"))
    assert not decided.permits_path("ls", "list", root)
    assert decided.permits_path("write", "write", root / "src/a")
    assert not decided.permits_path("write", "write", root / "src/lock")
    assert not decided.permits_path("write", "write", root / "src/.git/config")
    assert not decided.permits_path("write", "write", root / "docs/a")
