"""The Gemini API: of Google for developers, of Vertex, and of proxies that speak it."""

from collections.abc import Mapping
from functools import partial

from ci_agent.providers.gemini.relaxations import relax
from ci_agent.providers.gemini.request import GeminiTraits, build_gemini_request
from ci_agent.providers.gemini.response import read_answer, read_stream
from ci_agent.providers.wire.api import Api

API = "gemini"
VERTEX = GeminiTraits(takes_bearer=True)

_API_KEYS = ("AIza", "AQ.")
"""How Google's API keys begin; Vertex takes them too, but in their own header."""


def create_gemini_api(traits: GeminiTraits | None = None) -> Api:
    """The API for a server with these traits; None: Google's own for developers."""
    traits = traits or GeminiTraits()
    return Api(
        name=API,
        build_request=partial(build_gemini_request, traits),
        read_stream=read_stream,
        read_answer=read_answer,
        authentication=partial(_authentication, traits),
        relax=relax,
    )


def _authentication(traits: GeminiTraits, key: str) -> Mapping[str, str]:
    if traits.takes_bearer and not key.startswith(_API_KEYS):
        return {"authorization": f"Bearer {key}"}
    return {"x-goog-api-key": key}
