"""From denied calls to rules: narrow, with evidence, readable by the loader, and never for what is forbidden."""

from collections.abc import Callable
from typing import Any

import pytest

from ci_agent.policy.checks.recorded import RecordedAnswer, RecordedCall
from ci_agent.policy.decide import Policy
from ci_agent.policy.suggest import Suggestions, suggest_rules

Suggest = Callable[..., Suggestions]
MakePolicy = Callable[[str], Policy]


def texts(found: Suggestions) -> list[str]:
    """The suggested rules without their ids."""
    return ["\n".join(line for line in each.yaml.splitlines() if " id: " not in line) for each in found.suggestions]


def refused(found: Suggestions) -> list[tuple[int, str, str]]:
    return [(each.call.seq, each.code, each.why) for each in found.not_suggested]


# The narrowest rule for each kind of call


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ({"bash": "npm ci"}, 'allow: bash\n    command: "npm ci"'),
        ({"bash": "git log --format='%h %s'"}, 'allow: bash\n    command: [[git, log, "--format=%h %s"]]'),
        (
            {"bash": "grep -n '*.{a,b}' src/a.py"},
            'allow: bash\n    command: "grep -n \\\\*.\\\\{a\\\\,b\\\\} src/a.py"',
        ),
        ({"bash": "CI=1 npm test"}, 'allow: bash\n    command: "npm test"\n    env: CI'),
        ({"bash": "cat /etc/hostname"}, 'allow: bash\n    command: "cat /etc/hostname"\n    paths: "/etc/hostname"'),
        ({"bash": "python3 -m pytest -q"}, 'allow: bash\n    command: "python3 -m pytest -q"'),
        ({"bash": "timeout 5 npm test"}, 'allow: bash\n    command: "npm test"'),
        ({"bash": "git status > out.txt"}, 'allow: write\n    path: "out.txt"'),
        ({"bash": "curl https://a.org/x"}, 'allow: bash\n    command: "curl https://a.org/x"\n    host: "a.org"'),
        ({"bash": "for i in a b; do rm $i; done"}, 'allow: bash\n    command: "rm {a,b}"'),
        ({"read": "src/a.py"}, 'allow: read\n    path: "src/a.py"'),
        ({"read": "src/../b"}, "allow: read\n    path: b"),
        ({"read": "a[1]?.txt"}, 'allow: read\n    path: "a\\\\[1\\\\]\\\\?.txt"'),
        ({"read": "./~x"}, 'allow: read\n    path: "./~x"'),
        ({"read": "/etc/hostname"}, 'allow: read\n    path: "/etc/hostname"'),
        ({"ls": "src"}, "allow: ls\n    path: src"),
        ({"ls": {}}, 'allow: ls\n    path: "*"'),
        ({"grep": "src"}, 'allow: grep\n    path: "src/*"'),
        ({"grep": "src/a.py"}, 'allow: grep\n    path: "src/a.py"'),
        ({"fetch": "https://a.org/x"}, 'allow: fetch\n    host: "a.org"'),
        (
            {"fetch": {"url": "http://a.org:8080/", "method": "HEAD"}},
            'allow: fetch\n    host: "a.org"\n    scheme: http\n    port: 8080\n    method: HEAD',
        ),
        ({"a__b": {}}, "allow: a__b\n    only: true"),
        ({"a___b": {}}, "allow: a___b\n    only: true"),
        ({"a__b": {"repo": "acme/site"}}, 'allow: a__b\n    args:\n      repo: {const: "acme/site"}\n    only: true'),
        ({"a__b": {"on": True}}, 'allow: a__b\n    args:\n      "on": {const: true}\n    only: true'),
        ({"a__b": {"x.y": [1]}}, 'allow: a__b\n    args:\n      "x\\\\.y": {const: [1]}\n    only: true'),
        ({"a__b": {"text": "word " * 40}}, "allow: a__b\n    args:\n      text: {type: string}\n    only: true"),
    ],
)
def test_a_denied_call_needs_this_rule(suggest: Suggest, call: dict[str, Any], rule: str) -> None:
    found = suggest(call)
    assert refused(found) == []
    assert texts(found) == ["    " + rule]


