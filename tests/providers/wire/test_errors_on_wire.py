"""What servers say went wrong, in every shape they say it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.json_types import Json
from ci_agent.providers.wire.errors_on_wire import MAX_MESSAGE, error_from_object, error_from_response
from ci_agent.providers.wire.failures import ApiError
from ci_agent.providers.wire.overflow import is_overflow

NOW = datetime(2026, 1, 1, tzinfo=UTC)

SHAPES: list[tuple[Json, tuple[str, str, bool, int | None]]] = [
    ({"error": {"message": "m", "code": "insufficient_quota"}}, ("quota", "insufficient_quota: m", False, 429)),
    ({"error": {"message": "m", "code": 502}}, ("server", ": m", True, 502)),
    ({"error": {"message": "m", "code": "tool_use_failed", "status_code": 400}}, ("bad_call", "m", True, 400)),
    ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, ("overloaded", "m", True, 529)),
    ([{"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}], ("overloaded", "m", True, 503)),
    ({"object": "error", "message": "m", "type": "t", "code": "3280"}, ("server", "m", True, None)),
    ({"detail": [{"msg": "a"}, {"msg": "b"}]}, ("server", "a; b", True, None)),
    ({"error": "INSUFFICIENT QUOTA"}, ("server", "INSUFFICIENT QUOTA", True, None)),
    ({"error": {"message": "m", "metadata": {"raw": "why"}}}, ("server", "m (why)", True, None)),
    ({"error": {"message": "m", "type": "None", "code": "429"}}, ("rate_limit", "stream: m", True, 429)),
    ({"error": {"message": "m", "type": "exceeded_current_quota_error"}}, ("quota", "m", False, 429)),
    ({"error": {"message": "m", "code": "invalid", "param": "store"}}, ("server", "invalid: m (store)", True, None)),
    ({"detail": [{"loc": ["body", "tools", 0, "x"], "msg": "no"}]}, ("server", "tools.0.x: no", True, None)),
    ({"error": {"message": "prompt is too long: 9 tokens"}}, ("overflow", "too long", False, None)),
]


@pytest.mark.parametrize(("body", "expected"), SHAPES)
def test_an_error_object_is_understood_in_every_shape(body: Json, expected: tuple[str, str, bool, int | None]) -> None:
    kind, part, retryable, status = expected
    error = error_from_object(body, status=None)
    assert (error.kind, error.retryable, error.status) == (kind, retryable, status)
    assert part in error.message


def test_a_quota_of_the_day_is_final_and_one_of_the_minute_is_not() -> None:
    def body(quota: str) -> Json:
        details = [{"violations": [{"quotaId": quota}]}, {"retryDelay": "45.837906927s"}]
        return {"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": details}}

    daily = error_from_object(body("RequestsPerDayPerProject"), status=429)
    minute = error_from_object(body("RequestsPerMinutePerProject"), status=429)
    assert (daily.kind, daily.retryable) == ("quota", False)
    assert (minute.kind, minute.retryable, minute.retry_after_s) == ("rate_limit", True, 45.837906927)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("This model's maximum context length is 8192 tokens", True),
        ("Request body too large for gpt. Max size: 8000 tokens", True),
        ("TPM: Limit 30000, Requested 30,001", True),
        ("TPM: Limit 30,000, Requested 29999", False),
        ("Too many tokens, please wait before trying again.", False),
        ("Rate limit: too many tokens", False),
        ("Tokens per day limit exceeded - too many tokens processed.", False),
        ("You have used your quota: token limit exceeded", False),
        ("Limit " + "9" * 100_000 + ", Requested " + "9" * 100_000, False),
    ],
)
def test_too_long_is_told_from_too_often(message: str, expected: bool) -> None:
    assert is_overflow(message) is expected


def test_the_wait_is_that_of_the_header_else_of_the_body_else_of_the_text() -> None:
    body = b'{"error": {"message": "retry after 3 seconds", "details": [{"retryDelay": "2s"}]}}'
    text = b'{"error": {"message": "retry after 3 seconds"}}'
    waits = [
        error_from_response(429, headers, said, NOW).retry_after_s
        for headers, said in (({"Retry-After": "1"}, body), ({"Retry-After": "x"}, body), ({}, text), ({}, b"x"))
    ]
    assert waits == [1, 2, 3, None]


BODIES: list[tuple[int, bytes, str, bool]] = [
    (401, b'{"error": {"message": "m", "type": "api_error"}}', "auth", False),
    (400, b'{"error": {"message": "m", "type": "api_error"}}', "request", False),
    (404, b'{"error": {"message": "m", "type": "invalid_request_error"}}', "request", False),
    (500, b'{"error": {"message": "m", "type": "invalid_request_error"}}', "server", True),
    (503, b'{"error": {"message": "m", "type": "server_error"}}', "overloaded", True),
    (401, b'{"error": {"message": "m", "type": "invalid_request_error", "code": "invalid_api_key"}}', "auth", False),
    (400, b'[{"error": {"status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}}]', "auth", False),
    (429, b'event: error\ndata: {"error": {"message": "m", "code": "insufficient_quota"}}\n\n', "quota", False),
    (429, b"data: slow down\n\n", "rate_limit", True),
    (400, b"", "overflow", False),
    (413, b"", "overflow", False),
    (400, b"no", "request", False),
    (400, b'{"error": {"message": ""}, "type": "t"}', "request", False),
    (402, b"", "quota", False),
    (429, b'{"error": {"details": [{"violations": [{"quotaId": "PerDay"}]}]}}', "quota", False),
]


@pytest.mark.parametrize(("status", "body", "kind", "retryable"), BODIES)
def test_exact_words_come_before_the_status_and_vague_ones_behind_it(
    status: int, body: bytes, kind: str, retryable: bool
) -> None:
    error = error_from_response(status, {}, body, NOW)
    assert (error.kind, error.retryable, error.status) == (kind, retryable, status)


@pytest.mark.parametrize("content_type", ["text/html", "application/json", ""])
def test_nothing_is_nothing_whatever_it_is_called(content_type: str) -> None:
    error = error_from_response(413, {"content-type": content_type}, b" \n", NOW)
    assert (error.kind, error.message) == ("overflow", "HTTP 413: the server said nothing more")
    assert error_from_response(400, {"content-type": content_type}, b" \n", NOW).kind == "overflow"


def test_amazon_says_the_kind_in_a_header() -> None:
    headers = {"x-amzn-ErrorType": "ThrottlingException:http://x"}
    error = error_from_response(400, headers, b'{"message": "Too many tokens, please wait"}', NOW)
    assert (error.kind, error.retryable) == ("rate_limit", True)


def told_well(error: ApiError) -> bool:
    return error.message.isprintable() and len(error.message) <= MAX_MESSAGE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "code", "type", "status", "details", "detail", "metadata", "raw", "msg"]
            )
            | st.sampled_from(["retryDelay", "violations", "quotaId", "object"]),
            inner,
        )
    ),
)


@given(JSON, st.none() | st.integers(300, 599))
def test_any_object_is_an_error_that_can_be_told(body: Json, status: int | None) -> None:
    assert told_well(error_from_object(body, status=status))


@given(st.integers(200, 599), st.dictionaries(st.sampled_from(["retry-after", "content-type"]), st.text()), st.binary())
def test_any_response_is_an_error_that_can_be_told(status: int, headers: dict[str, str], body: bytes) -> None:
    assert told_well(error_from_response(status, headers, body, NOW))


def test_deep_nesting_is_no_way_to_break_out() -> None:
    for body in (b"[" * 900 + b"]" * 900, b'{"error":' * 900 + b"1" + b"}" * 900, b"[" * 100_000, b"1" * 5000):
        assert told_well(error_from_response(500, {}, body, NOW))
