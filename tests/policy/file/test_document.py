import jsonschema
import pytest

from ci_agent.json_types import Json
from ci_agent.policy.file.document import policy_schema
from ci_agent.policy.file.shipped import shipped_policy_names, shipped_policy_path
from ci_agent.strict_yaml import load_yaml, read_yaml


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = policy_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", shipped_policy_names())
def test_the_schema_accepts_every_shipped_policy(name: str, validator: jsonschema.Draft202012Validator) -> None:
    assert list(validator.iter_errors(read_yaml(shipped_policy_path(name), "policy").value)) == []


@pytest.mark.parametrize(
    "text",
    [
        "rules: [{id: a, allow: read}]",
        "{policy: 2, extends: read-only}",
        "{policy: 1, rules: []}",
        "{policy: 1, rules: [{id: a}]}",
        "{policy: 1, rules: [{id: a, allow: read, deny: read}]}",
        "{policy: 1, rules: [{id: a, allow: read, pth: src}]}",
        "{policy: 1, rules: [{id: a, allow: []}]}",
        "{policy: 1, rules: [{id: a, allow: bash, command: [[]]}]}",
        "{policy: 1, rules: [{id: a, allow: x__y, args: {a: {enun: [1]}}}]}",
        "{policy: 1, rules: [{id: a, allow: read, path: }]}",
        "{policy: 1, rules: [{id: a, allow: read, max_calls: 0}]}",
        "{policy: 1, rules: [{id: a, allow: bash}]}",
        "{policy: 1, rules: [{id: a, allow: [read, bash]}]}",
        "{policy: 1, rules: [{id: a, allow: '{ls,bash}'}]}",
        "{policy: 1, rules: [{id: a, allow: '*'}]}",
        "{policy: 1, rules: [{id: a, deny: bash, has: -f}]}",
        "{policy: 1, rules: [{id: a, allow: read, paths: src}]}",
        "{policy: 1, extends: read-only, on_denied: halt}",
        "{policy: 1, extends: read-only, limits: {max_turns: 0}}",
        "{policy: 1, extends: read-only, tests: [{allow: {read: x}, deny: {read: x}}]}",
        "{policy: 1, extends: read-only, tests: [{allow: {read: x, ls: x}}]}",
    ],
)
def test_the_schema_refuses_what_an_editor_can_show(text: str, validator: jsonschema.Draft202012Validator) -> None:
    assert list(validator.iter_errors(load_yaml(text, "f.yml").value)) != []


@pytest.mark.parametrize(
    "rule",
    ["allow: bash, command: ls", "allow: [read, bash], command: ls", "allow: bashful", "deny: bash", "allow: x__bash"],
)
def test_the_schema_wants_commands_for_bash_alone(rule: str, validator: jsonschema.Draft202012Validator) -> None:
    assert list(validator.iter_errors(load_yaml(f"{{policy: 1, rules: [{{id: a, {rule}}}]}}", "f.yml").value)) == []


def properties(schema: Json) -> list[tuple[str, Json]]:
    if isinstance(schema, list):
        return [found for item in schema for found in properties(item)]
    if not isinstance(schema, dict):
        return []
    here = list(schema.get("properties", {}).items())
    return here + [found for value in schema.values() for found in properties(value)]


def test_every_key_has_a_description_for_editors() -> None:
    found = properties(policy_schema())
    assert len({name for name, _ in found}) >= 40
    assert [name for name, schema in found if not schema.get("description")] == []


def test_the_schema_names_no_value_of_python() -> None:
    assert "{'type': 'null'}" not in str(policy_schema())
    assert "None" not in str(policy_schema())
