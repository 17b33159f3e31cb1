"""Make ci_agent/providers/catalog.json from public data, so that no run needs a network or a large package to know a
model's limits and prices.

    pip download --no-deps litellm
    python -m venv check && check/bin/pip install genai-prices
    check/bin/python scripts/generate_catalog.py litellm-*.whl > ci_agent/providers/catalog.json

Limits, prices and abilities are those of litellm's table (its MIT licensed part). When genai-prices can be imported,
prices are held against it, and every difference is printed on stderr: look at them before you commit.
"""

import argparse
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.parser import HeaderParser
from importlib import import_module
from pathlib import Path
from typing import Any

TABLE = "litellm/model_prices_and_context_window_backup.json"

PROVIDERS = {
    "openai": ("openai", ""),
    "azure": ("azure", "azure/"),
    "anthropic": ("anthropic", ""),
    "gemini": ("gemini", "gemini/"),
    "vertex_ai-language-models": ("vertex", "vertex_ai/"),
    "vertex_ai": ("vertex", "vertex_ai/"),
    "bedrock": ("bedrock", "bedrock/"),
    "bedrock_converse": ("bedrock", "bedrock/"),
    "openrouter": ("openrouter", "openrouter/"),
    "groq": ("groq", "groq/"),
    "mistral": ("mistral", "mistral/"),
    "deepseek": ("deepseek", "deepseek/"),
    "xai": ("xai", "xai/"),
    "together_ai": ("together", "together_ai/"),
    "github": ("github", "github/"),
}
"""The source's provider: our word, and what stands before the model's id in its keys."""

OTHER_NAMES = {"gemini": "google", "vertex": "google", "bedrock": "aws", "xai": "x-ai"}
"""Our words as genai-prices spells them, where it does so otherwise."""

COLUMNS = [
    "context_tokens",
    "max_output_tokens",
    "input",
    "output",
    "cache_read",
    "cache_write",
    "long_context_tokens",
    "long_input",
    "long_output",
    "long_cache_read",
    "long_cache_write",
    "abilities",
]
"""Prices in USD per million tokens. `abilities` is a string of letters, see ABILITIES."""

ABILITIES = {
    "supports_reasoning": "t",
    "supports_vision": "i",
    "supports_adaptive_thinking": "a",
    "supports_function_calling": "c",
    "supports_native_structured_output": "s",
}
NO_SAMPLING = "n"
"""The model refuses a temperature."""

PRICES = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)

_LONG = re.compile(r"^input_cost_per_token_above_(\d+)k_tokens$")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="a litellm wheel")
    wheel = parser.parse_args().wheel
    table, version = read_wheel(wheel)
    models: dict[str, dict[str, list[Any]]] = {}
    for provider, model, entry in entries(table):
        models.setdefault(provider, {})[model] = to_row(entry)
    for difference in differences(models):
        print(difference, file=sys.stderr)
    write_catalog(models, {"name": "litellm", "version": version, "licence": "MIT", "table": TABLE})


def read_wheel(path: Path) -> tuple[dict[str, Any], str]:
    with zipfile.ZipFile(path) as wheel:
        metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        version = HeaderParser().parsestr(wheel.read(metadata).decode())["Version"]
        return json.loads(wheel.read(TABLE)), version


def entries(table: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for key, entry in sorted(table.items()):
        provider, prefix = PROVIDERS.get(entry.get("litellm_provider"), ("", ""))
        model = key.removeprefix(prefix)
        # What is left of a region or a tier before the id is no id that anybody sends.
        if provider and entry.get("mode") in ("chat", "responses") and _is_id(provider, model):
            yield provider, model, entry


def _is_id(provider: str, model: str) -> bool:
    if provider == "vertex":
        return model.startswith("gemini")  # others on Vertex speak other APIs
    return "/" not in model or provider in ("openrouter", "together", "github", "groq")


def to_row(entry: dict[str, Any]) -> list[Any]:
    threshold = next((int(match[1]) for key in entry if (match := _LONG.match(key))), None)
    return [
        _count(entry.get("max_input_tokens")),
        _count(entry.get("max_output_tokens")),
        *_prices(entry, ""),
        threshold and threshold * 1000,
        *(_prices(entry, f"_above_{threshold}k_tokens") if threshold else [None] * 4),
        _abilities(entry),
    ]


def _prices(entry: dict[str, Any], suffix: str) -> list[float | None]:
    keys = (
        "input_cost_per_token",
        "output_cost_per_token",
        "cache_read_input_token_cost",
        "cache_creation_input_token_cost",
    )
    return [_per_million(entry.get(key + suffix)) for key in keys]


def _per_million(usd_per_token: object) -> float | None:
    return round(usd_per_token * 1e6, 6) if isinstance(usd_per_token, int | float) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _abilities(entry: dict[str, Any]) -> str:
    letters = "".join(letter for key, letter in ABILITIES.items() if entry.get(key) is True)
    return letters + (NO_SAMPLING if entry.get("supports_sampling_params") is False else "")


def differences(models: dict[str, dict[str, list[Any]]]) -> Iterator[str]:
    """Where another table has another price for input or output of the same model."""
    try:
        other = import_module("genai_prices")
    except ImportError:
        yield "genai-prices is not installed: no price was checked"
        return
    usage = other.Usage(input_tokens=1000, output_tokens=1000)
    for provider, rows in models.items():
        for model, values in rows.items():
            try:
                price = other.calc_price(usage, model, provider_id=OTHER_NAMES.get(provider, provider))
            except (LookupError, ValueError, AttributeError):
                continue
            ours, theirs = values[2:4], [float(price.input_price) * 1000, float(price.output_price) * 1000]
            if None not in ours and any(abs(a - b) > 0.01 * max(a, b) for a, b in zip(ours, theirs, strict=True)):
                yield f"{provider}:{model}: {ours} here, {theirs} in genai-prices"


def write_catalog(models: dict[str, dict[str, list[Any]]], source: dict[str, str]) -> None:
    """One line a model, so that a change can be read."""
    head = {"source": {**source, "generated": f"{datetime.now(UTC):%Y-%m-%d}"}, "columns": COLUMNS}
    print(json.dumps(head, indent=1)[:-2] + ',\n "models": {')
    providers = []
    for provider, rows in sorted(models.items()):
        lines = [
            f"   {json.dumps(model)}: {json.dumps(values, separators=(',', ':'))}" for model, values in rows.items()
        ]
        providers.append(f"  {json.dumps(provider)}: {{\n" + ",\n".join(lines) + "\n  }")
    print(",\n".join(providers) + "\n }\n}")


if __name__ == "__main__":
    main()
