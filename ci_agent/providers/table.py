"""The providers by the word that stands before the colon of `--model`."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from ci_agent.provider import Model, StreamFn
from ci_agent.providers.script import load_script
from ci_agent.providers.scripted import create_scripted_stream


@dataclass(frozen=True, slots=True)
class Provider:
    form: str
    """How a model of this provider is named."""
    summary: str
    create: Callable[[Model, Callable[[], datetime]], StreamFn]
    """Raises ConfigurationError when the model cannot be used."""


def _create_scripted(model: Model, now: Callable[[], datetime]) -> StreamFn:
    return create_scripted_stream(load_script(model.id), model.id, now)


PROVIDERS: dict[str, Provider] = {
    "scripted": Provider(
        "scripted:FILE",
        "plays the assistant turns of a YAML file: no key, no network, tools really run",
        _create_scripted,
    ),
}


def parse_model(text: str) -> Model:
    """The model that `PROVIDER:MODEL` names; ValueError says which forms there are."""
    provider, colon, name = text.partition(":")
    if provider not in PROVIDERS or not colon or not name:
        raise ValueError(f"{text!r} names no model. {known_models()}")
    return Model(provider, name)


def known_models() -> str:
    """One sentence that lists the providers."""
    forms = "; ".join(f"{provider.form} {provider.summary}" for provider in PROVIDERS.values())
    return f"Known providers: {forms}."
