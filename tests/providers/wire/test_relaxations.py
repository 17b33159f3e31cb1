"""Lesser requests after a refusal."""

import re

import pytest

from ci_agent.json_types import JsonObject
from ci_agent.providers.wire.api import ApiRequest
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.relaxations import Relaxation, leave_out, relaxation, relaxed

REQUEST = ApiRequest("/x", {"a": {"b": 1}, "c": {"d": 1, "e": 2}, "f": 3})


def refused(message: str, status: int | None = 400) -> ApiError:
    return ApiError("request", message, retryable=False, status=status)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (("a", "b"), {"c": {"d": 1, "e": 2}, "f": 3}),
        (("c", "d"), {"a": {"b": 1}, "c": {"e": 2}, "f": 3}),
        (("c",), {"a": {"b": 1}, "f": 3}),
        (("f",), {"a": {"b": 1}, "c": {"d": 1, "e": 2}}),
        (("gone",), REQUEST.body),
        (("c", "gone"), REQUEST.body),
    ],
)
def test_a_field_is_left_out_and_what_is_empty_then(path: tuple[str, ...], body: JsonObject) -> None:
    assert leave_out(*path)(REQUEST).body == body
    assert REQUEST.body == {"a": {"b": 1}, "c": {"d": 1, "e": 2}, "f": 3}


def test_the_first_change_that_makes_a_difference_is_made() -> None:
    ladder = (
        relaxation("oops", leave_out("gone")),
        relaxation("OOPS", leave_out("f")),
        relaxation("oops", leave_out("a")),
    )
    lesser = relaxed(ladder, REQUEST, refused("Oops: no f"))
    assert lesser is not None
    assert lesser.body == {"a": {"b": 1}, "c": {"d": 1, "e": 2}}


@pytest.mark.parametrize("error", [refused("other"), refused("oops", 500), refused("oops", None), refused("oops", 401)])
def test_only_a_refusal_that_names_it_changes_a_request(error: ApiError) -> None:
    assert relaxed((Relaxation(re.compile("oops"), leave_out("f")),), REQUEST, error) is None
