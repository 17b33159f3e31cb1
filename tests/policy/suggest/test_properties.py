"""Whatever was denied: what is suggested allows that as the loader reads it, and nothing else of the kind."""

import shlex
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_agent.policy.decide import Policy
from ci_agent.policy.suggest import Suggestions

Suggest = Callable[..., Suggestions]
MakePolicy = Callable[[str], Policy]

BASE = "policy: 1\nrules:\n  - {id: git, allow: bash, command: git status}\n"

WORDS = st.sampled_from(
    [
        *(
            "a",
            "b",
            "{a,b}",
            "a,b",
            "*",
            "**",
            "{",
            "}",
            "{}",
            "\\",
            "\\,",
            "x y",
            "'",
            '"',
            "#",
            "!",
            "~x",
            "%",
            "&a",
            "[a]",
        ),
        *("-v", "--x=1", "$Y", "é", "a:", ": ", "- ", "?", "yes", "0x10", "1_000", "null", "|", ">", "a\tb", "`", "@"),
    ]
)
COMMANDS = st.lists(st.sampled_from(["npm", "x{y}", "make"]).flatmap(lambda p: st.tuples(st.just(p), WORDS, WORDS)))
NAMES = WORDS.map(lambda word: word.replace("/", "")).filter(lambda name: name not in ("", ".", ".."))
PATHS = st.lists(st.tuples(st.sampled_from(["src", "{a,b}", "*"]), NAMES).map("/".join))
VALUES = st.lists(st.fixed_dictionaries({"x": WORDS, "y": st.sampled_from([1, 1.5, True, None, "1", [1], {"z": "w"}])}))

QUIET = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(suggest: Suggest, policy: MakePolicy, denied: list[Any], others: list[Any]) -> None:
    found = suggest(*denied, base=BASE)
    assert len({call.seq for each in found.suggestions for call in each.calls}) + len(found.not_suggested) == len(
        denied
    )
    pasted = policy("\n".join([BASE.rstrip(), *(each.yaml for each in found.suggestions)]))
    for other in others:
        ((tool, arguments),) = other.items()
        if other not in denied:
            assert pasted.decide(tool, arguments).effect == "deny", other


@QUIET
@given(COMMANDS, COMMANDS)
def test_commands(suggest: Suggest, policy: MakePolicy, denied: list[Any], others: list[Any]) -> None:
    as_calls = [[{"bash": {"command": shlex.join(words)}} for words in commands] for commands in (denied, others)]
    check(suggest, policy, *as_calls)


@QUIET
@given(PATHS, PATHS)
def test_paths(suggest: Suggest, policy: MakePolicy, denied: list[str], others: list[str]) -> None:
    check(suggest, policy, *([{"read": {"path": path}} for path in paths] for paths in (denied, others)))


@QUIET
@given(VALUES, VALUES)
def test_arguments(suggest: Suggest, policy: MakePolicy, denied: list[Any], others: list[Any]) -> None:
    check(suggest, policy, *([{"a__b": arguments} for arguments in values] for values in (denied, others)))
