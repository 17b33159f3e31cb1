"""Servers that take a request which is too long, and do not say so."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from ci_agent.messages import ImageContent, TextContent, Usage, UserMessage
from ci_agent.provider import Context, StreamFailed, StreamNotice
from ci_agent.providers.model_facts import UNKNOWN_MODEL, ModelFacts
from ci_agent.providers.silent_overflow import sign_of_dropped_text

if TYPE_CHECKING:
    from tests.conftest import Faults
    from tests.providers.conftest import Client

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEXT = TextContent("x" * 40_000)
LONG = Context("", (UserMessage((TEXT,), NOW),), ())
SHORT = Context("x" * 1_000, (), ())
WITH_IMAGE = Context("", (UserMessage((TEXT, ImageContent("", "image/png")), NOW),), ())
SMALL = ModelFacts(context_tokens=8_000)


@pytest.mark.parametrize(
    ("context", "usage", "facts", "sign"),
    [
        (LONG, Usage(4_096), UNKNOWN_MODEL, "the server counted 4,096 tokens of about 10,000 that were sent"),
        (LONG, Usage(4_096), SMALL, "the server counted 4,096 tokens of about 10,000 that were sent"),
        (LONG, Usage(9_000), SMALL, "the server took 9,000 tokens, and the model's context is 8,000"),
        (SHORT, Usage(5_000, cache_read_tokens=4_000), SMALL, "the server took 9,000 tokens"),
        (LONG, Usage(5_001), UNKNOWN_MODEL, None),
        (LONG, Usage(1_000, cache_read_tokens=8_000), UNKNOWN_MODEL, None),
        (LONG, Usage(4_096, estimated=True), SMALL, None),
        (LONG, Usage(0, 10), SMALL, None),
        (SHORT, Usage(10), UNKNOWN_MODEL, None),
        (WITH_IMAGE, Usage(4_096), UNKNOWN_MODEL, None),
    ],
)
def test_what_the_server_counted_gives_it_away(
    context: Context, usage: Usage, facts: ModelFacts, sign: str | None
) -> None:
    said = sign_of_dropped_text(context, usage, facts)
    assert (said or "").startswith(sign or "")
    assert (said is None) == (sign is None)


def test_it_is_told_once(faults: "Faults", client: "Client") -> None:
    server = faults.serve(faults.answer(usage=(4_096, 2)))
    stream = client.stream(server.url)
    first, second = (client.ask(stream, system="x" * 40_000) for _ in range(2))
    assert (first.text, second.text) == ("Hello.", "Hello.")
    ((notice,), later) = first.notices, second.notices
    assert (notice, later) == (StreamNotice("warning", notice.text), [])
    assert "OLLAMA_CONTEXT_LENGTH" in notice.text


@pytest.mark.parametrize(("counted", "is_overflow"), [(990, True), (989, False)])
def test_an_answer_that_is_cut_to_nothing_by_a_full_context_is_an_overflow(
    faults: "Faults", client: "Client", counted: int, is_overflow: bool
) -> None:
    server = faults.serve(faults.answer("", finish="length", usage=(counted, 0)))
    outcome = client.ask(client.stream(server.url, facts=ModelFacts(context_tokens=1_000)))
    last = outcome.events[-1]
    assert (isinstance(last, StreamFailed) and last.is_overflow) is is_overflow
    if is_overflow:
        assert outcome.error == "the request fills the model's context of 1,000 tokens: no answer fits in"
