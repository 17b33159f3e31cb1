"""What one wire API is to the rest: a request made of a context, and content events made of a response."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from ci_agent.json_types import Json, JsonObject
from ci_agent.provider import ContentEvent, Context, Model, StreamOptions
from ci_agent.providers.model_facts import UNKNOWN_MODEL, ModelFacts
from ci_agent.providers.wire.assembly import Assembly
from ci_agent.providers.wire.failures import ApiError


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a request is for. What another triple of provider, API and model made is sent in a form that any takes."""

    model: Model
    api: str
    facts: ModelFacts = UNKNOWN_MODEL


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A POST, relative to the base URL of the server."""

    path: str
    """Begins with a slash; may hold a query."""
    body: JsonObject
    headers: Mapping[str, str] = field(default_factory=dict)
    """Besides content type and authentication."""
    tool_names: Mapping[str, str] = field(default_factory=dict)
    """From the names as sent to the tools' own, where the API does not take them as they are."""


class BuildRequest(Protocol):
    """Pure. Sends no `replay` data to another target than the one that made it, drops no message silently, and pairs
    every call with exactly one result."""

    def __call__(self, target: Target, context: Context, options: StreamOptions, /) -> ApiRequest: ...


class ReadStream(Protocol):
    """Read a streamed response to its end, from bytes that are cut anywhere.

    Puts everything into the assembly and yields what the assembly gives back. Raises ApiError for an error inside the
    stream and for a stream that ends before its end; what had arrived stays in the assembly. Does not close it.
    """

    def __call__(self, chunks: Iterator[bytes], assembly: Assembly, /) -> Iterator[ContentEvent]: ...


ReadAnswer: TypeAlias = Callable[[Json, Assembly], Iterator[ContentEvent]]
"""As ReadStream, from the one JSON value of a server that did not stream."""


Relax: TypeAlias = Callable[[ApiRequest, ApiError], ApiRequest | None]
"""A request without what the server complains about and can do without; None: there is nothing to leave out."""


@dataclass(frozen=True, slots=True)
class Api:
    name: str
    """As messages record it: `openai-chat`, `openai-responses`, `anthropic-messages`, `gemini`, `bedrock-converse`."""
    build_request: BuildRequest
    read_stream: ReadStream
    read_answer: ReadAnswer
    authentication: Callable[[str], Mapping[str, str]]
    """The headers that carry a key."""
    relax: Relax | None = None
    """Asked when the server refused the request as it is; what it gives back is sent at once."""
