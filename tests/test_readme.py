"""The README and the pages of models and reports are true: their commands run and print what is shown."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ci_agent
from ci_agent.exit_codes import EXIT_CODES
from ci_agent.providers.table import PROVIDERS
from ci_agent.reports.table import FORMATS

ROOT = Path(ci_agent.__file__).parent.parent
README = (ROOT / "README.md").read_text()
MODELS = (ROOT / "docs" / "models.md").read_text()
REPORTS = (ROOT / "docs" / "reports.md").read_text()
REPLAY = (ROOT / "docs" / "replay.md").read_text()
TASKS = (ROOT / "docs" / "tasks.md").read_text()

BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^>]*) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


def blocks(page: str, language: str) -> list[tuple[str, str]]:
    """The code blocks of a language, each with the comment before it."""
    return [(match["mark"] or "", match["text"]) for match in BLOCK.finditer(page) if match["language"] == language]


def write_files(page: str, folder: Path) -> None:
    for mark, text in [*blocks(page, "yaml"), *blocks(page, "python")]:
        if mark.startswith("file: "):
            file = folder / mark.removeprefix("file: ")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Each `$` line of a console block with the lines that follow it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def as_pattern(lines: list[str]) -> str:
    """Sizes vary, and `...` stands for any lines."""
    return "".join(
        r"(?:.*\n)*?" if line == "..." else _SIZE.sub(r"[\\d,]+\\ \\w+", re.escape(line)) + r"\n" for line in lines
    )


_SIZE = re.compile(r"[\d,]+\\ (?:bytes|KB)")


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


DEMO = [f"examples/demo/{name}" for name in ("policy.yml", "script.yaml", "run.sh")]

PAGES = {
    "README.md": (README, 4),
    "docs/models.md": (MODELS, 1),
    "docs/replay.md": (REPLAY, 5),
    "docs/tasks.md": (TASKS, 3),
}


REVIEWED = ("src/a.py", "src/b c.py")
"""Files that the page of tasks looks at, whatever is in them."""


@pytest.mark.parametrize(("page", "least"), PAGES.values(), ids=PAGES)
def test_every_command_prints_what_the_page_shows(page: str, least: int, tmp_path: Path) -> None:
    write_files(page, tmp_path)
    for name in REVIEWED if page is TASKS else ():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    shown = [command for _, text in blocks(page, "console") for command in commands(text)]
    assert len(shown) >= least
    for command, lines in shown:
        done = subprocess.run(
            ["bash", "-c", command.replace("ci-agent", f"{sys.executable} -P -m ci_agent", 1)],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(as_pattern(lines), done.stdout), f"{command}\n{done.stdout}"


def test_what_the_readme_shows_of_the_demo_is_what_it_prints(tmp_path: Path) -> None:
    """Times aside, and the tokens, which depend on how long the page itself is."""
    for name in ("README.md", "pyproject.toml", *DEMO):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "ci_agent").mkdir()
    shutil.copytree(ROOT / "ci_agent" / "agent", tmp_path / "ci_agent" / "agent")
    (tmp_path / "demo-out").mkdir()
    git = "git -c user.name=x -c user.email=x@x"
    command = f"git init -q && {git} add -A && {git} commit -qm x && sh examples/demo/run.sh 2>&1"
    done = subprocess.run(
        ["sh", "-ec", command],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout
    ((_, shown),) = blocks(README, "text")
    printed = {_without_counts(line) for line in done.stdout.splitlines()}
    assert [line for line in shown.splitlines() if line != "..." and _without_counts(line) not in printed] == []


def _without_counts(line: str) -> str:
    return re.sub(r"^ *[\d.]+s|[\d,]+ tokens in, [\d,]+ out", "", line)


def test_the_python_example_runs(tmp_path: Path) -> None:
    write_files(README, tmp_path)
    ((_, example),) = blocks(README, "python")
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert (done.returncode, done.stdout) == (0, "deny completed 0\n"), done.stderr


@pytest.mark.parametrize(("policy", "outcome"), [("policy.yml", "1 passed"), ("stricter.yml", "1 failed")])
def test_the_pytest_recipe_of_the_page_of_replays_works(policy: str, outcome: str, tmp_path: Path) -> None:
    write_files(REPLAY, tmp_path)
    (tmp_path / "records").mkdir()
    run = (
        "-P -m ci_agent run --quiet --policy policy.yml --model scripted:script.yaml --transcript records/a.json Count"
    )
    subprocess.run([sys.executable, *run.split()], cwd=tmp_path, env=environment(tmp_path), check=True, timeout=110)
    recipe = tmp_path / "test_policy.py"
    recipe.write_text(recipe.read_text().replace('"policy.yml"', f'"{policy}"'))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert outcome in done.stdout
    assert ("call 2, bash wc -l policy.yml: was ok, is denied by no-count" in done.stdout) == (policy != "policy.yml")


def test_the_table_of_exit_codes_is_the_one_that_counts() -> None:
    rows = re.findall(r"^\| ([0-9+n]+) \| (\w+) \|", README, re.MULTILINE)
    expected = {("128+n" if row.name == "signal" else str(row.code), row.name) for row in EXIT_CODES.values()}
    assert set(rows) == expected


def test_the_page_of_models_names_every_provider() -> None:
    table = MODELS.partition("| provider |")[2].partition("\n\n")[0]
    named = {word for row in table.splitlines()[2:] for word in re.findall(r"`([a-z-]+)`", row.split("|")[1])}
    assert named == set(PROVIDERS)


def test_the_page_of_reports_names_every_format() -> None:
    table = REPORTS.partition("| `--format` |")[2].partition("\n\n")[0]
    assert [row.split("`")[1] for row in table.splitlines()[2:]] == list(FORMATS)
