"""A workspace that nobody has chosen: what a service or a job is started in."""

from pathlib import Path
from typing import Any

import pytest
from forked_command import Run


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    (tmp_path / "script.yaml").write_text("turns: [{text: hi}]\n")
    return ["--policy", "deny-all", "--model", f"scripted:{tmp_path}/script.yaml", "--output", "text"]


@pytest.mark.parametrize("given", [[], ["--workspace", "."], ["--workspace", ""], ["--workspace", "usr/.."]])
@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_the_whole_machine_is_no_workspace_by_chance(
    flags: list[str], given: list[str], quiet: list[str], run_command: Run, environment: dict[str, str]
) -> None:
    done = run_command(["run", *flags, *given, *quiet, "Hi."], cwd=Path("/"), env=environment)
    assert (done.returncode, done.stdout) == (3, "")
    assert "the workspace would be /, the whole machine: " in done.stderr


@pytest.mark.parametrize("env", [{}, {"CI_AGENT_WORKSPACE": "/"}])
def test_who_says_so_gets_the_whole_machine(
    flags: list[str], env: dict[str, str], run_command: Run, environment: dict[str, str]
) -> None:
    given = [] if env else ["--workspace", "/"]
    done = run_command(["run", *flags, *given, "Hi."], cwd=Path("/"), env=environment | env)
    assert (done.returncode, done.stdout) == (0, "hi\n"), done.stderr
    assert "warning: the workspace" not in done.stderr


def test_doctor_says_so_too(flags: list[str], run_command: Run, environment: dict[str, str]) -> None:
    asked = ["doctor", *flags[:4], "Hi."]
    done = run_command(asked, cwd=Path("/"), env=environment)
    assert done.returncode == 3
    missing = [line for line in done.stdout.splitlines() if line.startswith("missing")]
    said = "missing  workspace   the workspace would be /, the whole machine: name the folder of the project with"
    assert [line.startswith(said) for line in missing] == [True], done.stdout


@pytest.mark.parametrize(
    ("folder", "what"), [("home", "your home folder {home}"), (".", "{folder}, which holds your home folder")]
)
def test_a_home_folder_is_warned_of_even_if_the_run_is_quiet(
    folder: str, what: str, flags: list[str], run_command: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    place = (tmp_path / folder).resolve()
    told = f"the workspace is {what.format(home=environment['HOME'], folder=place)}, with all that lies there: "
    for quiet in ([], ["--quiet"]):
        done = run_command(["run", *flags, *quiet, "Hi."], cwd=place, env=environment)
        warnings = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
        assert (done.returncode, [line.startswith(f"warning: {told}") for line in warnings]) == (0, [True])
    shown = run_command(["doctor", *flags[:4], "Hi."], cwd=place, env=environment).stdout
    assert f"warning  workspace   {told}" in shown
    meant: Any = run_command(["run", *flags, "--quiet", "--workspace", str(place), "Hi."], cwd=place, env=environment)
    assert (meant.returncode, meant.stderr) == (0, "")


def test_a_root_that_is_mounted_elsewhere_is_the_same_machine(
    flags: list[str], run_command: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").symlink_to("/")
    done = run_command(["run", *flags, "--workspace", "elsewhere", "Hi."], cwd=tmp_path, env=environment)
    assert (done.returncode, "the whole machine" in done.stderr) == (3, True)
