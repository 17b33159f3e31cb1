"""Stream functions over real connections to a server on this machine."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.messages import AssistantMessage, TextContent, UserMessage
from ci_agent.provider import (
    Context,
    Model,
    StreamDone,
    StreamEvent,
    StreamFailed,
    StreamFn,
    StreamNotice,
    StreamOptions,
)
from ci_agent.providers.model_facts import ModelFacts, Price
from ci_agent.providers.network.exchange import PhaseLimits
from ci_agent.providers.network.http import Transport, TransportSettings
from ci_agent.providers.openai_chat.api import create_openai_chat_api
from ci_agent.providers.openai_chat.traits import ChatTraits
from ci_agent.providers.retry import RetryPolicy
from ci_agent.providers.stream import ServerAccess, SharedMeans, create_api_stream
from ci_agent.providers.wire.api import Target

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MODEL = Model("openai-chat", "m")
KEY = "sk-test-0123456789abcdef"
QUICK = PhaseLimits(connect_s=20, first_byte_s=20, idle_s=20, whole_s=60)
FACTS = ModelFacts(price=Price(input=1e6, output=2e6, cache_read=None, cache_write=None))
"""One dollar a token sent, two a token made: sums stay exact."""


@dataclass
class Outcome:
    events: list[StreamEvent]

    @property
    def message(self) -> AssistantMessage:
        last = self.events[-1]
        assert isinstance(last, StreamDone | StreamFailed)
        return last.message

    @property
    def text(self) -> str:
        return self.message.text

    @property
    def error(self) -> str:
        assert isinstance(self.events[-1], StreamFailed)
        return self.message.error_message or ""

    @property
    def notices(self) -> list[StreamNotice]:
        return [event for event in self.events if isinstance(event, StreamNotice)]


@dataclass
class Client:
    """Asks a server for messages as a run does."""

    _transports: list[Transport] = field(default_factory=list)

    def transport(
        self,
        limits: PhaseLimits = QUICK,
        environment: Mapping[str, str] | None = None,
        ca_file: Path | None = None,
        max_body_bytes: int = 64 << 20,
    ) -> Transport:
        made = Transport(
            TransportSettings(
                limits=limits, environment=environment or {}, ca_file=ca_file, max_body_bytes=max_body_bytes
            )
        )
        self._transports.append(made)
        return made

    def stream(
        self,
        url: str,
        *,
        transport: Transport | None = None,
        key: str | None = KEY,
        policy: RetryPolicy | None = None,
        traits: ChatTraits | None = None,
        facts: ModelFacts = FACTS,
        random: Callable[[], float] = lambda: 3.99,  # beyond its range, so that nobody waits for long
    ) -> StreamFn:
        api = create_openai_chat_api(traits or ChatTraits())
        around = SharedMeans(transport or self.transport(), policy or RetryPolicy(), lambda: NOW, random)
        return create_api_stream(api, Target(MODEL, api.name, facts), ServerAccess(f"{url}/v1", key), around)

    @staticmethod
    def ask(
        stream: StreamFn, *, cancel: CancelToken | None = None, options: StreamOptions | None = None, system: str = ""
    ) -> Outcome:
        context = Context(system, (UserMessage((TextContent("Hi."),), NOW),), ())
        return Outcome(list(stream(MODEL, context, options or StreamOptions(), cancel or CancelToken())))

    def close(self) -> None:
        for transport in self._transports:
            transport.close()


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    made.close()
