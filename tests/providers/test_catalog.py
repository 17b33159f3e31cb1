"""The models that are known, and a person's own."""

import json
from pathlib import Path

import pytest

from ci_agent.errors import InvalidFileError
from ci_agent.provider import Model
from ci_agent.providers import catalog
from ci_agent.providers.catalog import load_catalog
from ci_agent.providers.model_facts import UNKNOWN_MODEL, ModelFacts, Price

FILE = Path(catalog.__file__).with_name("catalog.json")


def test_the_catalogue_says_where_it_comes_from() -> None:
    source = load_catalog().source
    assert sorted(source) == ["generated", "licence", "name", "table", "version"]
    assert all(source.values())


def test_a_models_facts_are_those_of_its_row() -> None:
    document = json.loads(FILE.read_text())
    row = dict(zip(document["columns"], document["models"]["openai"]["gpt-4o"], strict=True))
    assert load_catalog().facts_of(Model("openai", "gpt-4o")) == ModelFacts(
        context_tokens=row["context_tokens"],
        max_output_tokens=row["max_output_tokens"],
        price=Price(row["input"], row["output"], row["cache_read"], row["cache_write"]),
        sees_images=True,
        enforces_schema=None,
    )


def test_every_row_can_be_read_and_no_price_is_negative_or_absurd() -> None:
    models = load_catalog().models
    assert len(models) > 500
    prices = [price for facts in models.values() for price in (facts.price, facts.long_context_price) if price]
    assert all(0 <= price.input <= 1000 and 0 <= price.output <= 5000 for price in prices)
    assert all(facts.context_tokens is None or facts.context_tokens > 0 for facts in models.values())


@pytest.mark.parametrize("model", ["gpt-4o-mini-of-mine", "GPT-4o", "gpt-4", "gpt-4o "])
def test_a_name_that_is_only_similar_is_another_model(model: str) -> None:
    known = load_catalog().models
    assert load_catalog().facts_of(Model("openai", model)) == known.get(f"openai:{model}", UNKNOWN_MODEL)
    assert load_catalog().facts_of(Model("openai-chat", model)) == UNKNOWN_MODEL


def test_a_persons_own_file_adds_models_and_comes_before_ours(tmp_path: Path) -> None:
    own = tmp_path / "models.yml"
    own.write_text(
        "models:\n"
        "  ollama:qwen3:\n    context_tokens: 40960\n    price: {input: 0, output: 0}\n"
        "  openai:gpt-4o:\n    price: {input: 1.5, output: 6, cache_read: 0.1}\n"
    )
    models = load_catalog(own)
    assert models.facts_of(Model("ollama", "qwen3")) == ModelFacts(context_tokens=40960, price=Price(0, 0))
    assert models.facts_of(Model("openai", "gpt-4o")) == ModelFacts(price=Price(1.5, 6, 0.1))
    assert models.facts_of(Model("openai", "gpt-4o-mini")) == load_catalog().facts_of(Model("openai", "gpt-4o-mini"))


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("models:\n  gpt: {}\n", "2:3", "'gpt' names no model: write PROVIDER:MODEL"),
        ("models:\n  a:b: {context: 1}\n", "2:9", "context"),
        ("models:\n  a:b: {price: {input: -1, output: 0}}\n", "2:24", "expected at least 0, got the number -1"),
        ("models:\n  a:b: {context_tokens: many}\n", "2:25", 'expected a whole number, got the text "many"'),
    ],
)
def test_a_wrong_file_is_refused_at_its_place(tmp_path: Path, text: str, place: str, problem: str) -> None:
    own = tmp_path / "models.yml"
    own.write_text(text)
    with pytest.raises(InvalidFileError) as refused:
        load_catalog(own)
    assert f"models.yml:{place}" in str(refused.value)
    assert problem in str(refused.value)
