from pathlib import Path

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.sandbox.access import Access
from ci_agent.sandbox.confinement import Wrapper
from ci_agent.sandbox.landlock import Ruleset
from ci_agent.sandbox.sandbox import Requested, Sandbox, confine, find_sandbox


def program(folder: Path, text: str) -> str:
    """A search path on which bubblewrap is this script."""
    script = folder / "bwrap"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("requested", ["auto", "required"])
def test_landlock_comes_first(tmp_path: Path, requested: Requested) -> None:
    found = find_sandbox(requested, program(tmp_path, "exit 0"), landlock_abi=3)
    assert found == Sandbox("landlock", abi=3)
    assert str(found) == "landlock (ABI 3)"


@pytest.mark.parametrize("requested", ["auto", "required"])
def test_bubblewrap_comes_second_when_it_works(tmp_path: Path, requested: Requested) -> None:
    found = find_sandbox(requested, program(tmp_path, "exit 0"), landlock_abi=0)
    assert found == Sandbox("bubblewrap", program=str(tmp_path / "bwrap"))
    assert str(found) == "bubblewrap"


def test_without_bubblewrap_on_the_path_there_is_none_and_it_says_what_was_looked_for(tmp_path: Path) -> None:
    found = find_sandbox("auto", str(tmp_path), landlock_abi=0)
    why = (
        "this kernel offers no Landlock (Linux 5.13 or later has it), and bubblewrap cannot be used: it is not on PATH"
    )
    assert found == Sandbox("none", why_none=why)


def test_a_bubblewrap_that_does_not_work_is_none(tmp_path: Path) -> None:
    path = program(tmp_path, "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    found = find_sandbox("auto", path, landlock_abi=0)
    assert found.kind == "none"
    assert (found.why_none or "").endswith("cannot be used: bwrap: setting up uid map: Permission denied")


def test_a_bubblewrap_in_a_relative_folder_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "exit 0")
    monkeypatch.chdir(tmp_path)
    assert find_sandbox("auto", ".:", landlock_abi=0).kind == "none"


def test_a_required_sandbox_that_is_not_there_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a sandbox is required and there is none: this kernel offers no Land"):
        find_sandbox("required", str(tmp_path), landlock_abi=0)


def test_off_means_none_whatever_is_there(tmp_path: Path) -> None:
    assert find_sandbox("off", program(tmp_path, "exit 0"), landlock_abi=7) == Sandbox("none")


def test_each_kind_confines_in_its_own_way() -> None:
    assert isinstance(confine(Sandbox("landlock", abi=1), Access()), Ruleset)
    wrapper = confine(Sandbox("bubblewrap", program="/usr/bin/bwrap"), Access())
    assert isinstance(wrapper, Wrapper)
    assert wrapper.argv[0] == "/usr/bin/bwrap"
    assert wrapper.argv[-1] == "--"
    assert confine(Sandbox("none"), Access()) is None
