"""What a decision says, and what the parts of the policy language have to do with each other."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.hooks import Decision, FactVerdict, NearestRule
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.rules import PolicySource, Rule
from ci_agent.workspace import Workspace

MakePolicy = Callable[..., Policy]
Put = Callable[..., Path]


def bash(policy: Policy, command: str) -> Decision:
    return policy.decide("bash", {"command": command})


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


# Files


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


# Shell


def test_operands_must_be_within_the_paths_of_the_rule_that_grants_the_command(policy: MakePolicy) -> None:
    decided = policy(
        """
        - {id: src, allow: bash, command: "cat **", paths: src/**}
        - {id: docs, allow: bash, command: "cat **", paths: docs/**}
        """
    )
    answers = {
        command: bash(decided, command).effect
        for command in ("cat src/a", "cat docs/a", "cat src/a docs/b", "cat a", "cat < src/a", "cat < a")
    }
    assert answers == {
        "cat src/a": "allow",
        "cat docs/a": "allow",
        "cat src/a docs/b": "deny",
        "cat a": "deny",
        "cat < src/a": "allow",
        "cat < a": "deny",
    }


def test_output_redirections_need_a_rule_for_write(policy: MakePolicy) -> None:
    decided = policy(
        """
        - {id: say, allow: bash, command: "echo **", paths: "**"}
        - {id: edit, allow: edit}
        - {id: build, allow: write, path: build/**}
        """
    )
    assert bash(decided, "echo x > build/a").effect == "allow"
    assert bash(decided, "echo x > src/a").code == "default"
    assert bash(decided, "echo x >> /tmp/a").code == "default"


def test_a_write_rule_that_tests_arguments_grants_no_redirection(policy: MakePolicy) -> None:
    decided = policy(
        """
        - {id: say, allow: bash, command: "echo **"}
        - {id: notes, allow: write, args: {content: {regex: "[a-z]*"}}}
        """
    )
    assert bash(decided, "echo x > a").effect == "deny"
    assert decided.decide("write", {"path": "a", "content": "ok"}).effect == "allow"
    assert decided.decide("write", {"path": "a", "content": "NO"}).effect == "deny"


@pytest.mark.parametrize(
    "command", ["ls > /dev/null", "ls 2>&1", "ls >&2", "ls &>/dev/null", "ls > /dev/stderr", "ls < /dev/null"]
)
def test_what_keeps_nothing_needs_nothing(policy: MakePolicy, command: str) -> None:
    decided = policy('- {id: list, allow: bash, command: "ls **"}\n- {id: never, deny: [write, read]}\n')
    assert bash(decided, command).effect == "allow"


@pytest.mark.parametrize(
    "command",
    ["ls > /dev/tcp/10.0.0.1/80", "ls > /dev/sda", "ls < /dev/tcp/a/1", "ls > /dev/../dev/sda", "cat /dev/mem"],
)
def test_devices_and_network_files_are_out_of_reach(policy: MakePolicy, command: str) -> None:
    decided = policy('- {id: any, allow: bash, command: "**", paths: "/**"}\n- {id: w, allow: write, path: "/**"}\n')
    assert bash(decided, command).effect == "deny"


def test_the_input_of_a_loop_is_within_reach_of_what_reads_it(policy: MakePolicy) -> None:
    decided = policy('- {id: loop, allow: bash, command: ["read **", "echo **"], paths: src/**}\n')
    assert bash(decided, 'while read -r line; do echo "$line"; done < src/list.txt').effect == "allow"
    assert bash(decided, 'while read -r line; do echo "$line"; done < other.txt').effect == "deny"
    by_read = policy(
        '- {id: loop, allow: bash, command: ["read **", "echo **"], paths: src/**}\n- {id: r, allow: read}\n'
    )
    assert bash(by_read, 'while read -r line; do echo "$line"; done < other.txt').effect == "allow"


def test_a_redirection_alone_is_still_a_call_of_bash(policy: MakePolicy) -> None:
    no_bash = policy("- {id: w, allow: write}\n")
    denied_bash = policy(
        '- {id: w, allow: write}\n- {id: any, allow: bash, command: "**"}\n- {id: never, deny: bash}\n'
    )
    some_bash = policy('- {id: w, allow: write}\n- {id: list, allow: bash, command: "ls"}\n')
    answers = [bash(decided, "> out.txt") for decided in (no_bash, denied_bash, some_bash)]
    assert [(answer.effect, answer.rule_id) for answer in answers] == [
        ("deny", None),
        ("deny", "never"),
        ("allow", "w"),
    ]


def test_a_deny_on_a_file_tool_may_test_its_arguments(policy: MakePolicy) -> None:
    decided = policy(
        """
        - {id: all, allow: [read, grep]}
        - {id: long, deny: read, path: "logs/**", args: {limit: {min: 1000}}}
        """
    )
    assert decided.decide("read", {"path": "logs/a", "limit": 5_000}).rule_id == "long"
    assert decided.decide("read", {"path": "logs/a", "limit": "5000"}).rule_id == "long"
    for arguments in ({"path": "logs/a", "limit": 5}, {"path": "logs/a"}, {"path": "src/a", "limit": 5_000}):
        assert decided.decide("read", arguments).effect == "allow"


def test_a_function_of_the_same_text_needs_rules_for_what_it_runs(policy: MakePolicy) -> None:
    decided = policy(
        '- {id: list, allow: bash, command: "ls **", paths: "**", env: A}\n- {id: no-g, deny: bash, command: "g **"}\n'
    )
    answers = {
        command: bash(decided, command).effect
        for command in (
            "f() { ls src; }; f; f",
            "f() { ls src; }; f > /dev/null",
            "f() { rm x; }; f",
            "f; f() { ls src; }",
            "A=1 f() { ls src; }; A=1 f",
            "f() { ls src; }; f < /etc/passwd",
            "g() { ls src; }; g",
            "f() { :; }; f",
        )
    }
    assert list(answers.values()) == ["allow", "allow"] + ["deny"] * 6


def test_assignments_must_be_listed(policy: MakePolicy) -> None:
    decided = policy('- {id: test, allow: bash, command: "npm test", env: [CI, "LC_*"]}\n')
    answers = {
        command: bash(decided, command).effect
        for command in (
            "CI=1 npm test",
            "LC_ALL=C CI=1 npm test",
            "env CI=1 npm test",
            "CI=1 env LC_ALL=C timeout 5 npm test",
            "FOO=1 npm test",
            "CI=1 env FOO=1 npm test",
            "FOO=1 timeout 5 npm test",
        )
    }
    assert list(answers.values()) == ["allow"] * 4 + ["deny"] * 3


@pytest.mark.parametrize(
    "command", ["PATH=./bin; ls", "LD_PRELOAD=./x; ls", "for PATH in ./bin; do ls; done", "CI=1; ls"]
)
def test_variables_that_change_later_commands_are_not_set(policy: MakePolicy, command: str) -> None:
    decided = policy('- {id: any, allow: bash, command: "**"}\n', exported=frozenset({"CI"}))
    assert (bash(decided, command).effect, bash(decided, "files=1; ls $files").effect) == ("deny", "allow")


def test_a_launcher_needs_a_rule_for_itself_and_for_what_it_starts(policy: MakePolicy) -> None:
    decided = policy('- {id: a, allow: bash, command: ["find **", "xargs wc **", "sudo id", "bash -c \'ls src\'"]}\n')
    answers = {
        command: bash(decided, command).effect
        for command in (
            "find . -type f | xargs wc -l",
            "find . -type f | xargs rm",
            "wc -l a",
            "sudo id",
            "id",
            "bash -c 'ls src'",
            "bash -c 'ls /etc'",
            "ls src",
        )
    }
    assert list(answers.values()) == ["allow", "deny", "deny", "allow", "deny", "allow", "deny", "deny"]


def test_a_wildcard_over_a_launcher_covers_no_inner_command(policy: MakePolicy) -> None:
    decided = policy('- {id: a, allow: bash, command: ["xargs **", "find **", "timeout **", "bash -c **"]}\n')
    for command in ("find . | xargs rm", "find . -exec rm {} +", "timeout 5 rm x", "bash -c 'rm x'"):
        assert bash(decided, command).effect == "deny", command


def test_names_that_xargs_would_cut_are_denied(policy: MakePolicy, put: Put) -> None:
    put("src/x ../../etc/passwd")
    decided = policy('- {id: a, allow: bash, command: ["find **", "xargs **", "cat **"]}\n')
    assert bash(decided, "find src -type f | xargs cat").effect == "deny"
    assert bash(decided, "find src -type f -print0 | xargs -0 cat").effect == "allow"


def test_a_command_runs_in_a_folder_within_reach(policy: MakePolicy, put: Put, workspace: Workspace) -> None:
    put("src/a")
    put("docs/b")
    (workspace.root / "docs/up").symlink_to(workspace.root.parent)
    decided = policy(
        """
        - {id: go, allow: bash, command: "cd **", paths: ["**", "/tmp/**", "/tmp"]}
        - {id: run, allow: bash, command: "npm test"}
        - {id: see, allow: bash, command: "cat **"}
        """
    )
    answers = {
        command: bash(decided, command).effect
        for command in (
            "cd src && npm test",
            "cd src && cat a ../docs/b",
            "(cd src && cat a) && cat docs/b",
            "cd src; cat a",
            "cd /tmp && npm test",
            "cd docs/up && cat x",
            "cd docs/up/.. && cat b",
            'cd "$X" && npm test',
        )
    }
    assert list(answers.values()) == ["allow"] * 3 + ["deny"] * 5


def test_a_deny_sees_through_paths_wrappers_options_and_case(policy: MakePolicy) -> None:
    decided = policy(
        """
        - {id: any, allow: bash, command: "**", env: "*"}
        - {id: no-rm, deny: bash, command: "rm **"}
        - {id: no-push, deny: bash, command: "git push **"}
        """
    )
    for command in (
        "/bin/rm x",
        "./rm x",
        "timeout 5 rm x",
        "env A=1 rm x",
        "sudo rm x",
        "find . | xargs rm",
        "RM x",
        "bash -c 'rm x'",
        "command rm x",
    ):
        assert bash(decided, command).rule_id == "no-rm", command
    for command in (
        "git -C . push",
        "git --no-pager push",
        "git --weird push",
        "git --weird=1 -x push",
        "/usr/bin/git push",
    ):
        assert bash(decided, command).rule_id == "no-push", command
    assert bash(decided, "git log --grep push").effect == "allow"


@pytest.mark.parametrize(
    ("command", "denied"),
    [
        ("git push --force", True),
        ("git push --forc", True),
        ("git push --force=yes", True),
        ("git push -uf origin", True),
        ("git push origin +main", True),
        ("git push origin main", False),
        ("git push -- --force", False),
        ("git push --follow-tags", False),
    ],
)
def test_has_looks_for_an_option_in_every_form(policy: MakePolicy, command: str, denied: bool) -> None:
    decided = policy(
        """
        - {id: any, allow: bash, command: ["**"]}
        - {id: force, deny: bash, command: "git push **", has: ["--force", "-f", "+*"]}
        """
    )
    assert (bash(decided, command).rule_id == "force") is denied


def test_a_deny_with_paths_is_about_operands_inside_them(policy: MakePolicy, put: Put) -> None:
    decided = policy(
        """
        - {id: any, allow: bash, command: ["**"]}
        - {id: keep, deny: bash, command: "rm **", paths: src/**}
        """
    )
    assert bash(decided, "rm src/a").rule_id == "keep"
    assert bash(decided, "rm build/a").effect == "allow"


def test_urls_of_a_command_obey_the_hosts_of_its_rule(policy: MakePolicy) -> None:
    decided = policy('- {id: get, allow: bash, command: "curl -sSf **", host: api.example.com}\n')
    answers = {
        url: bash(decided, f"curl -sSf {url}").effect
        for url in (
            "https://api.example.com/v1",
            "https://evil.test/",
            "https://api.example.com@evil.test/",
            "http://api.example.com/",
            "file:///etc/passwd",
            "https://api.example.com/ https://evil.test/",
        )
    }
    assert list(answers.values()) == ["allow", "deny", "deny", "deny", "deny", "deny"]


def test_a_rule_for_a_command_may_name_schemes_ports_and_methods(policy: MakePolicy) -> None:
    decided = policy(
        """
        - id: health
          allow: bash
          command: "curl **"
          host: localhost
          scheme: http
          port: 3000
          method: [GET, POST]
        """
    )
    answers = {
        command: bash(decided, command).effect
        for command in (
            "curl http://localhost:3000/health",
            "curl -X POST http://localhost:3000/health",
            "curl -d a=b http://localhost:3000/health",
            "curl -X DELETE http://localhost:3000/health",
            "curl http://localhost:3001/health",
            "curl https://localhost:3000/health",
        )
    }
    assert list(answers.values()) == ["allow"] * 3 + ["deny"] * 3


def test_a_deny_on_fetch_binds_the_shell(policy: MakePolicy) -> None:
    decided = policy('- {id: get, allow: bash, command: "curl **"}\n- {id: denied, deny: fetch, host: "*.evil.test"}\n')
    assert bash(decided, "curl https://a.evil.test").rule_id == "denied"
    assert bash(decided, "curl https://a.good.test").effect == "allow"
    assert bash(decided, "curl https://127.0.0.1").effect == "deny"


def test_too_many_names_are_a_limit(policy: MakePolicy, workspace: Workspace) -> None:
    for number in range(1_001):
        (workspace.root / f"{number}.txt").touch()
    decision = bash(policy('- {id: list, allow: bash, command: "ls **"}\n'), "ls *.txt")
    assert (decision.effect, decision.code) == ("deny", "limit")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("ls " + "a" * 300_000, "more than 131072 bytes"),
        ("ls " + "a" * 33_000, "more than 32768 characters"),
        ("echo " + "$(" * 100 + "ls" + ")" * 100, "more than 32 levels of nesting"),
        ("ls;" * 20_000, "more than 150 commands"),
        ("; ".join(["sh -c 'ls; ls; ls; ls; ls; ls; ls'"] * 30), "more than 150 commands would run"),
        ("echo " + "a " * 2_000, "more than 2000 words"),
        ("nice " * 15 + "echo " + "a " * 500, "more than 2000 words"),
        ("nice " * 17 + "ls", "nested more than 16 levels deep"),
        ("ls " + " ".join(f"f{number}" for number in range(301)), "more than 300 files are named"),
        ("ls " + " ".join("a/" * 80 + f"{number}" for number in range(31)), "more than 300 files are named"),
        (" && ".join("cd d && ls x" for _ in range(70)), "more than 300 files are named"),
        ("; ".join(f"rsync -r src d{number}" for number in range(140)), "more than 30000 files"),
        ("curl " + " ".join(f"https://h{number}.test" for number in range(1_300)), "more than 30000 files"),
    ],
)
def test_bounds_are_denials(policy: MakePolicy, command: str, why: str) -> None:
    decision = bash(policy('- {id: any, allow: bash, command: "**"}\n'), command)
    assert (decision.effect, decision.code) == ("deny", "limit")
    assert why in decision.reason


@pytest.mark.parametrize(
    "command",
    [
        "echo " + "a" * 32_000,
        "; ".join(["echo x"] * 148),
        "echo " + "a " * 900,
        "nice " * 15 + "ls",
        "ls " + " ".join(f"f{number}" for number in range(290)),
        "cd src && " + " && ".join(["ls"] * 140),
        "; ".join(f"cat f{number}" for number in range(145)),
        "; ".join(f"cp a{number} b{number}" for number in range(95)),
        "; ".join(f"cp -r src d{number}" for number in range(60)),
        "curl " + " ".join(f"https://h{number}.test" for number in range(900)),
        "cat > f.txt <<'E'\n" + "some text\n" * 12_000 + "E",
    ],
)
def test_up_to_the_bounds_a_rule_decides(policy: MakePolicy, workspace: Workspace, command: str) -> None:
    (workspace.root / "src").mkdir(exist_ok=True)
    decided = policy('- {id: any, allow: bash, command: "**"}\n- {id: write, allow: write, path: "**"}\n')
    assert bash(decided, command).effect == "allow"


# Requests


def test_fetch_is_https_on_its_port_with_get_unless_the_rule_says_more(policy: MakePolicy) -> None:
    decided = policy(
        """
        - {id: docs, allow: fetch, host: a.test}
        - {id: local, allow: fetch, host: b.test, scheme: http, port: 80, method: [GET, HEAD]}
        """
    )
    calls: dict[str, dict[str, str]] = {
        "plain": {"url": "https://a.test/x"},
        "get": {"url": "https://a.test/x", "method": "get"},
        "head": {"url": "https://a.test/x", "method": "HEAD"},
        "http": {"url": "http://a.test/x"},
        "port": {"url": "https://a.test:8443/x"},
        "b": {"url": "http://b.test/x", "method": "HEAD"},
        "b-port": {"url": "http://b.test:81/x"},
        "b-https": {"url": "https://b.test/x"},
    }
    allowed = [name for name, arguments in calls.items() if decided.decide("fetch", arguments).effect == "allow"]
    assert allowed == ["plain", "get", "b"]


def test_a_resolved_address_must_be_public_or_named(policy: MakePolicy) -> None:
    decided = policy(
        """
        - {id: docs, allow: fetch, host: ["*.example.com"]}
        - {id: local, allow: fetch, host: [localhost], scheme: http, port: 3000}
        - {id: corp, allow: fetch, host: [corp.test, 10.0.0.0/8]}
        - {id: bad, deny: fetch, host: [8.8.8.0/24]}
        """
    )
    answers = {
        (url, address): decided.permits_address(url, address)
        for url, address in (
            ("https://docs.example.com/", "93.184.216.34"),
            ("https://docs.example.com/", "127.0.0.1"),
            ("https://docs.example.com/", "10.0.0.1"),
            ("https://docs.example.com/", "8.8.8.8"),
            ("https://docs.example.com/", "::ffff:127.0.0.1"),
            ("https://other.test/", "93.184.216.34"),
            ("http://localhost:3000/", "127.0.0.1"),
            ("http://localhost:3000/", "::1"),
            ("http://localhost:3000/", "10.0.0.1"),
            ("https://corp.test/", "10.1.1.1"),
            ("https://corp.test/", "192.168.0.1"),
            ("https://corp.test/", "nonsense"),
        )
    }
    assert list(answers.values()) == [True, False, False, False, False, False, True, True, False, True, False, False]


# Tools of servers


def test_arguments_are_tested_value_by_value(policy: MakePolicy) -> None:
    decided = policy(
        """
        - id: issue
          allow: github__create_issue
          args: {repo: {enum: [acme/site]}, "labels[]": {enum: [bug, docs]}}
          only: true
        """
    )
    calls: list[dict[str, object]] = [
        {"repo": "acme/site", "labels": ["bug"]},
        {"repo": "acme/site", "labels": []},
        {"repo": "acme/site"},
        {"repo": "acme/other", "labels": []},
        {"repo": "acme/site", "labels": ["bug", "x"]},
        {"repo": "acme/site", "labels": [], "assignee": "me"},
    ]
    effects = [decided.decide("github__create_issue", arguments).effect for arguments in calls]
    assert effects == ["allow", "allow", "deny", "deny", "deny", "deny"]


def test_too_many_values_are_a_limit(policy: MakePolicy) -> None:
    decided = policy('- {id: files, allow: fs__write, args: {"paths[]": {path: "**"}}}\n')
    assert decided.decide("fs__write", {"paths": ["a"] * 1_000}).effect == "allow"
    assert decided.decide("fs__write", {"paths": ["a"] * 1_001}).code == "limit"


def test_a_path_argument_obeys_what_files_obey(policy: MakePolicy, put: Put) -> None:
    put(".git/config")
    decided = policy(
        """
        - {id: files, allow: "fs__*", args: {path: {path: ["**"]}}}
        - {id: secret, deny: read, path: "**/.env"}
        """
    )
    answers = {
        path: decided.decide("fs__read", {"path": path}).effect
        for path in (
            "src/a",
            "src",
            ".",
            "../x",
            "/etc/passwd",
            ".git/config",
            ".env",
            "/proc/self/environ",
            "",
            "a\u202eb",
        )
    }
    assert list(answers.values()) == ["allow"] * 3 + ["deny"] * 7


def test_a_command_argument_is_read_like_bash(policy: MakePolicy) -> None:
    decided = policy(
        """
        - {id: run, allow: ci__run, args: {cmd: {command: ["npm test", "ls **"]}}}
        - {id: denied, deny: ci__run, args: {cmd: {command: ["ls secret **"]}}}
        """
    )
    answers = {
        command: decided.decide("ci__run", {"cmd": command}).effect
        for command in (
            "npm test",
            "npm test && ls src",
            "npm test; id",
            "ls > x",
            "A=1 ls",
            "ls 'x",
            "",
            "ls secret",
            "ls $(id)",
        )
    }
    assert list(answers.values()) == ["allow", "allow"] + ["deny"] * 7


@pytest.mark.parametrize(
    ("arguments", "denied"),
    [
        ({"value": "x"}, True),
        ({"value": "y"}, False),
        ({"value": ["x"]}, True),
        ({"value": 1}, True),
        ({}, False),
        ({"value": None}, True),
    ],
)
def test_a_deny_on_an_argument_fails_closed(policy: MakePolicy, arguments: dict[str, object], denied: bool) -> None:
    decided = policy('- {id: all, allow: "flag__*"}\n- {id: denied, deny: "flag__*", args: {value: {enum: [x]}}}\n')
    assert (decided.decide("flag__set", arguments).rule_id == "denied") is denied


def test_a_deny_may_require_an_argument(policy: MakePolicy) -> None:
    decided = policy(
        '- {id: all, allow: "flag__*"}\n- {id: denied, deny: "flag__*", args: {dry_run: {absent: true}}}\n'
    )
    assert decided.decide("flag__set", {}).rule_id == "denied"
    assert decided.decide("flag__set", {"dry_run": True}).effect == "allow"


# Offers


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


@pytest.mark.parametrize("command", ['for f in src/*.txt; do cat "$f"; done', "for f in src/*.txt x; do cat $f; done"])
def test_a_loop_over_files_is_a_loop_over_those_that_are_there(policy: MakePolicy, put: Put, command: str) -> None:
    put("src/a.txt")
    decided = policy('- {id: any, allow: bash, command: "cat *"}\n- {id: secret, deny: read, path: src/b.txt}\n')
    assert bash(decided, command).effect == "allow"
    put("src/b.txt")
    assert bash(decided, command).rule_id == "secret"


def test_an_unquoted_name_with_blanks_is_more_than_one_word(policy: MakePolicy, put: Put) -> None:
    put("src/x ..txt")
    decided = policy('- {id: any, allow: bash, command: "cat **"}\n')
    assert bash(decided, "for f in src/*.txt; do cat $f; done").effect == "deny"
    assert bash(decided, 'for f in src/*.txt; do cat "$f"; done').effect == "allow"


# What the call itself makes


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


# Where a program's path starts


@pytest.mark.parametrize(
    "command",
    [
        "cd sub && ./build.sh",
        "(cd sub && timeout 5 ./build.sh)",
        "cd sub && ./../sub/build.sh",
        "cd src && src/run.sh",
        "cd src/tools && ./run.sh",
        "cd src && tools/../../evil.sh",
        "./tools/../evil.sh",
        "/usr/bin/../../tmp/evil",
        "cd sub && env -C . ./build.sh",
    ],
)
def test_a_program_of_the_same_spelling_in_another_folder_is_another_program(
    policy: MakePolicy, put: Put, command: str
) -> None:
    for name in ("build.sh", "sub/build.sh", "src/run.sh", "src/src/run.sh", "src/tools/run.sh", "evil.sh"):
        put(name)
    decided = policy(
        """
        - {id: cd, allow: bash, command: ["cd **", "env **"]}
        - {id: mine, allow: bash, command: [./build.sh, "xargs ./build.sh", src/run.sh, "./tools/*", "/usr/bin/*"]}
        - {id: run, allow: bash, command: ./run.sh}
        """
    )
    assert bash(decided, command).code == "default"


@pytest.mark.parametrize(
    "command",
    [
        "./build.sh",
        "cd sub && ../build.sh",
        "cd src && ./run.sh",
        "cd src/tools && ../run.sh",
        "cd tools && ./check",
        "cd sub && timeout 5 ../build.sh",
    ],
)
def test_a_program_is_the_one_that_the_rule_spells_wherever_it_is_run_from(
    policy: MakePolicy, put: Put, command: str
) -> None:
    for name in ("build.sh", "sub/a", "src/run.sh", "src/tools/a", "tools/check"):
        put(name)
    decided = policy(
        """
        - {id: cd, allow: bash, command: ["cd **", "xargs **"]}
        - {id: mine, allow: bash, command: [./build.sh, src/run.sh, "./tools/*"]}
        """
    )
    assert bash(decided, command).effect == "allow"