def test_every_command_of_a_line_gets_its_own_rule(suggest: Suggest) -> None:
    found = suggest({"bash": "npm ci && make test | tail -5 > out.txt"})
    assert texts(found) == [
        '    allow: bash\n    command: "npm ci"',
        '    allow: bash\n    command: "make test"',
        '    allow: bash\n    command: "tail -5"',
        '    allow: write\n    path: "out.txt"',
    ]


def test_what_the_policy_grants_already_is_not_suggested_again(suggest: Suggest) -> None:
    assert texts(suggest({"bash": "git status | head -1"})) == ['    allow: bash\n    command: "head -1"']


def test_a_command_inside_another_one_is_granted_by_the_one_that_spells_it(suggest: Suggest) -> None:
    assert texts(suggest({"bash": "bash -c 'npm test'"})) == [
        '    allow: bash\n    command: [[bash, "-c", "npm test"]]'
    ]


# Several calls


def test_calls_that_differ_in_one_word_become_one_pattern(suggest: Suggest) -> None:
    found = suggest({"bash": "npm run build"}, {"bash": "npm run lint"}, {"bash": "npm ci"}, {"bash": "npm run build"})
    assert texts(found) == ['    allow: bash\n    command: ["npm run {build,lint}", "npm ci"]']
    assert [call.seq for call in found.suggestions[0].calls] == [1, 2, 3, 4]


def test_calls_that_differ_in_two_words_never_become_a_pattern_that_allows_more(suggest: Suggest) -> None:
    found = suggest({"bash": "make a -j1"}, {"bash": "make b -j2"}, {"bash": "make a -j2"})
    (rule,) = [suggestion.rule for suggestion in found.suggestions]
    assert rule.command == (("make", "a", "{-j1,-j2}"), ("make", "b", "-j2"))


def test_words_with_braces_and_commas_stay_what_they_are(suggest: Suggest) -> None:
    found = suggest({"bash": "echo 'a,b'"}, {"bash": "echo '{c}'"}, {"bash": "echo '*'"})
    assert [suggestion.rule.command for suggestion in found.suggestions] == [(("echo", r"{a\,b,\{c\},\*}"),)]


def test_files_in_one_folder_become_one_glob_and_tools_share_it(suggest: Suggest) -> None:
    found = suggest(
        {"read": "src/a.py"}, {"read": "src/b.py"}, {"edit": "src/b.py"}, {"edit": "src/a.py"}, {"read": "docs/x"}
    )
    assert texts(found) == [
        '    allow: [read, edit]\n    path: "src/{a.py,b.py}"',
        '    allow: read\n    path: "docs/x"',
    ]


def test_hosts_that_are_asked_in_the_same_way_stand_in_one_rule(suggest: Suggest) -> None:
    found = suggest({"fetch": "https://a.org/"}, {"fetch": "https://b.org/x"}, {"fetch": "http://c.org/"})
    assert texts(found) == [
        '    allow: fetch\n    host: ["a.org", "b.org"]',
        '    allow: fetch\n    host: "c.org"\n    scheme: http',
    ]


def test_calls_of_a_tool_that_differ_in_one_argument_become_one_rule(suggest: Suggest) -> None:
    found = suggest(
        *({"a__b": {"repo": repo, "max": 1}} for repo in ("u", "v", "w")),
        *({"a__b": {"repo": "u", "max": 2}}, {"a__c": {}}),
    )
    assert texts(found) == [
        "    allow: a__b\n    args:\n      max: {const: 1}\n      repo: {enum: [u, v, w]}\n    only: true",
        "    allow: a__b\n    args:\n      max: {const: 2}\n      repo: {const: u}\n    only: true",
        "    allow: a__c\n    only: true",
    ]


def test_ids_say_what_they_are_about_and_are_free(suggest: Suggest) -> None:
    base = "policy: 1\nrules:\n  - {id: suggested-npm, allow: ls, path: never}\n"
    found = suggest({"bash": "npm ci"}, {"bash": "./run.sh"}, {"bash": "CI=1 npm ci"}, {"read": "a"}, base=base)
    assert [suggestion.rule.id for suggestion in found.suggestions] == [
        *("suggested-npm-2", "suggested-run.sh", "suggested-npm-3", "suggested-read"),
    ]


