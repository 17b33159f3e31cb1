"""The servers, where they are, and whose key they get."""

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.messages import TextContent, UserMessage
from ci_agent.provider import Context, Model, StreamOptions
from ci_agent.providers.servers import SERVERS, Endpoint, endpoint_of, key_of
from ci_agent.providers.table import PROVIDERS
from ci_agent.providers.wire.api import Target


def where(
    word: str, base_url: str | None = None, environment: Mapping[str, str] | None = None, model: str = "m"
) -> str:
    return endpoint_of(SERVERS[word], model, base_url, environment or {}).base_url


def body_and_path(endpoint: Endpoint) -> tuple[set[str], str]:
    message = UserMessage((TextContent("hi"),), datetime(2026, 1, 2, tzinfo=UTC))
    options = StreamOptions(max_output_tokens=5, thinking="low", conversation_id="r")
    target = Target(Model("p", "m"), endpoint.api.name)
    request = endpoint.api.build_request(target, Context("", (message,), ()), options)
    return set(request.body) - {"model", "messages", "stream"}, request.path


def test_every_server_has_an_api_and_says_where_its_key_is() -> None:
    for word, server in SERVERS.items():
        assert (server.word, bool(server.key_variables)) == (word, True)
        assert server.api().name
        assert not (server.local and server.needs_key)


def test_only_local_servers_are_reached_without_encryption() -> None:
    for server in SERVERS.values():
        if server.base_url is not None:
            parts = urlsplit(server.base_url)
            assert (parts.scheme, parts.hostname == "localhost") in {("https", False), ("http", True)}
            assert (parts.scheme == "http") == server.local


def test_a_given_address_comes_before_the_environment_and_that_before_the_usual_one() -> None:
    environment = {"OPENAI_BASE_URL": "https://proxy.example/v1"}
    assert where("openai", "https://mine.example", environment) == "https://mine.example"
    assert where("openai", None, environment) == "https://proxy.example/v1"
    assert where("openai", None, {"OPENAI_BASE_URL": " "}) == SERVERS["openai"].base_url
    assert where("groq", None, environment) == SERVERS["groq"].base_url


def test_a_server_without_an_address_says_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match="--base-url, or set AZURE_OPENAI_ENDPOINT"):
        where("azure")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://localhost:11434/v1"),
        ("[::]:1", "http://localhost:1/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("gpu:8080", "http://gpu:8080/v1"),
        (":9", "http://localhost:9/v1"),
        ("https://ollama.example/", "https://ollama.example/v1"),
        ("https://ollama.example:8/a/v1", "https://ollama.example:8/a/v1"),
        ("ollama.example/a", "http://ollama.example:11434/a/v1"),
    ],
)
def test_the_host_of_ollama_may_be_what_it_listens_at(host: str, url: str) -> None:
    assert where("ollama", None, {"OLLAMA_HOST": host}) == url
    assert where("ollama", host) == url


@pytest.mark.parametrize(
    ("url", "version", "base_url", "path"),
    [
        ("https://r.openai.azure.com", "", "https://r.openai.azure.com/openai/v1", "/chat/completions"),
        ("https://r.openai.azure.com/openai/v1/", "2024", "https://r.openai.azure.com/openai/v1", "/chat/completions"),
        (
            "https://r.openai.azure.com/",
            "2024-10-21",
            "https://r.openai.azure.com/openai/deployments/my%20m",
            "/chat/completions?api-version=2024-10-21",
        ),
        (
            "https://r.openai.azure.com/openai/deployments/d?api-version=1",
            "2",
            "https://r.openai.azure.com/openai/deployments/d",
            "/chat/completions?api-version=1",
        ),
    ],
)
def test_both_kinds_of_addresses_of_azure_work(url: str, version: str, base_url: str, path: str) -> None:
    environment = {"AZURE_OPENAI_ENDPOINT": url, "AZURE_OPENAI_API_VERSION": version}
    endpoint = endpoint_of(SERVERS["azure"], "my m", None, environment)
    assert (endpoint.base_url, body_and_path(endpoint)[1]) == (base_url, path)
    assert endpoint.api.authentication("k") == {"api-key": "k"}


def test_a_deployment_of_azure_without_a_version_says_what_is_missing() -> None:
    with pytest.raises(ConfigurationError, match="api-version"):
        where("azure", "https://r.openai.azure.com/openai/deployments/d")


@pytest.mark.parametrize(
    ("url", "fields"),
    [
        (
            "https://api.openai.com/v1",
            {"stream_options", "max_completion_tokens", "reasoning_effort", "prompt_cache_key"},
        ),
        ("https://api.deepseek.com/v1", {"stream_options", "max_tokens", "thinking", "reasoning_effort"}),
        ("https://api.mistral.ai/v1", {"max_tokens", "reasoning_effort"}),
        ("https://unknown.example/v1", {"stream_options", "max_tokens", "reasoning_effort"}),
        ("http://localhost:8000/v1", {"stream_options", "max_tokens", "reasoning_effort"}),
    ],
)
def test_a_known_address_brings_its_traits_to_the_general_provider(url: str, fields: set[str]) -> None:
    assert body_and_path(endpoint_of(SERVERS["openai-chat"], "m", url, {}))[0] == fields


def test_vertex_is_where_the_project_is() -> None:
    environment = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "europe-west4"}
    host = "https://europe-west4-aiplatform.googleapis.com"
    assert where("vertex", None, environment) == f"{host}/v1/projects/p/locations/europe-west4/publishers/google"
    with pytest.raises(ConfigurationError, match="GOOGLE_CLOUD_PROJECT"):
        where("vertex")


def test_gemini_is_at_google_or_behind_a_proxy() -> None:
    assert where("gemini") == SERVERS["gemini"].base_url
    assert where("gemini", None, {"GOOGLE_GEMINI_BASE_URL": "https://g.example"}) == "https://g.example/v1beta"
    assert SERVERS["vertex"].api().authentication("ya29.x") == {"authorization": "Bearer ya29.x"}


def test_bedrock_is_in_the_region_of_the_model_or_of_the_environment() -> None:
    environment = {"AWS_REGION": "eu-west-1"}
    arn = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/x"
    assert where("bedrock", None, environment) == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    assert where("bedrock", None, environment, arn) == "https://bedrock-runtime.us-east-1.amazonaws.com"
    assert where("bedrock", "https://b.example", environment) == "https://b.example"
    with pytest.raises(ConfigurationError, match="AWS_REGION"):
        where("bedrock")


def test_every_provider_but_those_that_play_files_has_a_server() -> None:
    assert set(SERVERS) == set(PROVIDERS) - {"scripted", "replay"}


def test_the_key_is_in_the_first_variable_that_has_one() -> None:
    assert key_of(SERVERS["groq"], {"GROQ_API_KEY": " k\n", "OPENAI_API_KEY": "other"}) == "k"
    assert key_of(SERVERS["groq"], {"GROQ_API_KEY": "", "OPENAI_API_KEY": "other"}) is None
