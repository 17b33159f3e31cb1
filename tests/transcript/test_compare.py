"""Which calls of two records are the same call."""

from ci_agent.json_types import JsonObject
from ci_agent.transcript.compare import Added, Change, Kept, Removed, compare_calls


def call(command: str, status: str = "ok") -> JsonObject:
    return {"tool": "bash", "arguments": {"command": command}, "status": status, "decision": None, "content": []}


def document(*calls: JsonObject) -> JsonObject:
    return {"tool_calls": list(calls)}


def test_calls_between_the_same_calls_are_added_or_removed() -> None:
    before = document(call("a"), call("b"), call("c"))
    after = document(call("a"), call("x"), call("c"), call("d"))
    same: frozenset[Change] = frozenset()
    assert compare_calls(before, after) == [
        Kept(call("a"), call("a"), same),
        Removed(call("b")),
        Added(call("x")),
        Kept(call("c"), call("c"), same),
        Added(call("d")),
    ]


def test_the_order_of_keys_in_arguments_does_not_matter() -> None:
    before = document(call("a") | {"arguments": {"x": 1, "y": 2}})
    after = document(call("a") | {"arguments": {"y": 2, "x": 1}})
    assert [type(each) for each in compare_calls(before, after)] == [Kept]


def test_a_call_that_comes_more_often_is_added() -> None:
    before, after = document(call("a")), document(call("a"), call("a", "error"))
    assert compare_calls(before, after) == [Kept(call("a"), call("a"), frozenset()), Added(call("a", "error"))]


def test_arguments_that_are_no_json_are_compared_as_text() -> None:
    broken = call("a") | {"arguments": None, "arguments_json": "{"}
    other = broken | {"arguments_json": "{{"}
    assert [type(each) for each in compare_calls(document(broken), document(broken))] == [Kept]
    assert [type(each) for each in compare_calls(document(broken), document(other))] == [Removed, Added]
