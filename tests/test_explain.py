"""A call explained is decided as in a run: the schema first, then the policy."""

import json
from pathlib import Path
from random import Random

import pytest

from ci_agent import Limits, Policy, RunSettings, load_policy, run
from ci_agent.explain import explain_call
from ci_agent.json_types import JsonObject
from ci_agent.tools.table import tools_without_a_run


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    rules = "rules: [{id: e, allow: edit}, {id: x, allow: x__y}]"
    return load_policy(text=f"policy: 1\n{rules}\n", workspace=tmp_path)


def test_arguments_are_repaired_as_in_a_run_before_they_are_judged(policy: Policy) -> None:
    as_text = '{"path": "a.txt", "edits": "[{\\"old\\": \\"a\\", \\"new\\": \\"b\\"}]"}'
    assert explain_call(policy, tools_without_a_run(), "edit", as_text).effect == "allow"


@pytest.mark.parametrize("raw", ['{"path": 1}', "[]", "nonsense", '{"path": "a", "path": "b"}', '{"path": NaN}'])
@pytest.mark.parametrize("tool", ["edit", "x__y"])
def test_what_a_run_would_refuse_before_the_policy_is_denied_with_its_own_code(
    policy: Policy, tool: str, raw: str
) -> None:
    decision = explain_call(policy, tools_without_a_run(), tool, raw)
    if tool == "x__y" and raw == '{"path": 1}':
        assert decision.code != "arguments"  # nobody knows its schema here
    else:
        assert (decision.effect, decision.code) == ("deny", "arguments")


# Against a run

RULES = """
policy: 1
rules:
  - {id: look, allow: [read, ls, find, grep]}
  - {id: source, allow: [write, edit], path: "src/**"}
  - {id: say, allow: bash, command: [["echo", "**"], ["git", "{status,log}", "**"], ["cat", "**"]], env: [A]}
  - {id: get, allow: fetch, host: ["*.invalid"]}
  - {id: secrets, deny: [read, grep, write, edit], path: ["**/.env", "secret/**"], because: they are}
"""

WORDS = (
    *("a", ".", "..", "/etc/passwd", ".env", "src/a.txt", "secret/x", "src/../.env", "/proc/self/environ", "~", "link"),
    *(
        "echo hi",
        "git status",
        "cat .env",
        "echo a; rm b",
        "echo $(id)",
        "A=1 echo",
        "cat <<E\nx\nE",
        "echo 'x",
        "rm -rf /",
    ),
    *(
        "https://a.invalid/",
        "http://a.invalid/",
        "https://127.0.0.1/",
        "https://a.invalid:8443/",
        "\u202e",
        "",
        "*",
        "**/*",
    ),
)


def random_call(source: Random) -> tuple[str, str]:
    """A tool's name and the text of arguments, most of them about right."""
    tools = tools_without_a_run()
    name = source.choice([*tools, "nothing"])
    fields = tools[name].parameters["properties"] if name in tools else {"a": {"type": "string"}}
    chosen = [field for field, schema in fields.items() if source.random() < (0.9 if "path" in field else 0.6)]
    arguments = {field: random_value(fields[field], source) for field in chosen}
    return name, json.dumps(arguments) if source.random() < 0.97 else source.choice(["{", "[]", '{"a": NaN}'])


def random_value(schema: JsonObject, source: Random) -> object:
    if source.random() < 0.05:
        return source.choice([None, True, -1, 1.0, [], {}, "5"])
    match schema.get("type"):
        case "integer" | "number":
            return source.randrange(1, 9)
        case "boolean":
            return source.random() < 0.5
        case "array":
            return [{"old": source.choice(WORDS), "new": "b"}]
        case _:
            return source.choice(schema.get("enum", WORDS))


@pytest.mark.parametrize("count", [250, pytest.param(5_000, marks=pytest.mark.hard)])
def test_what_is_explained_is_what_a_run_decides(tmp_path: Path, count: int) -> None:
    for file in ("a", ".env", "src/a.txt", "secret/x"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("text\n")
    (tmp_path / "link").symlink_to("secret")
    source = Random(count)
    calls = [random_call(source) for _ in range(count)]
    policy = load_policy(text=RULES, workspace=tmp_path)
    tools = tools_without_a_run()
    explained = [explain_call(policy, tools, name, text) for name, text in calls]
    turns = [
        {"tool_calls": [{"name": name, "arguments_json": text} for name, text in calls[start : start + 50]]}
        for start in range(0, count, 50)
    ]
    script = tmp_path.parent / f"{tmp_path.name}.yaml"
    script.write_text(json.dumps({"turns": [*turns, {"text": "Done."}]}))
    limits = Limits(max_tool_calls=2 * count, max_turns=2 * count)
    done = run(RunSettings(prompt="Go.", policy=policy, model=f"scripted:{script}", limits=limits, sandbox="off"))
    ran = done.transcript["tool_calls"]
    assert len(ran) == count
    for (name, text), decision, call in zip(calls, explained, ran, strict=True):
        if call["stage"] == "lookup":
            assert name == "nothing"
        elif call["decision"] is None:
            assert (call["stage"], decision.code) == ("arguments", "arguments")
        else:
            recorded = tuple(call["decision"][key] for key in ("effect", "code", "rule_id", "reason"))
            assert recorded == (decision.effect, decision.code, decision.rule_id, decision.reason), (name, text)
