"""The servers that models are asked at, by the word before the colon of `--model`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlencode, urlsplit

from ci_agent.errors import ConfigurationError
from ci_agent.providers.anthropic.api import BASE_URL as ANTHROPIC_URL
from ci_agent.providers.anthropic.api import create_anthropic_api
from ci_agent.providers.bedrock.api import bedrock_base_url, create_bedrock_api
from ci_agent.providers.gemini.addresses import BASE_URL as GEMINI_URL
from ci_agent.providers.gemini.addresses import gemini_base_url, vertex_base_url
from ci_agent.providers.gemini.api import VERTEX, create_gemini_api
from ci_agent.providers.openai_chat.api import create_openai_chat_api
from ci_agent.providers.openai_chat.traits import ChatTraits
from ci_agent.providers.openai_responses.api import BASE_URL as OPENAI_URL
from ci_agent.providers.openai_responses.api import create_openai_responses_api
from ci_agent.providers.server_addresses import azure_address, ollama_url
from ci_agent.providers.wire.api import Api
from ci_agent.providers.wire.history import IdRule


@dataclass(frozen=True, slots=True)
class Server:
    word: str
    api: Callable[[], Api]
    base_url: str | None
    """None: it has to be given, or follows from the environment."""
    key_variables: tuple[str, ...]
    """In the order in which they are looked at."""
    needs_key: bool = True
    local: bool = False
    """Whether it usually runs on the person's own machine."""
    base_url_variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Endpoint:
    api: Api
    base_url: str


def endpoint_of(server: Server, model_id: str, base_url: str | None, environment: Mapping[str, str]) -> Endpoint:
    """Where to ask a model and how: at `base_url`, else where the server's variables say, else at its usual address.

    Raises ConfigurationError when none of them says it.
    """
    given = base_url or _first(environment, server.base_url_variables)
    match server.word:
        case "azure" if given is not None:
            azure_url, version = azure_address(given, model_id, environment)
            traits = replace(_AZURE, query="" if version is None else urlencode({"api-version": version}))
            return Endpoint(create_openai_chat_api(traits), azure_url)
        case "gemini" if given is not None:
            return Endpoint(server.api(), gemini_base_url(given))
        case "ollama" if given is not None:
            return Endpoint(server.api(), ollama_url(given))
        case "openai-chat":
            return Endpoint(_chat_api_at(given or OPENAI_URL)(), given or OPENAI_URL)
        case "bedrock" if given is None:
            return Endpoint(server.api(), bedrock_base_url(environment, model_id))
        case "vertex":
            return Endpoint(server.api(), vertex_base_url(environment, given))
    url = given or server.base_url
    if url is None:
        raise ConfigurationError(_missing_url(server))
    return Endpoint(server.api(), url)


def key_of(server: Server, environment: Mapping[str, str]) -> str | None:
    """The key in the first of the server's variables that has one."""
    return _first(environment, server.key_variables)


def key_variable(server: Server, environment: Mapping[str, str]) -> str | None:
    """The first of the server's variables that has a key."""
    return _first_set(environment, server.key_variables)


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    name = _first_set(environment, names)
    return None if name is None else environment[name].strip()


def _first_set(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if environment.get(name, "").strip()), None)


# The table

_OPENAI = ChatTraits(output_limit="max_completion_tokens", schema_use="always", prompt_cache_key=True)
_ANY = ChatTraits(output_limit="by_model")
_AZURE = replace(_OPENAI, key_header="api-key")
_OPENROUTER = ChatTraits(thinking="reasoning_object", schema_use="always", marks_cache_of_claude=True)
_GROQ = ChatTraits(thinking="groq")
_DEEPSEEK = ChatTraits(thinking="switch", thinks_in_every_message=True, schema_use="never")
_XAI = ChatTraits(schema_use="always", affinity_header="x-grok-conv-id")
_GITHUB = ChatTraits(output_limit="by_model", schema_use="always")
_TEMPLATED = ChatTraits(thinking="chat_template")
_LITELLM = ChatTraits(output_limit="by_model", empty_tools=True)
_MISTRAL = ChatTraits(
    stream_options=False,
    rich_results=True,
    affinity_header="x-affinity",
    ids=IdRule(re.compile(r"[A-Za-z0-9]"), max_length=9, replace="", min_length=9),
)


