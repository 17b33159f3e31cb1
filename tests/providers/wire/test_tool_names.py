"""Names of tools on the wire, and back."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent.cancellation import CancelToken
from ci_agent.json_types import JsonObject
from ci_agent.providers.wire.tool_names import ToolNames, wire_tool_names
from ci_agent.tool import OnUpdate, Tool, ToolResult

PATTERN = re.compile(r"[A-Za-z0-9_-]+")


def nothing(call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
    raise AssertionError((call_id, arguments, cancel, on_update))


def names(*originals: str, max_length: int = 64) -> ToolNames:
    return wire_tool_names([Tool(name, "", {"type": "object"}, nothing) for name in originals], PATTERN, max_length)


def test_names_that_the_api_takes_stay() -> None:
    assert names("read", "git-log", "1st").to_wire == {"read": "read", "git-log": "git-log", "1st": "1st"}


def test_other_names_are_rewritten_and_mapped_back() -> None:
    found = names("server.read", "größe")
    assert found.to_wire == {"server.read": "server_read", "größe": "gr__e"}
    assert found.from_wire == {"server_read": "server.read", "gr__e": "größe"}


def test_names_that_would_become_one_are_told_apart_whatever_their_order() -> None:
    found = names("a.b", "a b", "a_b")
    assert found.to_wire["a_b"] == "a_b"
    assert len(set(found.to_wire.values())) == 3
    assert names("a_b", "a b", "a.b").to_wire == found.to_wire


@pytest.mark.parametrize("name", ["never_offered", "never offered", "x" * 100, "", "\ud800", "{}"])
def test_a_name_that_nobody_offered_can_be_sent_too(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", names("read").wire(name))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(alphabet="ab._ ü", max_size=14), unique=True), st.sampled_from([10, 12, 64]))
def test_any_names_fit_and_come_back(originals: list[str], max_length: int) -> None:
    found = names(*originals, max_length=max_length)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", wire) and len(wire) <= max_length for wire in found.from_wire)
    assert [found.from_wire[found.wire(name)] for name in originals] == originals
