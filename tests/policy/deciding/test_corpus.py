"""The shared corpus of calls with their right answers, through the product's own loader."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci_agent.policy.decide import compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.protected import Surroundings
from ci_agent.workspace import open_workspace

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "policy" / "cases.jsonl"


def cases() -> Iterator[Any]:
    if not CORPUS.exists():
        yield pytest.param(None, marks=pytest.mark.skip(reason="the shared corpus is not beside this checkout"))
        return
    for line in CORPUS.read_text().splitlines():
        case = json.loads(line)
        yield pytest.param(case, id=case["id"])


@pytest.mark.parametrize("case", list(cases()))
def test_the_corpus_gets_its_answer(case: dict[str, Any], tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    lay_out(root, _placed(case.get("fixture", {}), root))
    policy_file = tmp_path / "policy.yml"
    policy_file.write_text(as_policy(case["rules"]))
    policy = compile_policy(
        load_policy_source(policy_file), open_workspace(root), around=Surroundings(home=tmp_path / "home")
    )
    decision = policy.decide(case["tool"], _placed(case["args"], root))
    assert (decision.effect, decision.code == "engine_error") == (case["expect"], False), decision.reason


def as_policy(rules: list[dict[str, Any]]) -> str:
    if not rules:
        return "policy: 1\nextends: deny-all\n"
    return yaml.safe_dump({"policy": 1, "rules": [_as_rule(at, rule) for at, rule in enumerate(rules)]})


def _as_rule(at: int, rule: dict[str, Any]) -> dict[str, Any]:
    matchers = {key: value for key, value in rule.items() if key not in ("effect", "tool")}
    if "command" in matchers:
        matchers["command"] = [matchers["command"]]
    return {"id": f"rule-{at}", rule["effect"]: rule["tool"], **matchers}


def lay_out(root: Path, fixture: dict[str, Any]) -> None:
    for folder in fixture.get("dirs", ()):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name in fixture.get("files", ()):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text\n")
    for link, target in fixture.get("symlinks", {}).items():
        (root / link).parent.mkdir(parents=True, exist_ok=True)
        (root / link).symlink_to(target)


def _placed(value: Any, root: Path) -> Any:
    if isinstance(value, str):
        return value.replace("@WS@", str(root))
    if isinstance(value, list):
        return [_placed(item, root) for item in value]
    if isinstance(value, dict):
        return {_placed(key, root): _placed(item, root) for key, item in value.items()}
    return value
