"""The Anthropic Messages API: of Anthropic, and of the servers and proxies that speak it."""

from collections.abc import Mapping
from functools import partial

from ci_agent.providers.anthropic.relaxations import relax
from ci_agent.providers.anthropic.request import AnthropicTraits, build_anthropic_request
from ci_agent.providers.anthropic.response import read_answer, read_stream
from ci_agent.providers.wire.api import Api

API = "anthropic-messages"
BASE_URL = "https://api.anthropic.com"

_SHORT_LIVED_KEY = "sk-ant-oat"
"""How keys begin that Anthropic takes as bearer tokens alone."""


def create_anthropic_api(traits: AnthropicTraits | None = None) -> Api:
    """The API for a server with these traits; None: Anthropic's own."""
    traits = traits or AnthropicTraits()
    return Api(
        name=API,
        build_request=partial(build_anthropic_request, traits),
        read_stream=read_stream,
        read_answer=read_answer,
        authentication=partial(_authentication, traits),
        relax=relax,
    )


def _authentication(traits: AnthropicTraits, key: str) -> Mapping[str, str]:
    if traits.takes_bearer or key.startswith(_SHORT_LIVED_KEY):
        return {"authorization": f"Bearer {key}"}
    return {"x-api-key": key}
