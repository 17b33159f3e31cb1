"""Whatever fails while deciding is a denial that says so."""

from pathlib import Path
from typing import Any, NoReturn

import pytest
from policy_calls import MakePolicy

from ci_agent.hooks import Decision
from ci_agent.policy import decide as decide_module
from ci_agent.policy.compiled import coverage, fitting, net
from ci_agent.policy.compiled.given_words import GivenWords
from ci_agent.policy.decide import compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.gathering import file_facts
from ci_agent.policy.judging import denials, grants, judge, judge_arguments
from ci_agent.policy.matchers import reach, regexes
from ci_agent.workspace import Workspace

RULES = """
    - {id: files, allow: [read, write, edit, grep, find, ls]}
    - {id: shell, allow: bash, command: "**"}
    - {id: requests, allow: fetch, host: a.test}
    - {id: servers, allow: "srv__*", args: {a: {regex: x}}}
    - {id: denied, deny: [read, write], path: secret/**}
    - {id: no-push, deny: bash, command: "git push **", has: "--force"}
    - {id: no-host, deny: fetch, host: evil.test}
"""

READ = ("read", {"path": "a"})
BASH = ("bash", {"command": "grep -r x . > out"})
FETCH = ("fetch", {"url": "https://a.test"})
SERVER = ("srv__x", {"a": "x"})


class PlantedError(Exception):
    pass


def fail(*args: object, **kwargs: object) -> NoReturn:
    raise PlantedError("secret detail")


@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [
        (reach.AnchoredGlob, "covers", READ),
        (reach.GlobIndex, "near", READ),
        (file_facts, "guard_read", READ),
        (file_facts, "guard_write", BASH),
        (denials.Denials, "of", READ),
        (denials, "walk", BASH),
        (judge, "tool_refusal", READ),
        (judge, "exec_refusal", BASH),
        (judge, "shell_facts", BASH),
        (judge, "tool_facts", SERVER),
        (fitting, "cover", BASH),
        (grants, "next_gap", BASH),
        (grants, "arguments_refusal", SERVER),
        (grants, "request_refusal", FETCH),
        (denials, "may_mean", ("bash", {"command": "git push --force"})),
        (GivenWords, "has", ("bash", {"command": "git push --force"})),
        (denials, "forbids_request", ("fetch", {"url": "https://evil.test"})),
        (net, "host_refusal", FETCH),
        (regexes.Regex, "matches", SERVER),
        (judge_arguments, "select", SERVER),
        (coverage, "_covers", ("bash", {"command": "sort -o out a"})),
        (decide_module, "decision_of", READ),
    ],
)
def test_an_exception_in_any_part_is_a_denial(
    policy: MakePolicy, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, call: tuple[str, dict[str, Any]]
) -> None:
    decided = policy(RULES, head="on_denied: fail\n")
    assert decided.decide("read", {"path": "a"}).effect == "allow"
    monkeypatch.setattr(owner, name, fail)
    assert decided.decide(*call) == Decision(
        "deny", "engine_error", "Blocked: the policy engine failed (PlantedError)", on_denied="fail"
    )


@pytest.mark.parametrize("seam", ["analyse", "interpret"])
@pytest.mark.parametrize("error", [PlantedError, RecursionError, MemoryError, KeyError])
def test_an_exception_in_a_reader_is_a_denial(workspace: Workspace, seam: str, error: type[Exception]) -> None:
    def broken(*args: object, **kwargs: object) -> NoReturn:
        raise error

    source = load_policy_source(text='policy: 1\nrules:\n- {id: any, allow: bash, command: "**"}\n')
    decided = compile_policy(source, workspace, **{seam: broken})  # type: ignore[arg-type]  # the seam is a parameter
    assert decided.decide("bash", {"command": "ls"}).code == "engine_error"


def test_questions_about_files_and_addresses_fail_closed(policy: MakePolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    decided = policy(RULES)
    path = decided.site.workspace.root / "a"
    url = "https://a.test"
    assert (decided.permits_path("read", "read", path), decided.permits_address(url, "8.8.8.8")) == (True, True)
    monkeypatch.setattr(decide_module, "guard_read", fail)
    monkeypatch.setattr(decide_module, "permits_address", fail)
    assert (decided.permits_path("read", "read", path), decided.permits_address(url, "8.8.8.8")) == (False, False)


def test_a_folder_that_cannot_be_read_is_no_failure(policy: MakePolicy, workspace: Workspace) -> None:
    locked: Path = workspace.root / "locked"
    locked.mkdir(mode=0o000)
    try:
        assert policy(RULES).decide("bash", {"command": "grep -r x ."}).effect == "allow"
    finally:
        locked.chmod(0o700)