def _chat(traits: ChatTraits) -> Callable[[], Api]:
    return partial(create_openai_chat_api, traits)


_OPENAI_ROWS = (
    Server(
        "openai",
        create_openai_responses_api,
        OPENAI_URL,
        ("OPENAI_API_KEY",),
        base_url_variables=("OPENAI_BASE_URL",),
    ),
    Server(
        "openai-chat",
        _chat(_ANY),
        OPENAI_URL,
        ("OPENAI_API_KEY",),
        needs_key=False,
        base_url_variables=("OPENAI_BASE_URL",),
    ),
    Server(
        "azure",
        _chat(_AZURE),
        None,
        ("AZURE_OPENAI_API_KEY",),
        base_url_variables=("AZURE_OPENAI_ENDPOINT",),
    ),
)

_OTHER_ROWS = (
    Server(
        "anthropic",
        create_anthropic_api,
        ANTHROPIC_URL,
        ("ANTHROPIC_API_KEY",),
        base_url_variables=("ANTHROPIC_BASE_URL",),
    ),
    Server(
        "gemini",
        create_gemini_api,
        GEMINI_URL,
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        base_url_variables=("GOOGLE_GEMINI_BASE_URL",),
    ),
    Server(
        "vertex",
        partial(create_gemini_api, VERTEX),
        None,
        ("GOOGLE_ACCESS_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN"),
    ),
    Server(
        "bedrock",
        create_bedrock_api,
        None,
        ("AWS_BEARER_TOKEN_BEDROCK",),
        base_url_variables=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",),
    ),
)

_HOSTED_ROWS = (
    Server("openrouter", _chat(_OPENROUTER), "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    Server("groq", _chat(_GROQ), "https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    Server("mistral", _chat(_MISTRAL), "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    Server("deepseek", _chat(_DEEPSEEK), "https://api.deepseek.com", ("DEEPSEEK_API_KEY",)),
    Server("xai", _chat(_XAI), "https://api.x.ai/v1", ("XAI_API_KEY",)),
    Server("together", _chat(ChatTraits()), "https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    Server(
        "github",
        _chat(_GITHUB),
        "https://models.github.ai/inference",
        ("GITHUB_TOKEN",),
    ),
)


def _local(word: str, url: str, traits: ChatTraits, *keys: str) -> Server:
    return Server(word, _chat(traits), url, keys, needs_key=False, local=True)


_LOCAL_ROWS = (
    replace(
        _local("ollama", "http://localhost:11434/v1", ChatTraits(), "OLLAMA_API_KEY"),
        base_url_variables=("OLLAMA_HOST",),
    ),
    _local("vllm", "http://localhost:8000/v1", _TEMPLATED, "VLLM_API_KEY"),
    _local("llamacpp", "http://localhost:8080/v1", _TEMPLATED, "LLAMA_API_KEY"),
    _local("lmstudio", "http://localhost:1234/v1", ChatTraits(), "LM_API_TOKEN"),
    replace(
        _local("litellm", "http://localhost:4000", _LITELLM, "LITELLM_PROXY_API_KEY"),
        base_url_variables=("LITELLM_PROXY_API_BASE",),
    ),
)

_ROWS = (*_OPENAI_ROWS, *_OTHER_ROWS, *_HOSTED_ROWS, *_LOCAL_ROWS)
SERVERS: dict[str, Server] = {server.word: server for server in _ROWS}


# Addresses


def _missing_url(server: Server) -> str:
    variables = "".join(f", or set {name}" for name in server.base_url_variables)
    return f"the provider {server.word} has no usual address: give --base-url{variables}"


def _chat_api_at(url: str) -> Callable[[], Api]:
    """That of the server whose address it is; `openai-chat` may be pointed at any of them."""
    host = (urlsplit(url).hostname or "").lower()
    if host == urlsplit(OPENAI_URL).hostname:
        return _chat(_OPENAI)
    if host.endswith(".openai.azure.com"):
        return _chat(_AZURE)
    return next((row.api for row in _HOSTED_ROWS if urlsplit(row.base_url or "").hostname == host), _chat(_ANY))
