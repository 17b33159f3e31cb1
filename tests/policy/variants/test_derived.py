"""The variants themselves: what is made of a call."""

from collections.abc import Iterable

from policy_calls import MakePolicy

from ci_agent.policy.decide import Policy
from ci_agent.policy.lint.finding import Witness
from ci_agent.policy.rules import Rule
from ci_agent.policy.variants.arguments import argument_variants
from ci_agent.policy.variants.command_words import simple_commands
from ci_agent.policy.variants.denies import deny_variants, forbidden_files
from ci_agent.policy.variants.options import harmless_options, option_variants
from ci_agent.policy.variants.tools import fetch_variants, file_variants, type_variants
from ci_agent.policy.variants.urls import url_variants
from ci_agent.policy.variants.variant import Variant

NOTHING = "rules: [{id: a, allow: read}]"


def commands(variants: Iterable[Variant]) -> list[str]:
    return [variant.call.arguments["command"] for variant in variants]


def rule_of(policy: Policy) -> Rule:
    return policy.source.rules[0]


def test_the_path_of_a_file_tool_is_made_to_lead_elsewhere(policy: MakePolicy) -> None:
    call = Witness("write", {"path": "src/a.py", "content": "x"})
    variants = list(file_variants(policy(NOTHING).site, call, "canary"))
    assert [(variant.trick, variant.call.arguments["path"]) for variant in variants] == [
        *(("path", "../canary"), ("path", "canary/../../canary"), ("path", "/canary/y"), ("path", "~/canary")),
        *(("path", "/proc/self/environ"), ("path", "/dev/fd/0"), ("look-alike path", "src-canary/a.py")),
        *(("hidden character", f"src/a.py{char}") for char in "\u202e\u200b\u2028\0\n\x1b"),
        *(("path", ".git/hooks/canary"), ("path", ".git/config"), ("path", "y/.git/canary"), ("path", ".GIT/canary")),
        ("path", ".github/workflows/canary.yml"),
    ]
    assert {variant.call.arguments["content"] for variant in variants} == {"x"}


def test_the_argument_that_a_rule_is_about_is_made_to_be_something_else_than_text() -> None:
    values = [variant.call.arguments["path"] for variant in type_variants(Witness("read", {"path": "a"}))]
    assert values == [["a"], {"path": "a"}, None, True, 1]
    assert list(type_variants(Witness("ls", {}))) == []
    assert list(type_variants(Witness("a__b", {"path": "a"}))) == []


def test_a_url_is_made_to_lead_elsewhere() -> None:
    texts = [url.text for url in url_variants("https://docs.python.org:8443/3/", "canary")]
    for text in (
        *("https://docs.python.org@canary.example:8443/3/", "https://canary.example\\@docs.python.org:8443/3/"),
        *(
            "https://canary.example.:8443/3/",
            "https://docs.python.org.canary.example:8443/3/",
            "http://docs.python.org:8443/3/",
        ),
        *(
            "https://2130706433:8443/3/",
            "https://[::1]:8443/3/",
            "https://docs.python.org:8022/3/",
            "file:///etc/passwd",
        ),
    ):
        assert text in texts
    assert list(url_variants("no url", "canary")) == []


def test_a_fetch_is_tried_with_every_other_method() -> None:
    variants = fetch_variants(Witness("fetch", {"url": "https://a.org/", "method": "head"}), "canary")
    methods = [variant.call.arguments["method"] for variant in variants]
    assert sorted({*methods} - {"head"}) == ["DELETE", "GET", "OPTIONS", "PATCH", "POST", "PUT"]


def test_options_of_consequence_are_spelled_in_every_way_that_the_program_takes() -> None:
    assert [command for command in commands(option_variants(["sort", "a"], "canary")) if "o" in command.split()[1]] == [
        *("sort --files0-from ./canary a", "sort --files0-from=./canary a", "sort --files0-fro ./canary a"),
        *("sort -o ./canary a", "sort -o./canary a", "sort -bo ./canary a"),
        *("sort --output ./canary a", "sort --output=./canary a", "sort --outpu ./canary a"),
        *("sort --temporary-directory ./canary a", "sort --temporary-directory=./canary a"),
        "sort --temporary-director ./canary a",
        *(
            "sort --compress-program ./canary a",
            "sort --compress-program=./canary a",
            "sort --compress-progra ./canary a",
        ),
    ]


