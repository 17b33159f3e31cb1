"""Amazon Bedrock's Converse API, with a bearer token."""

import re
from collections.abc import Mapping
from functools import partial

from ci_agent.errors import ConfigurationError
from ci_agent.providers.bedrock.relaxations import relax
from ci_agent.providers.bedrock.request import BedrockTraits, build_converse_request
from ci_agent.providers.bedrock.response import read_answer, read_stream
from ci_agent.providers.wire.api import Api

API = "bedrock-converse"

_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
_REGION = re.compile(r"[a-z]{2,5}(?:-[a-z]{2,12}){1,3}-\d{1,2}")


def create_bedrock_api(traits: BedrockTraits | None = None) -> Api:
    """The API for a server with these traits; None: Amazon's own."""
    return Api(
        name=API,
        build_request=partial(build_converse_request, traits or BedrockTraits()),
        read_stream=read_stream,
        read_answer=read_answer,
        authentication=_authentication,
        relax=relax,
    )


def bedrock_base_url(environment: Mapping[str, str], model_id: str = "") -> str:
    """The address of the region that the model's ARN names, else AWS_REGION, else AWS_DEFAULT_REGION.

    Raises ConfigurationError when none does, and for a region that is none.
    """
    named = [environment[name].strip() for name in _REGION_VARIABLES if environment.get(name, "").strip()]
    region = _region_of_arn(model_id) or next(iter(named), None)
    if region is None:
        raise ConfigurationError("the provider bedrock needs a region: set AWS_REGION, or give --base-url")
    if not _REGION.fullmatch(region):
        raise ConfigurationError(f"AWS_REGION is no region of AWS: {region[:100]!r}")
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://bedrock-runtime.{region}.{domain}"


def _region_of_arn(model_id: str) -> str | None:
    """`us-east-1` of `arn:aws:bedrock:us-east-1:123:inference-profile/NAME`."""
    parts = model_id.split(":")
    return parts[3] or None if len(parts) > 5 and parts[0] == "arn" else None


def _authentication(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"}
