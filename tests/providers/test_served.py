"""What must be right before a model's server is told anything."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from no_records import no_records

from ci_agent.cancellation import CancelToken
from ci_agent.errors import ConfigurationError
from ci_agent.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage, UserMessage
from ci_agent.provider import Context, StreamDone, StreamFn, StreamOptions
from ci_agent.providers.outside import Outside
from ci_agent.providers.servers import SERVERS
from ci_agent.providers.settings import ModelSettings
from ci_agent.providers.table import PROVIDERS, REPLAY, SCRIPTED, OpenModels, known_models, open_models, parse_model

if TYPE_CHECKING:
    from tests.conftest import Faults

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def opened(settings: ModelSettings, *models: str, env: Mapping[str, str] | None = None) -> OpenModels:
    outside = Outside(env or {}, lambda: NOW, lambda: 0.0, no_records)
    return open_models([parse_model(model) for model in models], settings, outside)


def refusal(settings: ModelSettings, model: str = "openai-chat:m", env: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        opened(settings, model, env=env)
    assert "0123456789" not in repr(caught.value)
    return str(caught.value)


def test_every_provider_has_a_server_and_every_server_a_provider() -> None:
    assert {SCRIPTED, REPLAY, *SERVERS} == set(PROVIDERS)
    assert all(word == server.word for word, server in SERVERS.items())


@pytest.mark.parametrize("text", ["", "m", ":m", "nobody:m"])
def test_what_names_no_model_is_told_the_providers(text: str) -> None:
    with pytest.raises(ValueError, match="names no model") as caught:
        parse_model(text)
    assert known_models() in str(caught.value)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("OpenAI:m", "'OpenAI:m' names no model: no provider is called 'OpenAI'; did you mean 'openai:m'?"),
        ("olama:a:b", "'olama:a:b' names no model: no provider is called 'olama'; did you mean 'ollama:a:b'?"),
        ("openai:", "'openai:' names no model: write what it is called behind `openai:`"),
        ("openai", "'openai' names no model: write what it is called behind `openai:`"),
    ],
)
def test_what_was_meant_is_told_where_it_can_be(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match="names no model") as caught:
        parse_model(text)
    assert str(caught.value) == meant


def test_a_model_s_name_may_hold_colons() -> None:
    assert str(parse_model("ollama:llama3:8b")) == "ollama:llama3:8b"


@pytest.mark.parametrize(
    "key", ["sk-0123456789\n\x00", "sk-0123456789 x", "sk-0123456789é", "a\tsk-0123456789", "\x7f"]
)
def test_a_key_that_cannot_be_one_is_refused_without_being_shown(key: str) -> None:
    assert "holds characters that no key has" in refusal(ModelSettings(base_url="http://localhost:1", api_key=key))
    refusal(ModelSettings(base_url="http://localhost:1"), env={"OPENAI_API_KEY": f"x {key} x"})


def test_a_missing_key_is_told_by_its_variables() -> None:
    assert "set GEMINI_API_KEY or GOOGLE_API_KEY" in refusal(ModelSettings(), "gemini:m")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://model.test", "--allow-http"),
        ("http://10.0.0.1:80/v1", "--allow-http"),
        ("http://127.0.0.1.model.test", "--allow-http"),
        ("https://user:sk-0123456789@model.test", "user or a password"),
        ("https://sk-0123456789@model.test", "user or a password"),
        ("ftp://model.test", "no http or https address"),
        ("model.test", "has no scheme: put https:// before it"),
        ("https://", "no http or https address"),
        ("https://[::1", "no http or https address"),
        ("https://model.test:99999", "no http or https address"),
        ("https://model.test/v1?key=sk-0123456789", "has a query"),
        ("https://model.test/v1#sk-0123456789", "fragment"),
    ],
)
def test_an_address_that_no_key_should_go_to_is_refused(url: str, problem: str) -> None:
    assert problem in refusal(ModelSettings(base_url=url, api_key="sk-abc"))


@pytest.mark.parametrize(
    "url", ["https://model.test/v1/", "http://localhost:1", "http://127.9.9.9", "http://[::1]:1/v1"]
)
def test_an_encrypted_address_or_this_machine_is_taken(url: str) -> None:
    opened(ModelSettings(base_url=url, api_key="sk-abc"), "openai-chat:m").close()


def test_an_address_that_is_not_encrypted_is_taken_when_allowed() -> None:
    opened(ModelSettings(base_url="http://model.test", allow_http=True), "openai-chat:m").close()


def ask(stream: StreamFn, model: str) -> str:
    context = Context("", (UserMessage((TextContent("Hi."),), NOW),), ())
    *_, last = stream(parse_model(model), context, StreamOptions(), CancelToken())
    return last.message.text if isinstance(last, StreamDone) else repr(last)


def test_address_and_key_of_the_person_are_for_the_run_s_own_model_alone(faults: "Faults") -> None:
    own, other = faults.serve(faults.error(404, "gone")), faults.serve(faults.answer("Other."))
    settings = ModelSettings(base_url=f"{own.url}/v1", api_key="sk-own")
    env = {"OPENAI_BASE_URL": f"{other.url}/v1", "OPENAI_API_KEY": "sk-other"}
    models = opened(settings, "openai-chat:a", "openai-chat:b", env=env)
    assert ask(models.stream_fn, "openai-chat:a") == "Other."
    assert own.requests[0].headers["authorization"] == "Bearer sk-own"
    assert other.requests[0].headers["authorization"] == "Bearer sk-other"
    models.close()
    assert own.is_left()
    assert other.is_left()


def test_models_without_a_price_are_named(tmp_path: Path) -> None:
    (tmp_path / "m.yml").write_text("models:\n  ollama:dear:\n    price: {input: 1, output: 1}\n")
    models = opened(ModelSettings(models_file=tmp_path / "m.yml"), "ollama:dear", "ollama:unknown")
    assert [str(model) for model in models.without_price] == ["ollama:unknown"]
    models.close()


def test_settings_and_surroundings_show_no_key() -> None:
    settings = ModelSettings(api_key="sk-0123456789")
    outside = Outside({"OPENAI_API_KEY": "sk-0123456789"}, lambda: NOW, lambda: 0.0, no_records)
    assert "0123456789" not in repr((settings, outside))


def test_each_model_gets_as_much_of_the_conversation_as_fits_into_it(faults: "Faults", tmp_path: Path) -> None:
    small = faults.serve(faults.error(400, "too long", code="context_length_exceeded"))
    large = faults.serve(faults.answer("Whole."))
    facts = "models:\n  ollama:a: {context_tokens: 2000}\n  openai-chat:b: {context_tokens: 100000}\n"
    (tmp_path / "m.yml").write_text(facts)
    settings = ModelSettings(base_url=f"{small.url}/v1", models_file=tmp_path / "m.yml")
    models = opened(settings, "ollama:a", "openai-chat:b", env={"OPENAI_BASE_URL": f"{large.url}/v1"})
    call = AssistantMessage((ToolCall("c1", "read", "{}"),), "tool_use", "ollama", "a", "openai-chat", NOW)
    last = AssistantMessage((TextContent("Read."),), "stop", "ollama", "a", "openai-chat", NOW)
    result = ToolResultMessage("c1", "read", (TextContent("x" * 20_000),), is_error=False, timestamp=NOW)
    asked = UserMessage((TextContent("Hi."),), NOW)
    context = Context("", (asked, call, result, last, asked), ())
    *_, end = models.stream_fn(parse_model("ollama:a"), context, StreamOptions(), CancelToken())
    models.close()
    assert isinstance(end, StreamDone)
    assert end.message.text == "Whole."
    assert len(small.requests[0].body) < 10_000
    assert len(large.requests[0].body) > 20_000
