"""The OpenAI Responses API: of OpenAI, and of the servers that speak it."""

from collections.abc import Mapping
from functools import partial

from ci_agent.providers.openai_responses.relaxations import relax
from ci_agent.providers.openai_responses.request import ResponsesTraits, build_responses_request
from ci_agent.providers.openai_responses.response import read_answer, read_stream
from ci_agent.providers.wire.api import Api

API = "openai-responses"
BASE_URL = "https://api.openai.com/v1"


def create_openai_responses_api(traits: ResponsesTraits | None = None) -> Api:
    """The API for a server with these traits; None: OpenAI's own."""
    traits = traits or ResponsesTraits()
    return Api(
        name=API,
        build_request=partial(build_responses_request, traits),
        read_stream=read_stream,
        read_answer=read_answer,
        authentication=partial(_authentication, traits),
        relax=relax,
    )


def _authentication(traits: ResponsesTraits, key: str) -> Mapping[str, str]:
    if traits.key_header is not None:
        return {traits.key_header: key}
    return {"authorization": f"Bearer {key}"}
