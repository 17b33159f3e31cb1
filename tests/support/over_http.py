"""A request over a real connection, and how long the tests of it wait."""

from typing import TYPE_CHECKING

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.providers.network.exchange import PhaseLimits
from ci_agent.providers.network.http import Transport
from ci_agent.providers.wire.failures import ApiError

if TYPE_CHECKING:
    from tests.conftest import Step

KEY = {"authorization": "Bearer sk-0123456789"}


def limits(*, connect: float = 5, first_byte: float = 5, idle: float = 5, whole: float = 20) -> PhaseLimits:
    return PhaseLimits(connect, first_byte, idle, whole)


PATIENT = limits(connect=60, first_byte=60, idle=60, whole=60)
AT_ONCE_S = 15
"""On a machine that is busy with other things; a minute is what it takes to leave for any other reason."""


def post(transport: Transport, url: str, cancel: CancelToken | None = None) -> bytes:
    with transport.post(f"{url}/v1/x", KEY, b"{}", cancel or CancelToken()) as response:
        return b"".join(response.chunks())


def refused(transport: Transport, url: str) -> ApiError:
    with pytest.raises(ApiError) as caught:
        post(transport, url)
    assert "0123456789" not in repr(caught.value)
    return caught.value


def drip(count: int, pause_s: float) -> "list[Step]":
    return [step for _ in range(count) for step in (b"a", pause_s)]
