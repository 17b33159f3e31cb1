"""How long a server asks to wait, in every form servers have for it."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.json_types import Json
from ci_agent.providers.wire.asked_waits import wait_of_duration, wait_of_headers, wait_of_text

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:30 GMT"}, 90),
        ({"retry-after": "Thu, 01 Jan 2026 01:01:30 +0100"}, 90),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:30 -0000"}, 90),
        ({"retry-after": "Wed, 31 Dec 2025 23:00:00 GMT"}, 0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"x-ratelimit-reset-tokens": "6m0s"}, None),
        *(({"retry-after": odd}, None) for odd in ("", "x", "-1", "inf", "nan", "1e99", "Wed, 99 Oct 2026")),
        ({"retry-after": "Wed, 21 Oct 99999999999999 07:28:00 GMT"}, None),
    ],
)
def test_headers_say_it_in_seconds_or_as_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert wait_of_headers(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please retry after 33 seconds.", 33),
        ("Please try again in 20ms. Visit", 0.02),
        ("try again in 8.64s.", 8.64),
        ("Please try again in 1m12.5s", 72.5),
        ("try again in 6m0s", 360),
        ("Try again in 114h", 410_400),
        ("Please wait 30000 seconds before retrying.", 30_000),
        ("try again in 1 hour, 5 minutes and 2 seconds", 3_902),
        ("try again in 2 days", 172_800),
        ("Too many tokens, please wait before trying again.", None),
        ("try again in 20 more tokens", None),
        ("retry 5 times", None),
        ("", None),
    ],
)
def test_texts_say_it_in_words(text: str, seconds: float | None) -> None:
    assert wait_of_text(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("45.837906927s", 45.837906927), ("0s", 0), ("s", None), ("-1s", None), ("5", None), (5, None), (None, None)],
)
def test_google_says_it_as_a_duration(value: Json, seconds: float | None) -> None:
    assert wait_of_duration(value) == seconds


def test_a_text_made_to_be_slow_to_read_is_not() -> None:
    start = time.process_time()
    for text in ("retry " * 100_000, "try again in " + "1s " * 100_000, "try again in " + "1" * 300_000):
        wait_of_text(text)
    assert time.process_time() - start < 5


@given(st.text())
def test_any_text_is_a_wait_or_none(text: str) -> None:
    for wait in (
        wait_of_headers({"retry-after": text}, NOW),
        wait_of_text(f"try again in {text}"),
        wait_of_duration(text),
    ):
        assert wait is None or wait >= 0
