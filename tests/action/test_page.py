"""The page of the action is what action.yml says, and its workflow one that an auditor lets pass."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import ci_agent

ROOT = Path(ci_agent.__file__).parent.parent
PAGE = (ROOT / "docs" / "github-action.md").read_text()


@pytest.fixture
def action() -> Any:
    return yaml.safe_load((ROOT / "action.yml").read_text())


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def names(cell: str) -> list[str]:
    return re.findall(r"`([a-z-]+)`", cell)


def test_the_table_of_inputs_is_that_of_the_action(action: Any) -> None:
    shown = {name: cells[1].strip("`") for cells in rows("Inputs") for name in names(cells[0])}
    assert shown == {name: spec.get("default", "") for name, spec in action["inputs"].items()}


def test_the_table_of_outputs_is_that_of_the_action(action: Any) -> None:
    assert [name for cells in rows("Outputs") for name in names(cells[0])] == list(action["outputs"])


def workflow() -> str:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert isinstance(text, str)
    return text


def test_the_workflow_of_the_page_uses_the_action_as_its_last_step_with_inputs_that_there_are(action: Any) -> None:
    (job,) = yaml.safe_load(workflow())["jobs"].values()
    last = job["steps"][-1]
    assert re.fullmatch("OWNER/ci-agent@[0-9a-f]{40}", last["uses"])
    assert set(last["with"]) <= set(action["inputs"])
    assert job["permissions"] == {"contents": "read"}


def test_an_auditor_finds_nothing_in_the_workflow_of_the_page(tmp_path: Path) -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    if not zizmor.exists():
        pytest.skip("zizmor is not installed")
    (tmp_path / "review.yml").write_text(workflow())
    done = subprocess.run(
        [str(zizmor), "--offline", "--no-progress", "--pedantic", "review.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
