"""The reference pages are true: what they show loads, every key is there, and every call is decided as they say."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pydantic import BaseModel

import ci_agent
from ci_agent import RunSettings, load_policy, run
from ci_agent.policy.checks.checkup import run_own_tests
from ci_agent.policy.file.calls import expand_call
from ci_agent.policy.file.document import (
    PROPOSAL_MODELS,
    ExamplesModel,
    LimitsModel,
    PolicyDocument,
    RuleModel,
    TestModel,
)
from ci_agent.providers.script import Script, ScriptedCall, ScriptedError, ScriptedTurn, ScriptedUsage, read_script
from ci_agent.strict_yaml import load_yaml
from ci_agent.tools.table import tools_without_a_run

DOCS = Path(ci_agent.__file__).parent.parent / "docs"

PAGES = {name: (DOCS / name).read_text() for name in ("policy.md", "scripted-model.md")}

MARKED = re.compile(r"^<!-- (?P<mark>\w+) -->\n```yaml\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

ROW = re.compile(r"^\| `(?P<tool>\w+): (?P<value>.*?)` \| (?P<answer>allow|deny) \| (?P<by>\S+) \|", re.MULTILINE)

SCHEMAS = {name: tool.parameters for name, tool in tools_without_a_run().items()}


def blocks(mark: str) -> list[str]:
    """The YAML blocks of both pages with this mark."""
    return [found["text"] for page in PAGES.values() for found in MARKED.finditer(page) if found["mark"] == mark]


def decisions() -> list[tuple[str, str, str, str]]:
    """The rows of the table of calls: tool, value, answer, and the rule or the code that decides."""
    _, mark, after = PAGES["policy.md"].partition("<!-- decisions -->\n")
    assert mark, "the table of calls is gone"
    table = after.partition("\n\n")[0]
    rows = [(row["tool"], row["value"].replace("\\|", "|"), row["answer"], row["by"]) for row in ROW.finditer(table)]
    assert len(rows) == len(table.splitlines()) - 2 > 20, "a row of the table is not written like the others"
    return rows


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The one that the page describes."""
    for name in ("README.md", "src/app.py", "tests/test_app.py", "build/out.js", "logs/today.txt"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("Hello\n")
    return tmp_path


def test_every_yaml_block_is_marked_and_so_tried() -> None:
    for name, page in PAGES.items():
        assert page.count("```yaml") == len(MARKED.findall(page)) > 0, name
    assert {mark for page in PAGES.values() for mark, _ in MARKED.findall(page)} == {"policy", "script"}


@pytest.mark.parametrize("text", blocks("policy"))
def test_a_policy_of_the_pages_loads_and_passes_its_own_tests(text: str, workspace: Path) -> None:
    results = run_own_tests(load_policy(text=text, workspace=workspace), SCHEMAS)
    assert results
    assert [result for result in results if not result.passed] == []


@pytest.mark.parametrize("text", blocks("script"))
def test_a_script_of_the_pages_loads(text: str, tmp_path: Path) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(text)
    assert read_script(file)[0].turns


@pytest.mark.parametrize(("tool", "value", "answer", "by"), decisions())
def test_a_call_of_the_table_is_decided_as_it_says(
    tool: str, value: str, answer: str, by: str, workspace: Path
) -> None:
    written = load_yaml(value, "call").value if value.startswith("{") else value
    decision = load_policy(text=blocks("policy")[0], workspace=workspace).decide(tool, expand_call(tool, written))
    assert (decision.effect, decision.rule_id or decision.code) == (answer, by), decision.reason


@pytest.mark.parametrize("model", [PolicyDocument, RuleModel, LimitsModel, ExamplesModel, TestModel, *PROPOSAL_MODELS])
def test_every_key_of_a_policy_is_in_its_example(model: type[BaseModel]) -> None:
    example = blocks("policy")[0]
    assert [key for key in model.model_fields if not re.search(rf"\b{key}:", example)] == []


@pytest.mark.parametrize("model", [Script, ScriptedTurn, ScriptedCall, ScriptedUsage, ScriptedError])
def test_every_key_of_a_script_is_in_its_example(model: type[BaseModel]) -> None:
    example = blocks("script")[0]
    assert [key for key in model.model_fields if not re.search(rf"\b{key}:", example)] == []


JQ_LINES = re.findall(r"^jq -r '(.*)' t\.json$", (DOCS / "transcript.md").read_text(), re.MULTILINE)


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_lines_for_jq_tell_of_a_record_what_the_page_says(workspace: Path) -> None:
    script = workspace / "script.yaml"
    calls = "{name: bash, arguments: {command: git push}}, {name: read, arguments: {path: README.md}}"
    script.write_text(f"turns: [{{tool_calls: [{calls}]}}, {{text: No.}}]")
    policy = load_policy(text="policy: 1\nrules: [{id: no-push, deny: bash, command: git push}]", workspace=workspace)
    record = workspace.parent / "t.json"
    run(RunSettings(prompt="Go.", policy=policy, model=f"scripted:{script}", environment={}, transcript=record))
    told = [subprocess.check_output(["jq", "-r", line, record], text=True).splitlines() for line in JQ_LINES]
    assert told == [["1 bash no-push", "2 read default"], ["5 2 denied, 0 failed"]]
