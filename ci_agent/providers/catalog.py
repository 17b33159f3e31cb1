"""The models that are known: limits, prices and abilities, generated from public data, and a person's own additions.

`catalog.json` is made by `scripts/generate_catalog.py` and names its source, version and date.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ci_agent.errors import InvalidFileError
from ci_agent.git_files import read_named_file
from ci_agent.json_types import Json
from ci_agent.provider import Model
from ci_agent.providers.model_facts import UNKNOWN_MODEL, ModelFacts, Price
from ci_agent.strict_yaml import FileModel, load_yaml, validate

_FILE = Path(__file__).with_name("catalog.json")


@dataclass(frozen=True, slots=True)
class Catalog:
    source: Mapping[str, str]
    """Where it comes from: name, version, licence, table, the day on which it was generated."""
    models: Mapping[str, ModelFacts]
    """By `PROVIDER:MODEL`."""

    def facts_of(self, model: Model) -> ModelFacts:
        """Only of exactly this id: a similar name is another price."""
        return self.models.get(str(model), UNKNOWN_MODEL)


def load_catalog(own: Path | None = None) -> Catalog:
    """What was shipped, and before it `own`, a YAML file of the person's; InvalidFileError when that is wrong."""
    shipped = _shipped()
    if own is None:
        return shipped
    return Catalog(shipped.source, {**shipped.models, **_read_own(own)})


class _OwnPrice(FileModel):
    """USD per million tokens."""

    input: Annotated[float, Field(ge=0, strict=False)]
    output: Annotated[float, Field(ge=0, strict=False)]
    cache_read: Annotated[float, Field(ge=0, strict=False)] | None = None
    cache_write: Annotated[float, Field(ge=0, strict=False)] | None = None


class _OwnModel(FileModel):
    context_tokens: Annotated[int, Field(ge=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    price: _OwnPrice | None = None
    thinks: bool | None = None
    adaptive_thinking: bool | None = None
    sees_images: bool | None = None
    takes_temperature: bool | None = None
    enforces_schema: bool | None = None


class _OwnModels(FileModel):
    models: dict[str, _OwnModel]
    """By `PROVIDER:MODEL`."""


def _read_own(path: Path) -> dict[str, ModelFacts]:
    document = load_yaml(read_named_file(path, "models file"), str(path), model=_OwnModels)
    own = validate(document, _OwnModels)
    for name in own.models:
        if ":" not in name:
            problem = f"{name!r} names no model: write PROVIDER:MODEL"
            raise InvalidFileError(str(path), *document.key_place(("models", name)), problem)
    return {name: _own_facts(model) for name, model in own.models.items()}


def _own_facts(model: _OwnModel) -> ModelFacts:
    price = None if model.price is None else Price(**model.price.model_dump())
    return ModelFacts(price=price, **model.model_dump(exclude={"price"}))


@cache
def _shipped() -> Catalog:
    document = json.loads(_FILE.read_text(encoding="utf-8"))
    columns = document["columns"]
    models = {
        f"{provider}:{model}": _facts(dict(zip(columns, row, strict=True)))
        for provider, rows in document["models"].items()
        for model, row in rows.items()
    }
    return Catalog(document["source"], models)


def _facts(row: dict[str, Json]) -> ModelFacts:
    abilities = row["abilities"]
    return ModelFacts(
        context_tokens=row["context_tokens"],
        max_output_tokens=row["max_output_tokens"],
        price=_price(row, ""),
        long_context_tokens=row["long_context_tokens"],
        long_context_price=_price(row, "long_"),
        thinks=True if "t" in abilities else None,
        adaptive_thinking=True if "a" in abilities else None,
        sees_images=True if "i" in abilities else None,
        takes_temperature=False if "n" in abilities else None,
        enforces_schema=True if "s" in abilities else None,
    )


def _price(row: dict[str, Json], which: str) -> Price | None:
    given, made = row[f"{which}input"], row[f"{which}output"]
    if given is None or made is None:
        return None
    return Price(given, made, row[f"{which}cache_read"], row[f"{which}cache_write"])
