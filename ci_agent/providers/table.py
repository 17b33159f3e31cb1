"""The providers by the word that stands before the colon of `--model`, and how a run's models are opened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

from ci_agent.provider import Model, StreamFn
from ci_agent.providers.fallback import create_fallback_stream
from ci_agent.providers.model_facts import UNKNOWN_MODEL, ModelFacts
from ci_agent.providers.outside import Outside
from ci_agent.providers.replay import create_replay_stream, has_unknown_cost
from ci_agent.providers.script import read_script
from ci_agent.providers.scripted import create_scripted_stream
from ci_agent.providers.settings import ModelSettings
from ci_agent.providers.shrinking import create_shrinking_stream
from ci_agent.spelling import listed, nearest

SCRIPTED = "scripted"
REPLAY = "replay"
PROVIDERS = (
    SCRIPTED,
    REPLAY,
    "openai",
    "openai-chat",
    "anthropic",
    "gemini",
    "vertex",
    "bedrock",
    "azure",
    "openrouter",
    "groq",
    "mistral",
    "deepseek",
    "xai",
    "together",
    "github",
    "ollama",
    "vllm",
    "llamacpp",
    "lmstudio",
    "litellm",
)
"""All but the first two have a row in `servers`, which imports what checking a name needs nothing of."""

_PLAYED = (SCRIPTED, REPLAY)
"""Out of files: no key, no network, nothing to shrink."""

_Open: TypeAlias = Callable[[Model, bool], StreamFn]
"""Opens one model; True for the run's own, which the person's address and key are for."""

_FactsOf: TypeAlias = Callable[[Model], ModelFacts]


@dataclass(frozen=True, slots=True)
class OpenModels:
    stream_fn: StreamFn
    without_price: tuple[Model, ...]
    """Those whose cost nobody can tell, a record that does not say it among them."""
    close: Callable[[], None]
    """Lets connections go, when the run is over."""


def parse_model(text: str) -> Model:
    """The model that `PROVIDER:MODEL` names; ValueError says which forms there are, or what was meant."""
    provider, colon, name = text.partition(":")
    if provider in PROVIDERS and not name:
        raise ValueError(f"{text!r} names no model: write what it is called behind `{provider}:`")
    if colon and name and provider not in PROVIDERS:
        meant = nearest(provider, PROVIDERS)
        hint = f"; did you mean {f'{meant}:{name}'!r}?" if meant else f". {known_models()}"
        raise ValueError(f"{text!r} names no model: no provider is called {provider!r}{hint}")
    if not colon or not name:
        raise ValueError(f"{text!r} names no model. {known_models()}")
    return Model(provider, name)


def model_problem(text: str) -> str | None:
    """Why a text is no `PROVIDER:MODEL`, with what was probably meant; None: it is one."""
    try:
        parse_model(text)
    except ValueError as error:
        known = listed(_known_by(text)) if ":" not in text else ""
        return f"{text!r} names no model without its provider; did you mean {known}?" if known else str(error)
    return None


def _known_by(model_id: str) -> list[str]:
    """The models of the catalogue that have this id, with their providers."""
    from ci_agent.providers.catalog import load_catalog  # noqa: PLC0415 - for errors alone; it takes a while to load

    return [name for name in sorted(load_catalog().models) if name.partition(":")[2] == model_id]


def known_models() -> str:
    """One sentence that lists the providers."""
    return f"Give PROVIDER:MODEL; the providers are {', '.join(PROVIDERS)}."


def open_models(models: Sequence[Model], settings: ModelSettings, outside: Outside) -> OpenModels:
    """Open the run's model and, after it, those that are asked when the ones before gave up.

    Raises ConfigurationError when one cannot be used as it is. Nothing is sent.
    """
    outside = replace(outside, read_record=cache(outside.read_record))
    if all(model.provider in _PLAYED for model in models):
        facts_of = _facts_of_played(settings)
        stream_fn = _one_after_another(models, partial(_open_played, outside, facts_of))
        return OpenModels(stream_fn, _without_price(models, outside, facts_of), _nothing)
    # Connections, certificates and the catalogue take longer to load than all that a scripted run needs.
    from ci_agent.providers.catalog import load_catalog  # noqa: PLC0415
    from ci_agent.providers.served import ServedModels  # noqa: PLC0415

    catalog = load_catalog(settings.models_file)
    served = ServedModels(settings, catalog, outside)

    def open_one(model: Model, is_own: bool) -> StreamFn:
        if model.provider in _PLAYED:
            return _open_played(outside, catalog.facts_of, model, is_own)
        stream_fn = served.open(
            model, base_url=settings.base_url if is_own else None, api_key=settings.api_key if is_own else None
        )
        # Each by its own context: what is too long for one model may fit whole into the next.
        return create_shrinking_stream(stream_fn, catalog.facts_of(model).context_tokens, settings.shrink)

    return OpenModels(
        _one_after_another(models, open_one),
        _without_price(models, outside, catalog.facts_of),
        served.close,
    )


def _one_after_another(models: Sequence[Model], open_one: _Open) -> StreamFn:
    return create_fallback_stream([(model, open_one(model, index == 0)) for index, model in enumerate(models)])


def _without_price(models: Sequence[Model], outside: Outside, facts_of: _FactsOf) -> tuple[Model, ...]:
    def is_without(model: Model) -> bool:
        if model.provider == REPLAY:
            return has_unknown_cost(outside.read_record(Path(model.id)))
        return facts_of(model).price is None

    return tuple(filter(is_without, models))


def _facts_of_played(settings: ModelSettings) -> _FactsOf:
    """A script has the price that the person's own file gives it, so that a limit of cost can be tried with it."""
    if settings.models_file is None:
        return lambda _: UNKNOWN_MODEL
    from ci_agent.providers.catalog import load_catalog  # noqa: PLC0415 - as above

    return load_catalog(settings.models_file).facts_of


def _open_played(outside: Outside, facts_of: _FactsOf, model: Model, _is_own: bool) -> StreamFn:
    if model.provider == REPLAY:
        return create_replay_stream(outside.read_record(Path(model.id)), model.id, outside.now)
    return create_scripted_stream(*read_script(model.id), outside.now, facts_of(model))


def _nothing() -> None:
    pass
