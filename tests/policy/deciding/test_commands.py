"""Commands, their operands, redirections, variables and bounds, held against rules."""

import pytest
from policy_calls import MakePolicy, Put, bash

from ci_agent.workspace import Workspace


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
