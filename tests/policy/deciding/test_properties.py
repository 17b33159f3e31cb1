"""What holds for every policy and every call."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_agent.hooks import Decision
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.rules import PolicySource, Rule
from ci_agent.workspace import Workspace, open_workspace

GLOBS = ["**", "src/**", "**/.env", "*.txt", "/etc/**", ".git/**", "src/{a,b}/*"]
TOKENS = ["git", "cat", "rm", "log", "status", "*", "src/a", "-n", "--output=x", "{cat,ls}", "xargs", "wc"]
HOSTS = ["**", "a.test", "*.a.test", "127.0.0.0/8", "localhost"]
COMMANDS = [
    "git log --output=x",
    "git status && cat src/a",
    "cat .env | wc -l > out.txt",
    "rm -rf .git",
    "find . | xargs wc",
    "X=1 git log",
    "timeout 5 rm src/a",
    "cat $X",
    "ls 'x",
    "cd src && cat a",
    "bash -c 'cat src/a; rm x'",
    "curl https://b.a.test http://localhost",
]
PATHS = [
    "src/a",
    ".env",
    "/etc/passwd",
    "../x",
    ".git/config",
    "a.txt",
    "src/a/x",
    "",
    "~/x",
    "/proc/self/environ",
    ".",
]
URLS = ["https://a.test", "https://b.a.test/x", "http://localhost", "https://127.1", "https://u@a.test", "nonsense"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    root: Path = tmp_path_factory.mktemp("work")
    for name in ("src/a/x", ".env", ".git/config", "a.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text\n")
    return open_workspace(root)


def rules(effect: Literal["allow", "deny"]) -> st.SearchStrategy[Rule]:
    globs = st.none() | st.lists(st.sampled_from(GLOBS), min_size=1, max_size=2).map(tuple)
    base = {"id": st.uuids().map(str), "effect": st.just(effect), "source": st.just("p.yml:1")}
    files = st.lists(st.sampled_from(["read", "write", "edit", "grep", "ls"]), min_size=1, max_size=2).map(tuple)
    command = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=3).flatmap(
        lambda tokens: st.sampled_from([(tuple(tokens),), ((*tokens, "**"),), (("**",),)])
    )
    return st.one_of(
        st.builds(Rule, **base, tools=files, path=globs),
        st.builds(Rule, **base, tools=st.just(("bash",)), command=command, paths=globs),
        st.builds(
            Rule, **base, tools=st.just(("fetch",)), host=st.none() | st.sampled_from(HOSTS).map(lambda host: (host,))
        ),
        st.builds(
            Rule,
            **base,
            tools=st.just(("srv__*",)),
            args=st.sampled_from(
                [None, {"a": {"enum": ["x"]}}, {"p": {"path": ["src/**"]}}, {"c": {"command": ["cat **"]}}]
            ),
        ),
    )


POLICIES = st.lists(st.one_of(rules("allow"), rules("allow"), rules("deny")), max_size=6)

CALLS: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(st.just("bash"), st.fixed_dictionaries({"command": st.sampled_from(COMMANDS)})),
    st.tuples(
        st.sampled_from(["read", "write", "edit", "grep", "ls", "find"]),
        st.fixed_dictionaries({"path": st.sampled_from(PATHS)}),
    ),
    st.tuples(st.just("fetch"), st.fixed_dictionaries({"url": st.sampled_from(URLS)})),
    st.tuples(
        st.sampled_from(["srv__x", "srv___x", "other__x"]),
        st.fixed_dictionaries(
            {},
            optional={"a": st.sampled_from(["x", "y", 1]), "p": st.sampled_from(PATHS), "c": st.sampled_from(COMMANDS)},
        ),
    ),
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def compiled(workspace: Workspace, rules: list[Rule]) -> Policy:
    return compile_policy(PolicySource("p", "0", None, tuple(rules)), workspace)


def decided(workspace: Workspace, rules: list[Rule], call: tuple[str, dict[str, Any]]) -> Decision:
    decision = compiled(workspace, rules).decide(*call)
    assert decision.code != "engine_error", decision
    return decision


@relaxed
@given(POLICIES, CALLS, st.randoms())
def test_the_order_of_rules_never_matters(workspace: Workspace, rules: list[Rule], call: Any, random: Any) -> None:
    shuffled = rules.copy()
    random.shuffle(shuffled)
    first, second = (decided(workspace, each, call) for each in (rules, shuffled))
    assert replace(first, nearest=None, reason="") == replace(second, nearest=None, reason="")


@relaxed
@given(POLICIES, rules("deny"), CALLS)
def test_one_more_deny_never_allows_more(workspace: Workspace, rules: list[Rule], extra: Rule, call: Any) -> None:
    if decided(workspace, rules, call).effect == "deny":
        assert decided(workspace, [*rules, extra], call).effect == "deny"


@relaxed
@given(POLICIES, rules("allow"), CALLS)
def test_one_more_allow_never_denies_more(workspace: Workspace, rules: list[Rule], extra: Rule, call: Any) -> None:
    if decided(workspace, rules, call).effect == "allow":
        assert decided(workspace, [*rules, extra], call).effect == "allow"


FILLERS = [
    rule
    for at in range(20)
    for rule in (
        Rule(
            f"f{at}a",
            "allow",
            ("bash",),
            "p:1",
            command=((f"zz{at}", "**"), (f"zz{at}*", "x"), ("git", f"zz{at}", "**")),
        ),
        Rule(
            f"f{at}b",
            "deny",
            ("read", "write"),
            "p:1",
            path=(f"**/zz{at}*", f"zz{at}/**", f"**/*.zz{at}", f"src/zz{at}"),
        ),
        Rule(f"f{at}c", "allow", ("read", "write", "ls"), "p:1", path=(f"**/zz{at}*", f"zz{at}/**", f"src/*.zz{at}")),
        Rule(f"f{at}d", "allow", ("fetch",), "p:1", host=(f"zz{at}.test", f"*.zz{at}.test")),
        Rule(f"f{at}e", "deny", ("fetch",), "p:1", host=(f"zz{at}.test", f"*.zz{at}.test")),
        Rule(f"f{at}f", "allow", ("srv__*",), "p:1", args={"a": {"enum": [f"zz{at}"]}}),
        Rule(f"f{at}g", "deny", ("bash",), "p:1", command=((f"zz{at}", "**"), ("git", f"zz{at}", "**"))),
        Rule(f"f{at}h", "allow", (f"zz{at}__*", f"zz{at}"), "p:1"),
    )
]
"""Rules about nothing that the calls do, enough of them to be arranged for look-ups."""


@relaxed
@given(POLICIES, CALLS)
def test_rules_about_something_else_never_matter(workspace: Workspace, rules: list[Rule], call: Any) -> None:
    alone, among_others = (decided(workspace, each, call) for each in ([*rules, *FILLERS[:8]], [*rules, *FILLERS]))
    assert replace(
        alone, nearest=None, reason="", instead=None, code="rule", fact=None, span=None, argument=None
    ) == replace(among_others, nearest=None, reason="", instead=None, code="rule", fact=None, span=None, argument=None)


@relaxed
@given(
    st.sampled_from(["bash", "read", "write", "edit", "grep", "find", "ls", "fetch", "srv__x", "", "x\0"]),
    st.dictionaries(st.sampled_from(["command", "path", "url", "method", "a", "p", "c"]), JSON, max_size=4),
)
def test_deciding_never_raises_and_never_fails(workspace: Workspace, tool: str, arguments: dict[str, Any]) -> None:
    everything = [
        Rule("files", "allow", ("read", "write", "edit", "grep", "find", "ls"), "p:1"),
        Rule("bash", "allow", ("bash",), "p:2", command=(("**",),)),
        Rule("fetch", "allow", ("fetch",), "p:3"),
        Rule(
            "srv", "allow", ("srv__*",), "p:4", args={"p": {"path": ["**"]}, "c": {"command": ["**"]}, "a": {"min": 1}}
        ),
        Rule("deny", "deny", ("srv__*", "read"), "p:5", args={"a": {"regex": "x", "host": ["a.test"]}}),
    ]
    decision = compiled(workspace, everything).decide(tool, arguments)
    assert decision.code != "engine_error", decision


@relaxed
@given(st.text(max_size=60), st.sampled_from(["", "cat ", "git log ", "ls; "]))
def test_any_text_can_be_decided(workspace: Workspace, text: str, lead: str) -> None:
    decision = compiled(workspace, [Rule("any", "allow", ("bash",), "p:1", command=(("**",),))]).decide(
        "bash", {"command": lead + text}
    )
    assert decision.code != "engine_error", decision
    assert decision.reason.isprintable()