def test_options_stand_where_the_program_or_its_subcommand_takes_them() -> None:
    assert {"git -c core.pager=./canary log -1", "git --exec-path=./canary log -1", "git log --ext-diff -1"} <= set(
        commands(option_variants(["git", "log", "-1"], "canary"))
    )
    assert "find . -exec canary '{}' ';'" in commands(option_variants(["find", "."], "canary"))
    assert "tar xf a.tar --to-command=./canary" in commands(option_variants(["tar", "xf", "a.tar"], "canary"))
    assert "python -m pytest -p ./canary a" in commands(option_variants(["python", "-m", "pytest", "a"], "canary"))
    assert commands(option_variants(["no-profile-for-this", "a"], "canary")) == []


def test_options_that_a_pattern_need_not_name_are_known_with_their_place() -> None:
    assert (1, "--no-pager") in set(harmless_options(["git", "push"]))


def test_only_commands_that_are_known_word_by_word_are_changed(policy: MakePolicy) -> None:
    site = policy(NOTHING).site
    assert simple_commands(site, "git log $X | sort -u; cd a && ls b") == [("sort", "-u"), ("cd", "a")]
    assert simple_commands(site, "if") == []


def test_tested_arguments_are_changed_one_by_one(policy: MakePolicy) -> None:
    made = policy("rules: [{id: a, allow: a__b, args: {'labels[]': {enum: [bug]}}, only: true}]")
    call = Witness("a__b", {"labels": ["bug"]})
    found = [variant.call.arguments for variant in argument_variants(made.site, rule_of(made), call, "canary")]
    assert found == [
        *({"labels": ["bug"], "canary": 1}, {}),
        *(
            {"labels": [other]}
            for other in (["bug"], {"y": "bug"}, None, True, ["canary"], {}, 1, -1e308, 1e308, "bug ")
        ),
        {"labels": "bug"},
        *({"labels": [text]} for text in ("bug\ncanary", "bug\0", "bug\n", "canarybug", "bugcanary", "canary")),
    ]


def test_arguments_are_changed_by_what_their_test_reads_them_as(policy: MakePolicy) -> None:
    made = policy("""
rules:
  - id: a
    allow: a__b
    args: {file: {path: "src/**"}, url: {host: a.org}, run: {command: [[git, log]]}}
""")
    call = Witness("a__b", {"file": "src/a", "url": "https://a.org/", "run": "git log"})
    found = [variant.call.arguments for variant in argument_variants(made.site, rule_of(made), call, "canary")]
    assert {"../canary", "canary/../../canary", "canarysrc/a"} <= {str(each.get("file")) for each in found}
    assert {"https://canary.example/", "https://2130706433/"} <= {str(each.get("url")) for each in found}
    assert {"git log; canary", "git log $(canary)"} <= {str(each.get("run")) for each in found}


def test_a_forbidden_path_is_spelled_in_other_ways(policy: MakePolicy) -> None:
    made = policy("rules: [{id: a, deny: read, path: '**/.env'}]")
    call = Witness("read", {"path": "a/.env"})
    found = [variant.call.arguments["path"] for variant in deny_variants(made.site, rule_of(made), call)]
    assert found == ["A/.ENV", "A/.ENV", "a/.env", "./a/.env", "y/../a/.env", ".//a/.env", "a/./.env"]


def test_a_forbidden_command_is_spelled_in_other_ways(policy: MakePolicy) -> None:
    made = policy("rules: [{id: a, deny: bash, command: git push **, has: [--force, -f]}]")
    call = Witness("bash", {"command": "git push --force"})
    found = commands(deny_variants(made.site, rule_of(made), call))
    assert {
        *("/usr/bin/git push --force", "command git push --force", "GIT push --force", "timeout 5 git push --forc"),
        *("git --no-pager push --force", "bash -c 'git push --force'", "true && git push --force=y"),
    } <= set(found)


def test_a_forbidden_file_is_tried_where_allowed_commands_take_files(policy: MakePolicy) -> None:
    made = policy("rules: [{id: a, deny: read, path: '**/.env'}]")
    assert commands(forbidden_files(made.site, rule_of(made), [("cat", "a"), ("ls",)])) == [
        "cat a < .env",
        *("cat .env", "cat ./.env", 'cat "$PWD"/.env', "cat y/../.env"),
        *("cat a .env", "cat a ./.env", 'cat a "$PWD"/.env', "cat a y/../.env"),
        "ls < .env",
    ]


def test_a_rule_for_writing_is_tried_where_commands_write(policy: MakePolicy) -> None:
    made = policy("rules: [{id: a, deny: write, path: b}]")
    assert commands(forbidden_files(made.site, rule_of(made), [("cat", "a"), ("touch", "a")])) == [
        *("cat a > b", "cat a >> b", "touch a > b", "touch a >> b"),
        *("touch b", "touch ./b", 'touch "$PWD"/b', "touch y/../b"),
        *("touch a b", "touch a ./b", 'touch a "$PWD"/b', "touch a y/../b"),
    ]
