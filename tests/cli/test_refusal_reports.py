"""A run that is refused writes the reports that a later step waits for, and nothing else."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from ci_agent.reports.table import FORMATS

CIAgent = Callable[..., Any]

RUN = ("run", "--model", "scripted:s.yaml", "Look.")
WRONG = "policy: 1\nrules: [{id: a, alow: ls}]\n"
WHY = 'p.yml:2:17: unknown key "alow": did you mean "allow"?'


@pytest.fixture(autouse=True)
def files(workspace: Path) -> None:
    (workspace / "p.yml").write_text(WRONG)
    (workspace / "s.yaml").write_text("turns: [{text: x}]\n")


def failed_case(path: Path) -> tuple[str | None, str | None]:
    """Kind and text of the one case of a JUnit report."""
    (case,) = ET.parse(path).iter("testcase")
    (error,) = case.iter("error")
    return error.get("type"), error.text


def test_each_format_says_why_the_run_was_refused(ci_agent: CIAgent, workspace: Path) -> None:
    reports = [word for name in FORMATS for word in ("--report", f"{name}=out.{name}")]
    done = ci_agent(*RUN, "--policy", "p.yml", *reports)
    assert (done.returncode, done.stderr) == (3, f"ci-agent: {WHY}\n")
    for name in FORMATS:
        assert "unknown key" in (workspace / f"out.{name}").read_text(), name
    kind, text = failed_case(workspace / "out.junit")
    assert (kind, text) == ("configuration", f"{WHY}\nCorrect what the message names and run again.")
    assert json.loads((workspace / "out.sarif").read_text())["runs"][0]["invocations"][0]["exitCode"] == 3
    assert (workspace / "out.text").read_text().startswith("Run of which this report has no record\n")


@pytest.mark.parametrize(
    ("args", "variables", "kind", "code"),
    [
        (("--policy", "read-only", "--bogus", "--report", "junit=out.xml"), {}, "usage", 2),
        (("--report=junit=out.xml",), {}, "usage", 2),
        (("--policy", "p.yml"), {"CI_AGENT_REPORT": "junit=out.xml"}, "configuration", 3),
        (("--policy", "read-only", "--max-turns", "0"), {"CI_AGENT_REPORT": "junit=out.xml"}, "usage", 2),
        (("--task", "wrong.yaml", "--report", "junit=out.xml"), {}, "configuration", 3),
        (("--task", "task.yaml"), {}, "configuration", 3),
    ],
)
def test_wherever_the_report_was_asked_for_it_is_written(
    args: tuple[str, ...], variables: Mapping[str, str], kind: str, code: int, ci_agent: CIAgent, workspace: Path
) -> None:
    (workspace / "wrong.yaml").write_text("task: 1\npromt: x\n")
    (workspace / "task.yaml").write_text("task: 1\nprompt: x\npolicy: p.yml\nreports: {junit: out.xml}\n")
    model = () if "--task" in args else ("Look.",)
    done = ci_agent("run", "--model", "scripted:s.yaml", *args, *model, env=variables)
    assert (done.returncode, failed_case(workspace / "out.xml")[0]) == (code, kind)


def test_nothing_that_is_there_is_replaced_by_a_run_that_was_refused(ci_agent: CIAgent, workspace: Path) -> None:
    (workspace / "old.xml").write_text("of an earlier run")
    before = {path.name: path.read_bytes() for path in workspace.iterdir()}
    reports = ("--report", "junit=old.xml", "--report", "text=p.yml", "--report", "sarif=no/folder")
    done = ci_agent(*RUN, "--policy", "p.yml", *reports, "--report", "text=-", "--report", "jnit=x", "--report", "html")
    assert done.returncode == 3
    assert done.stderr.splitlines()[:-1] == [
        "warning: the report 'old.xml' is not written: a file is there already and is left as it was",
        "warning: the report 'p.yml' is not written: a file is there already and is left as it was",
        "warning: the report 'no/folder' is not written: No such file or directory",
    ]
    assert {path.name: path.read_bytes() for path in workspace.iterdir()} == before


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("no/folder", "the report 'no/folder' cannot be written: name a file in an existing folder that takes one"),
        ("link/out.xml", "the report 'link/out.xml' cannot be written: name a file in an existing folder"),
        (".git/x", "--report junit cannot go there: .git/x lies where git keeps a repository"),
        ("s.yaml", "--report junit cannot go there: s.yaml is what --model reads"),
    ],
)
def test_why_a_report_cannot_go_where_it_was_to_is_said_once(
    ci_agent: CIAgent, workspace: Path, file: str, why: str
) -> None:
    (workspace / ".git").mkdir()
    (workspace / "link").symlink_to(workspace / "nowhere")
    done = ci_agent(*RUN, "--policy", "read-only", "--report", f"junit={file}")
    assert why in done.stderr
    assert "warning" not in done.stderr


@pytest.mark.parametrize("name", ["link/out.xml", "dangling.xml", "{workspace}/link/out.xml", "sub/../link/out.xml"])
def test_attack_a_link_leads_the_report_out_of_the_checkout(
    name: str, ci_agent: CIAgent, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (workspace / "link").symlink_to(tmp_path / "home")
    (workspace / "dangling.xml").symlink_to(tmp_path / "home" / "out.xml")
    (workspace / "sub").mkdir()
    done = ci_agent(*RUN, "--policy", "p.yml", "--report", f"junit={name.format(workspace=workspace)}")
    assert (done.returncode, "its name is a link, or leads through one" in done.stderr) == (3, True)
    assert not (tmp_path / "home" / "out.xml").exists()


def test_no_key_is_in_a_report_of_a_refusal(ci_agent: CIAgent, workspace: Path) -> None:
    key = "sk-canary-0123456789"
    ci_agent(*RUN, "--policy", f"{key}.yml", "--report", "junit=out.xml", env={"OPENAI_API_KEY": key})
    text = (workspace / "out.xml").read_text()
    assert ("[redacted]" in text, key in text) == (True, False)


@pytest.mark.parametrize(
    "options",
    [
        ("--report", "html=x", "--report", "junit=./x"),
        ("--transcript", "t.json", "--report", "text=t.json"),
        ("--transcript", "t.json", "--report", "text=t.json.journal"),
        ("--lock", "l", "--report", "text=l"),
        ("--answer-file", "a", "--report", "text=a"),
        ("--bogus", "--transcript=t.json", "--report", "text=t.json.journal"),
        ("--bogus", "--report", "text=of-the-variable"),
        ("--report", "text=of-the-variable"),
    ],
)
def test_no_report_of_a_refusal_stands_where_another_result_goes(
    options: tuple[str, ...], ci_agent: CIAgent, workspace: Path
) -> None:
    """A later run would find no journal, or no lock, of its own there."""
    variables = {"CI_AGENT_PROPOSALS": "of-the-variable"}
    assert ci_agent(*RUN, "--policy", "p.yml", *options, env=variables).returncode in {2, 3}
    assert sorted(path.name for path in workspace.iterdir()) == ["p.yml", "s.yaml"]


def test_a_name_that_no_file_can_have_hides_no_message(ci_agent: CIAgent, workspace: Path) -> None:
    (workspace / "task.yaml").write_text('task: 1\nprompt: x\npolicy: p.yml\nreports: {junit: "a\\0b"}\n')
    done = ci_agent("run", "--task", "task.yaml", "--model", "scripted:s.yaml")
    assert (done.returncode, WHY in done.stderr, "Traceback" in done.stderr) == (3, True, False), done.stderr
