"""The guard before each call: the first denial counts, and what it does to the run."""

from ci_agent.hooks import BeforeToolCall, Decision, ProposedToolCall
from ci_agent.messages import ToolCall
from ci_agent.run_hooks.guard import Guard
from ci_agent.tool import Tool, ToolResult

ALLOW = Decision(effect="allow", code="rule", reason="allowed")


def proposed(name: str) -> ProposedToolCall:
    return ProposedToolCall(ToolCall("c", name, "{}"), Tool(name, "", {}, lambda *_: ToolResult(())), {})


def says(decision: Decision | None, asked: list[str], name: str = "") -> BeforeToolCall:
    def hook(_call: ProposedToolCall, /) -> Decision | None:
        asked.append(name)
        return decision

    return hook


def deny(on_denied: str = "record") -> Decision:
    return Decision(effect="deny", code="rule", reason="no", on_denied=on_denied)  # type: ignore[arg-type]  # closed set


def test_the_first_denial_counts_and_later_hooks_are_not_asked() -> None:
    asked: list[str] = []
    guard = Guard([says(None, asked, "a"), says(deny(), asked, "b"), says(ALLOW, asked, "c")], lambda _: None)
    assert (guard(proposed("ls")), asked) == (deny(), ["a", "b"])
    assert (guard.failed_by, guard.stopped_by) == (None, None)


def test_without_a_denial_the_last_hooks_word_is_kept() -> None:
    assert Guard([says(None, []), says(ALLOW, [])], lambda _: None)(proposed("ls")) == ALLOW


def test_a_denial_that_fails_the_run_lets_it_go_on() -> None:
    stops: list[str] = []
    guard = Guard([says(deny("fail"), [])], stops.append)
    guard(proposed("ls"))
    assert (guard.failed_by, guard.stopped_by, stops) == (deny("fail"), None, [])


def test_a_tripwire_stops_the_run_once() -> None:
    stops: list[str] = []
    guard = Guard([says(deny("stop"), [])], stops.append)
    guard(proposed("ls")), guard(proposed("ls"))
    assert (guard.failed_by, guard.stopped_by, stops) == (
        deny("stop"),
        "the run was stopped: no",
        ["the run was stopped: no"],
    )
