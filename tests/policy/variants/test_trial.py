"""Variants are denied by the engine as it is, and found out by an engine that has a hole."""

from collections.abc import Callable
from typing import Any

import pytest

from ci_agent.policy.effects import Effects
from ci_agent.policy.programs.interpret import interpret
from ci_agent.policy.shell.analysis import analyse
from ci_agent.policy.shell.program import ShellProgram
from ci_agent.policy.variants import VariantResult

Try = Callable[..., list[VariantResult]]

GIT = 'rules: [{id: look, allow: bash, command: "git {log,diff} **"}]\n'


def failing(results: list[VariantResult]) -> dict[str, list[str]]:
    """Texts of the variants that are allowed and should not be, by trick."""
    found: dict[str, list[str]] = {}
    for result in results:
        if result.outcome == "allowed":
            found.setdefault(result.trick, []).append(" ".join(map(str, result.call.arguments.values())))
    return found


def granted(results: list[VariantResult]) -> set[tuple[str, str | None]]:
    """Tricks that are allowed on purpose, each with the rule that says so."""
    return {(result.trick, result.granted_by) for result in results if result.outcome == "granted"}


def weak(change: Callable[[ShellProgram], ShellProgram]) -> Any:
    """A reader of bash that overlooks something."""
    return lambda *arguments: change(analyse(*arguments))


RULES = """
rules:
  - {id: look, allow: bash, command: ["git {log,diff} **", "cat **", "sort **", "find **", "sed -n *p **"]}
  - {id: edit, allow: [write, edit, read], path: "src/**"}
  - {id: docs, allow: fetch, host: [docs.python.org, "*.example.org"]}
  - {id: curl, allow: bash, command: curl **, host: docs.python.org}
  - id: issue
    allow: github__create_issue
    args: {repo: {enum: [acme/site]}, "labels[]": {regex: "[a-z]+"}}
    only: true
  - {id: no-secrets, deny: [read, write], path: ["**/.env", "**/id_{rsa,dsa}"]}
  - {id: no-force, deny: bash, command: git push **, has: [--force, -f]}
  - {id: no-drop, deny: db__query, args: {sql: {regex: "(?i)drop .*"}}}
  - {id: no-evil, deny: fetch, host: [evil.example, 127.0.0.1]}
  - {id: query, allow: db__query}
tests:
  - allow: {bash: "git log --oneline | sort"}
  - allow: {bash: "cat README.md"}
  - allow: {bash: "curl https://docs.python.org/3/"}
  - allow: {github__create_issue: {repo: acme/site, labels: [bug]}}
  - deny: {db__query: {sql: drop it}}
"""


def test_the_engine_denies_every_variant_that_no_rule_grants_in_plain_words(variants: Try) -> None:
    results = variants(RULES)
    assert failing(results) == {}
    assert {result.trick for result in results} == {
        *("another command", "redirection", "environment", "hazard option", "path", "look-alike path"),
        *("hidden character", "URL", "argument", "other spelling"),
    }
    assert {result.base.rule.id for result in results} == {
        *("look", "edit", "docs", "curl", "issue", "no-secrets", "no-force", "no-drop", "no-evil"),
    }
    assert len(results) > 1_000


def test_a_call_is_tried_once(variants: Try) -> None:
    calls = [(result.call.tool, str(result.call.arguments)) for result in variants(RULES)]
    assert len(calls) == len(set(calls))


def test_of_the_lines_of_one_rule_a_few_stand_for_all(variants: Try) -> None:
    tests = "".join(f"  - allow: {{bash: git log -{number}}}\n" for number in range(30))
    results = variants(f"{GIT}tests:\n{tests}")
    lines = {result.base.call.arguments["command"] for result in results if result.trick == "another command"}
    assert lines == {f"git log -{number}" for number in range(6)}


# An engine with a hole


