"""The page about cron is true: its line runs as cron would run it, its units are what systemd takes."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import ci_agent

PAGE = (Path(ci_agent.__file__).parent.parent / "docs" / "cron.md").read_text()
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
KEY = "canary-key-71834-very-secret"

GOOD = """\
turns:
  - tool_calls: [{id: log, name: bash, arguments: {command: "git log --format=%s -1"}}]
  - expect: {log: first}
    text: All quiet.
"""
DENIED = "turns: [{tool_calls: [{name: bash, arguments: {command: git push}}]}, {text: No.}]\n"


@dataclass(frozen=True)
class Machine:
    """A folder that stands for `/`, as the page lays it out."""

    root: Path

    def placed(self, command: str) -> str:
        """With the page's paths where they are here, and systemd's folder of credentials."""
        for path in ("/opt/ci-agent", "/etc/ci-agent", "/srv/site", "/var/lib/ci-agent"):
            command = command.replace(path, f"{self.root}{path}")
        return command.replace("%d/", f"{self.root}/etc/ci-agent/")

    def script(self, text: str) -> None:
        (self.root / "etc" / "ci-agent" / "script.yaml").write_text(text)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """As cron does: a bare environment, no terminal, nothing to read, a folder that is nobody's."""
        return subprocess.run(
            ["env", "-i", "SHELL=/bin/sh", "PATH=/usr/bin:/bin", "/bin/sh", "-c", self.placed(command)],
            cwd=self.root / "nowhere",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
            timeout=110,
        )

    def state(self) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = json.loads(
            (self.root / "var" / "lib" / "ci-agent" / "last-run.json").read_text()
        )
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    for folder in ("opt/ci-agent/bin", "etc/ci-agent", "srv/site", "var/lib", "nowhere"):
        (tmp_path / folder).mkdir(parents=True)
    for name, text in FILES.items():
        if name.startswith("etc/"):
            model = f"model: scripted:{tmp_path}/etc/ci-agent/script.yaml"
            (tmp_path / "etc" / "ci-agent" / Path(name).name).write_text(re.sub("model: .*", model, text))
    (tmp_path / "etc" / "ci-agent" / "key").write_text(f"{KEY}\n")
    (tmp_path / "etc" / "ci-agent" / "key").chmod(0o600)
    command = tmp_path / "opt" / "ci-agent" / "bin" / "ci-agent"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m ci_agent "$@"\n')
    command.chmod(0o755)
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    for arguments in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *arguments], cwd=tmp_path / "srv" / "site", check=True)
    machine.script(GOOD)
    return machine


def crontab_command() -> str:
    """What stands behind the five fields of time."""
    (block,) = re.findall(r"^```crontab\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    mailto, line = block.splitlines()
    assert mailto.startswith("MAILTO=")
    found = re.fullmatch(r"(?:[\d*/,-]+ ){5}(?P<command>[^%]*)", line)
    assert found, "cron would take a % for a line end"
    return found["command"]


def service_command() -> str:
    (command,) = re.findall(r"^ExecStart=(.*)$", FILES["ci-agent-nightly.service"], re.MULTILINE)
    assert isinstance(command, str)
    return command


@pytest.mark.parametrize("command", [crontab_command(), service_command()], ids=["cron", "systemd"])
def test_the_line_runs_as_cron_runs_it_and_says_nothing_when_all_is_well(command: str, machine: Machine) -> None:
    for _ in range(2):
        done = machine.run(command)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    folder = machine.root / "var" / "lib" / "ci-agent"
    assert (folder / "report.txt").read_text() == "All quiet.\n"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    first, second = (
        json.loads((folder / "records" / name).read_text()) for name in sorted(os.listdir(folder / "records"))
    )
    assert "changed since HEAD~20" in first["messages"][0]["content"][0]["text"]
    assert f"changed since {machine.state()['last_good']['revision']}" in second["messages"][0]["content"][0]["text"]
    assert KEY not in json.dumps([first, second])
    assert os.listdir(machine.root / "nowhere") == []


def test_a_night_that_went_wrong_is_a_mail_that_says_so_at_once(machine: Machine) -> None:
    machine.script(DENIED)
    done = machine.run(crontab_command())
    lines = done.stderr.splitlines()
    assert done.returncode == 5
    assert lines[0] == f"ci-agent failed in {machine.root}/srv/site: denied, exit code 5"
    assert lines[-1] == f"Record     {machine.state()['last']['transcript']}"
    assert any("git push" in line for line in lines)
    assert done.stdout == ""
    assert machine.state()["last_good"] is None


def test_what_keeps_a_run_from_starting_is_one_line(machine: Machine) -> None:
    (machine.root / "etc" / "ci-agent" / "nightly.policy.yml").write_text("policy: 1\nrules: x\n")
    done = machine.run(crontab_command())
    assert done.returncode == 3
    (subject,) = done.stderr.splitlines()
    why = f"{machine.root}/etc/ci-agent/nightly.policy.yml:2:"
    assert subject.startswith(f"ci-agent failed in {machine.root}/srv/site: configuration, exit code 3: {why}")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_units_as_they_are(machine: Machine) -> None:
    units = {name: text for name, text in FILES.items() if name.startswith("ci-agent-nightly.")}
    assert sorted(units) == ["ci-agent-nightly.service", "ci-agent-nightly.timer"]
    for name, text in units.items():
        here = re.sub(
            r"^ExecStart=\S+", f"ExecStart={machine.root}/opt/ci-agent/bin/ci-agent", text, flags=re.MULTILINE
        )
        (machine.root / name).write_text(here.replace("User=ci-agent", "User=root"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(machine.root / name) for name in sorted(units))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "breaker", ["RestrictNamespaces", "PrivateUsers", "SystemCallFilter", "MemoryDenyWriteExecute", "ProcSubset"]
)
def test_what_would_break_the_sandbox_or_programs_is_left_out_and_named(breaker: str) -> None:
    assert f"{breaker}=" not in FILES["ci-agent-nightly.service"]
    assert f"`{breaker}=" in PAGE
