"""OpenAI Chat Completions, and everything that speaks it; `servers` has the table of those."""

from collections.abc import Mapping
from functools import partial

from ci_agent.providers.openai_chat.relaxations import relax
from ci_agent.providers.openai_chat.request import build_chat_request
from ci_agent.providers.openai_chat.response import read_answer, read_stream
from ci_agent.providers.openai_chat.traits import ChatTraits
from ci_agent.providers.wire.api import Api

API = "openai-chat"


def create_openai_chat_api(traits: ChatTraits) -> Api:
    """The API for a server with these traits."""
    return Api(
        name=API,
        build_request=partial(build_chat_request, traits),
        read_stream=read_stream,
        read_answer=read_answer,
        authentication=partial(_authentication, traits),
        relax=relax,
    )


def _authentication(traits: ChatTraits, key: str) -> Mapping[str, str]:
    return {"api-key": key} if traits.key_header == "api-key" else {"authorization": f"Bearer {key}"}