def test_a_reader_that_sees_one_command_alone_is_found_out(variants: Try) -> None:
    found = failing(variants(GIT, analyse=weak(lambda program: ShellProgram(program.commands[:1]))))
    assert {"git log; ci-agent-canary", "git log | ci-agent-canary", "git log && ci-agent-canary"} <= set(
        found["another command"]
    )


def test_a_reader_that_overlooks_redirections_is_found_out(variants: Try) -> None:
    def without_files(program: ShellProgram) -> ShellProgram:
        return ShellProgram(tuple(command._replace(redirects=()) for command in program.commands))

    found = failing(variants(GIT, analyse=weak(without_files)))
    assert {
        "git log > ci-agent-canary",
        "git log >> ../ci-agent-canary",
        "git log > .git/hooks/ci-agent-canary",
    } <= set(found["redirection"])
    assert "git log < ../ci-agent-canary" in found["path"]


def test_a_reader_that_overlooks_variables_is_found_out(variants: Try) -> None:
    def without_variables(program: ShellProgram) -> ShellProgram:
        return ShellProgram(tuple(command._replace(assignments=()) for command in program.commands))

    found = failing(variants(GIT, analyse=weak(without_variables)))
    assert {"LD_PRELOAD=./ci-agent-canary.so git log", "GIT_SSH_COMMAND=./ci-agent-canary git log"} <= set(
        found["environment"]
    )


def test_profiles_without_hazards_are_found_out(variants: Try) -> None:
    def harmless(words: Any, *, input_names: Any = None) -> Effects:
        return interpret(words, input_names=input_names)._replace(hazards=())

    found = failing(variants(GIT, interpret=harmless))
    assert {
        *(
            "git log --output ./ci-agent-canary",
            "git log --output=./ci-agent-canary",
            "git log --outpu ./ci-agent-canary",
        ),
        *("git log --ext-diff", "git log --ci-agent-canary"),
    } <= set(found["hazard option"])


def test_profiles_that_overlook_files_are_found_out(variants: Try) -> None:
    def blind(words: Any, *, input_names: Any = None) -> Effects:
        effects = interpret(words, input_names=input_names)
        seen = tuple(use for use in effects.files if not use.path.text.startswith(("/", "ci-agent-canary/")))
        return effects._replace(files=seen)

    found = failing(variants("rules: [{id: look, allow: bash, command: cat **}]", interpret=blind))
    assert {
        *("cat ci-agent-canary/../../ci-agent-canary", "cat /ci-agent-canary/y", "cat ~/ci-agent-canary"),
        *('cat "$HOME"/ci-agent-canary', "cat /proc/self/environ"),
    } <= set(found["path"])


# What a rule says in plain words


@pytest.mark.parametrize(
    ("rules", "trick", "rule_id"),
    [
        ("[{id: any, allow: bash, command: ['**']}]", "another command", "any"),
        ("[{id: git, allow: bash, command: git log}, {id: all, allow: write}]", "redirection", "all"),
        ("[{id: git, allow: bash, command: git log, env: [LD_PRELOAD]}]", "environment", "git"),
        ("[{id: git, allow: bash, command: [git log, 'git log --output=*']}]", "hazard option", "git"),
        ("[{id: cat, allow: bash, command: cat **, paths: /**}]", "path", "cat"),
        ("[{id: cat, allow: bash, command: cat *, paths: ['~/**', '**']}]", "path", "cat"),
        ("[{id: look, allow: read, path: /**}]", "path", "look"),
        ("[{id: look, allow: read, path: 's*/**'}]", "look-alike path", "look"),
        ("[{id: docs, allow: fetch, host: '**'}]", "URL", "docs"),
        ("[{id: docs, allow: fetch, host: a.org, scheme: [https, http]}]", "URL", "docs"),
        ("[{id: docs, allow: fetch, host: a.org, port: [443, 8022]}]", "URL", "docs"),
        ("[{id: docs, allow: fetch, host: a.org, method: [GET, POST]}]", "URL", "docs"),
        ("[{id: docs, allow: fetch, host: [a.org, 127.0.0.0/8]}]", "URL", "docs"),
        ("[{id: ask, allow: a__ask, args: {text: {type: string}}}]", "argument", "ask"),
    ],
)
def test_what_a_rule_grants_in_plain_words_is_no_failure(variants: Try, rules: str, trick: str, rule_id: str) -> None:
    results = variants(f"rules: {rules}")
    assert failing(results) == {}
    assert (trick, rule_id) in granted(results)


