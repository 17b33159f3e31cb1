"""`ci-agent models`."""

import json
from pathlib import Path
from typing import Any

OWN = """models:
  ollama:qwen3: {context_tokens: 40960, price: {input: 0, output: 0}, thinks: true}
  ollama:other: {}
"""


def test_it_lists_what_is_known_and_marks_what_is_not(ci_agent: Any, workspace: Path) -> None:
    (workspace / "models.yml").write_text(OWN)
    done = ci_agent("models", "ollama:", "--models-file", "models.yml")
    assert done.stdout.splitlines()[:3] == [
        "MODEL         CONTEXT  ANSWER  INPUT  OUTPUT  CACHE READ  CACHE WRITE",
        "ollama:other        ?       ?      ?       ?           ?            ?",
        "ollama:qwen3   40,960       ?      0       0           ?            ?  thinks",
    ]
    assert done.stdout.splitlines()[3].startswith("Limits and prices: litellm ")
    assert (done.returncode, done.stderr) == (0, "")


def test_json_holds_the_same_facts_with_null_for_unknown(ci_agent: Any, workspace: Path) -> None:
    (workspace / "models.yml").write_text(OWN)
    done = ci_agent("models", "OLLAMA:QWEN", "--json", env={"CI_AGENT_MODELS_FILE": "models.yml"})
    document = json.loads(done.stdout)
    assert document["models"] == {
        "ollama:qwen3": {
            "context_tokens": 40960,
            "max_output_tokens": None,
            "price": {"input": 0.0, "output": 0.0, "cache_read": None, "cache_write": None},
            "long_context_tokens": None,
            "long_context_price": None,
            "thinks": True,
            "adaptive_thinking": None,
            "sees_images": None,
            "takes_temperature": None,
            "enforces_schema": None,
        }
    }
    assert document["source"]["name"] == "litellm"


def test_a_name_that_nothing_contains_is_said_and_is_no_failure(ci_agent: Any) -> None:
    done = ci_agent("models", "no-such-model")
    assert done.returncode == 0
    assert done.stdout.startswith("No known model's name contains 'no-such-model'.")


def test_a_wrong_file_of_ones_own_exits_3_with_its_place(ci_agent: Any, workspace: Path) -> None:
    (workspace / "models.yml").write_text("models:\n  a:b: {contxt_tokens: 1}\n")
    done = ci_agent("models", "--models-file", "models.yml")
    assert done.returncode == 3
    assert "models.yml:2:9" in done.stderr
    assert "context_tokens" in done.stderr
