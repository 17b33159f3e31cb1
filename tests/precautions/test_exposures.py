"""What unconfined commands can reach is said before they run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.precautions import exposures
from ci_agent.precautions.exposures import find_exposures
from ci_agent.process import open_processes


@pytest.fixture
def no_secret_above(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may well have a token in the environment."""
    monkeypatch.setattr(exposures, "_open_ancestors", lambda: iter(()))


def exposures_of(secrets: tuple[str, ...], environment: dict[str, str]) -> list[str]:
    with open_processes() as processes:
        return list(find_exposures(secrets, environment, processes, CancelToken()))


def with_sudo(folder: Path, script: str) -> dict[str, str]:
    sudo = folder / "sudo"
    sudo.write_text(f"#!/bin/sh\n{script}\n")
    sudo.chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.usefixtures("no_secret_above")
def test_sudo_without_a_password_is_reported_and_asked_in_a_way_that_cannot_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposures, "SUDO_WITHIN_S", 60.0)  # a busy machine may take longer than two to start it
    asked = tmp_path / "asked"
    environment = with_sudo(tmp_path, f'printf "%s " "$@" > {asked}')
    [line] = exposures_of((), environment)
    assert line.startswith("sudo asks for no password here: ")
    assert asked.read_text() == "-n true "


@pytest.mark.usefixtures("no_secret_above")
@pytest.mark.parametrize("script", ["exit 1", "echo a password is required >&2; exit 1", "kill -9 $$", "read answer"])
def test_sudo_that_wants_a_password_is_no_way_in(tmp_path: Path, script: str) -> None:
    assert exposures_of((), with_sudo(tmp_path, script)) == []


@pytest.mark.usefixtures("no_secret_above")
def test_sudo_that_does_not_answer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposures, "SUDO_WITHIN_S", 0.2)
    environment = with_sudo(tmp_path, "exec /bin/sleep 60")
    assert exposures_of((), environment) == []


@pytest.mark.usefixtures("no_secret_above")
def test_a_run_that_is_cancelled_meanwhile_says_so_in_its_record_and_not_here(tmp_path: Path) -> None:
    cancel = CancelToken()
    cancel.cancel("received SIGTERM")
    with open_processes() as processes:
        assert list(find_exposures((), with_sudo(tmp_path, "exec /bin/sleep 60"), processes, cancel)) == []


@pytest.mark.usefixtures("no_secret_above")
def test_without_sudo_nothing_is_started(tmp_path: Path) -> None:
    assert exposures_of((), {"PATH": str(tmp_path)}) == []


@pytest.mark.usefixtures("no_secret_above")
@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's commands cannot read memory that is closed")
def test_root_is_told_that_its_commands_read_everything(tmp_path: Path) -> None:
    [line] = exposures_of(("the-key-1234",), {"PATH": str(tmp_path)})
    assert line.startswith("root runs this without a sandbox: ")


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here")
def test_a_process_above_that_shows_a_secret_is_named_and_its_value_is_not() -> None:
    script = (
        "from ci_agent.cancellation import CancelToken; from ci_agent.precautions.exposures import find_exposures;"
        "from ci_agent.process import Processes;"
        "print(*find_exposures((), {}, Processes(), CancelToken()), sep='\\n')"
    )
    environment = {
        **{name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
        "API_KEY_ONE": "canary-123456789",
        "API_KEY_TWO": "canary-123456789",
        "HARMLESS": "canary-123456789",
        "SHORT_KEY": "short",
    }
    shell = ["bash", "-c", '"$@"; exit', "bash", sys.executable, "-c", script]
    done = subprocess.run(shell, env=environment, capture_output=True, text=True, check=True)
    line = done.stdout.splitlines()[0]
    assert "(bash), which started this run, shows API_KEY_ONE, API_KEY_TWO to commands" in line
    assert "canary" not in done.stdout