def test_another_rule_that_grants_the_same_without_a_trick_is_named(variants: Try) -> None:
    rules = "rules: [{id: a, allow: bash, command: git log}, {id: b, allow: bash, command: '*'}]"
    results = variants(rules)
    assert failing(results) == {}
    assert {result.granted_by for result in results if result.trick == "another command" and result.granted_by} == {"b"}


def test_no_name_that_a_rule_mentions_is_a_canary(variants: Try) -> None:
    results = variants("rules: [{id: a, allow: bash, command: [git log, ci-agent-canary]}]")
    assert failing(results) == {}
    assert "git log; ci-agent-canary-2" in {
        result.call.arguments["command"]
        for result in results
        if result.base.call.arguments["command"] == "git log" and isinstance(result.call.arguments["command"], str)
    }


# Where variants come from


def test_variants_say_which_call_they_are_made_from_and_where_it_stands(variants: Try) -> None:
    text = """
rules:
  - {id: a, allow: read, path: a/**}
  - {id: b, allow: read, path: b/**, examples: {match: b/x}}
  - {id: c, allow: read, path: c/**}
tests:
  - allow: {read: a/x}
"""
    bases = {(result.base.source, result.base.rule.id, result.base.call.arguments["path"]) for result in variants(text)}
    assert bases == {("<text>:8", "a", "a/x"), ("<text>:5", "b", "b/x"), ("<text>:6", "c", "c/x")}


@pytest.mark.parametrize(
    "text",
    [
        "rules: [{id: a, allow: read, path: a/**}, {id: b, deny: read}]",
        "rules: [{id: a, deny: bash, command: git push}]\ntests: [{allow: {bash: git push}}]",
        "extends: review",
        "extends: deny-all",
    ],
)
def test_calls_that_are_not_allowed_yield_no_variants(variants: Try, text: str) -> None:
    assert [result for result in variants(text) if result.base.rule.effect == "allow"] == []


def test_what_comes_behind_a_comment_or_a_here_document_is_not_taken_for_a_command(variants: Try) -> None:
    text = """
rules: [{id: cat, allow: bash, command: cat}]
tests:
  - allow: {bash: "cat # done"}
  - allow: {bash: "cat <<'E'\\nhello\\nE"}
"""
    results = variants(text)
    assert failing(results) == {}
    assert {"ci-agent-canary; cat # done", "ci-agent-canary; cat <<'E'\nhello\nE"} <= {
        result.call.arguments["command"] for result in results if result.trick == "another command"
    }


# A policy with a hole of its own


def test_a_deny_rule_that_one_case_escapes_is_found_out(variants: Try) -> None:
    text = """
rules:
  - {id: all, allow: db__query}
  - {id: no-drop, deny: db__query, args: {sql: {regex: "DROP .*"}}}
tests:
  - deny: {db__query: {sql: DROP TABLE users}}
"""
    results = variants(text)
    assert failing(results) == {"other spelling": ["drop table users", "drop table USERS"]}
    problems = [result.problem for result in results if result.outcome == "allowed"]
    assert problems[0] == (
        'expected deny, got allow by all: db__query: {"sql": "drop table users"}; '
        'made from db__query: {"sql": "DROP TABLE users"}, which no-drop forbids'
    )
    assert failing(variants(text.replace("DROP .*", "(?i)DROP .*"))) == {}


def test_a_result_that_is_as_it_should_be_has_no_problem(variants: Try) -> None:
    assert {result.problem for result in variants(GIT)} == {None}