# What is never suggested


@pytest.mark.parametrize(
    ("call", "code", "why"),
    [
        ({"read": ".env"}, "rule", "no-env"),
        ({"bash": "git push origin main"}, "rule", "no-push"),
        ({"bash": "npm ci && git push"}, "rule", "no-push"),
        ({"bash": "cat .env"}, "rule", "no-env"),
        ({"bash": "echo $(("}, "unparsable", ""),
        ({"bash": "$X status"}, "unparsable", ""),
        ({"bash": "git diff --output=x"}, "default", "`--output=x` writes a file"),
        ({"bash": "find . -delete"}, "default", "`-delete` deletes files"),
        ({"bash": "python -c 'print(1)'"}, "default", "-c"),
        ({"bash": "LD_PRELOAD=./x.so npm ci"}, "default", "LD_PRELOAD changes what runs"),
        ({"bash": "find . | xargs wc -l"}, "default", "known only when it runs"),
        ({"bash": 'echo "$X"'}, "default", "known only when it runs"),
        ({"bash": "cd /etc && ls"}, "default", "outside the workspace"),
        ({"bash": "curl http://127.0.0.1/"}, "default", "private or local"),
        ({"bash": "git status > .git/hooks/x"}, "default", "protected"),
        ({"write": ".git/hooks/pre-commit"}, "default", "protected"),
        ({"write": ".github/workflows/ci.yml"}, "default", "protected"),
        ({"read": "/proc/self/environ"}, "default", "out of reach"),
        ({"read": "a\u202eb"}, "unparsable", ""),
        ({"fetch": "http://169.254.169.254/"}, "default", "private or local"),
        ({"fetch": "https://u@a.org/"}, "unparsable", ""),
        ({"a__b": {"x[0]": 1}}, "default", "no rule can name"),
        ({"a__b": {"x": "\u200b"}}, "default", "no rule can be written"),
    ],
)
def test_this_is_for_a_person_to_decide(suggest: Suggest, call: dict[str, Any], code: str, why: str) -> None:
    found = suggest(call)
    ((_, got, said),) = refused(found)
    assert (got, found.suggestions) == (code, ())
    assert why in said


def test_a_call_with_one_part_for_a_person_gets_no_rule_for_its_other_parts(suggest: Suggest) -> None:
    found = suggest({"bash": "npm ci && find . -delete"}, {"bash": "make"})
    assert texts(found) == ["    allow: bash\n    command: make"]
    assert [each.call.seq for each in found.not_suggested] == [1]


def test_what_a_rule_counts_is_not_lifted(policy: MakePolicy) -> None:
    counting = policy("policy: 1\nrules: [{id: once, allow: ls, max_calls: 1}]")
    answer = RecordedAnswer("deny", "limit", "once", "no calls are left")
    found = suggest_rules({"t.json": counting}, [RecordedCall("t.json", 2, "ls", {}, answer)], {})
    assert (refused(found), found.suggestions) == ([(2, "limit", "no calls are left")], ())


def test_calls_that_are_allowed_by_now_or_were_allowed_then_need_nothing(policy: MakePolicy) -> None:
    allowed = RecordedAnswer("allow", "rule", "x", "Allowed.")
    denied = RecordedAnswer("deny", "default", None, "No.")
    calls = [RecordedCall("t.json", 1, "read", {"path": "a"}, denied), RecordedCall("t.json", 2, "ls", {}, allowed)]
    found = suggest_rules({"t.json": policy("policy: 1\nrules: [{id: look, allow: read}]")}, calls, {})
    assert (found.suggestions, found.not_suggested, [call.seq for call in found.already_allowed]) == ((), (), [1])


# What comes with a rule


def also(found: Suggestions) -> list[Any]:
    return [next(iter(call.arguments.values())) for each in found.suggestions for call in each.also_allows]


@pytest.mark.parametrize(
    ("call", "others"),
    [
        ({"bash": "npm ci"}, ["git status | npm ci", "timeout 600 npm ci"]),
        ({"bash": "npm ci > /dev/null"}, ["npm ci", "git status | npm ci", "timeout 600 npm ci"]),
        ({"write": "out.txt"}, ["git status > out.txt"]),
        ({"read": "/etc/hostname"}, ["{ git status; } < /etc/hostname"]),
        ({"read": "src/a.py"}, []),
        ({"fetch": "https://a.org/x"}, ["https://a.org/?q=what-was-read"]),
        ({"a__b": {"text": "word " * 40}}, ["any other text"]),
        ({"a__b": {"text": "word"}}, []),
    ],
)
def test_other_calls_that_a_rule_would_allow_are_shown(
    suggest: Suggest, call: dict[str, Any], others: list[str]
) -> None:
    assert also(suggest(call)) == others


def test_what_is_shown_is_denied_without_the_rule_and_allowed_with_it(suggest: Suggest, policy: MakePolicy) -> None:
    found = suggest({"bash": "npm ci"}, {"write": "a"}, {"fetch": "https://a.org/"}, {"grep": "src"})
    base = "policy: 1\nrules:\n  - {id: git, allow: bash, command: git status}\n"
    for suggestion in found.suggestions:
        assert suggestion.also_allows
        for call in suggestion.also_allows:
            assert policy(base).decide(call.tool, call.arguments).effect == "deny"
            assert policy(base + suggestion.yaml).decide(call.tool, call.arguments).effect == "allow"


def test_lint_says_what_it_thinks_of_a_rule_together_with_the_others(suggest: Suggest) -> None:
    found = suggest({"bash": "npm test"}, {"write": "package.json"})
    findings = [(each.rule.id, [finding.code for finding in each.findings]) for each in found.suggestions]
    assert findings == [("suggested-npm", ["edits-what-runs"]), ("suggested-write", ["edits-what-runs"])]


# A shipped policy in place of many rules


LOOKS = ({"read": "src/a.py"}, {"grep": "src"}, {"ls": "."}, {"find": "."})


def test_the_smallest_shipped_policy_that_allows_the_most_is_offered(suggest: Suggest) -> None:
    found = suggest(*LOOKS, {"bash": "npm ci"})
    assert found.extension is not None
    assert found.extension.policy == "read-only"
    assert [call.seq for call in found.extension.calls] == [1, 2, 3, 4]
    assert {call.seq for each in found.suggestions for call in each.calls} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("calls", [LOOKS[:2], ({"bash": "npm ci"}, {"bash": "npm run x"}, {"bash": "npm run y"})])
def test_none_is_offered_that_allows_few_of_the_calls(suggest: Suggest, calls: tuple[dict[str, Any], ...]) -> None:
    assert suggest(*calls).extension is None


def test_none_is_offered_that_is_extended_already(suggest: Suggest) -> None:
    base = "policy: 1\nextends: [read-only]\nrules:\n  - {id: git, allow: bash, command: git status}\n"
    edits = [{"edit": f"src/{name}.py"} for name in "abc"]
    found = suggest(*edits, base=base)
    assert found.extension is not None
    assert found.extension.policy == "edit-source"
    assert suggest(*[{"bash": f"make {name}"} for name in "abc"], base=base).extension is None


def test_none_is_offered_that_forbids_what_the_run_was_allowed(policy: MakePolicy) -> None:
    base = policy("policy: 1\nrules:\n  - {id: env, allow: read, path: .env}\n")
    denied = RecordedAnswer("deny", "default", None, "No.")
    calls = [RecordedCall("t", seq, "read", {"path": f"src/{seq}"}, denied) for seq in range(3)]
    used = RecordedCall("t", 9, "read", {"path": ".env"}, RecordedAnswer("allow", "rule", "env", "Yes."))
    schemas = {"read": {"type": "object"}}
    assert suggest_rules({"t": base}, calls, schemas).extension is not None
    assert suggest_rules({"t": base}, [*calls, used], schemas).extension is None
