"""`ci-agent init`: a starter policy, a task and a workflow."""

import os
import shlex
import subprocess
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final, Literal, TypeAlias, get_args

import click

from ci_agent import __version__
from ci_agent.cli.model_options import check_model
from ci_agent.cli.repository_places import refuse_repository_place
from ci_agent.errors import ConfigurationError
from ci_agent.providers.table import parse_model
from ci_agent.starter.base import find_base
from ci_agent.starter.source import PLACEHOLDER, installed_source
from ci_agent.tasks.revisions import is_in_a_repository
from ci_agent.terminal import printable

System: TypeAlias = Literal["github", "gitlab", "none"]

_PLACES: Final[dict[str, str]] = {"policy.yml": "policies/review.yml", "task.yaml": "tasks/review.yaml"}
_WORKFLOWS: Final[dict[System, tuple[str, str]]] = {
    "github": ("github.yml", ".github/workflows/review.yml"),
    "gitlab": ("gitlab.yml", ".gitlab-ci.yml"),
}


@click.command("init", epilog="Example: ci-agent init --model openai:gpt-5 --dry-run")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--ci", type=click.Choice(get_args(System)), help="Which workflow to write. [default: what is found]")
@click.option("--model", metavar="PROVIDER:MODEL", default="anthropic:claude-sonnet-5", show_default=True)
@click.option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
def init_command(folder: Path, ci: System | None, model: str, *, dry_run: bool) -> int:
    """Write a starter policy, a task file and, for the CI system that is found, a workflow. Never over a file.

    They go into DIR, by default the current folder. DIR is made when its parent is there.
    """
    check_model(model, "--model")
    refuse_repository_place(folder, "DIR")
    if not folder.is_dir():
        _make(folder, dry_run=dry_run)
        click.echo(f"{'would be' if dry_run else 'made':<8} {printable(str(folder))}/")
    system = ci or _find_system(folder)
    places = dict(_PLACES) | ({_WORKFLOWS[system][0]: _WORKFLOWS[system][1]} if system in _WORKFLOWS else {})
    for place in places.values():
        _require_room(folder, place)
    words = _words(model, folder)
    for name, place in places.items():
        text = Template(files("ci_agent.starter").joinpath(name).read_text(encoding="utf-8")).substitute(words)
        done = _write(folder / place, text, dry_run=dry_run)
        click.echo(f"{done:<8} {place}")
        if done != "there" and PLACEHOLDER.commit in text:
            click.echo(
                "         OWNER and commit in it stand for where ci-agent comes from: put in what is true for you."
            )
        if done == "there" and place == ".gitlab-ci.yml" and not _mentions_us(folder / place):
            click.echo(f"It has no job for this task yet. Add:\n\n{text}")
    above = _repository_above(folder)
    if above is not None and system == "github":
        click.echo(f"GitHub reads workflows at the root of a repository alone: move this one to {printable(above)}.")
    if system == "none":
        click.echo("No CI system was found: --ci github or --ci gitlab writes its workflow.")
    if not is_in_a_repository(folder):
        click.echo("No git repository is here, and the task asks for a revision to compare with: make one, and commit.")
    there = "" if folder == Path() else f"cd {shlex.quote(str(folder))}; "
    click.echo(f"Next: {there}ci-agent policy check policies/review.yml; ci-agent doctor --task tasks/review.yaml")
    return 0


def _words(model: str, folder: Path) -> dict[str, str]:
    """What the starter files leave open."""
    source = installed_source() or PLACEHOLDER
    return {
        "model": model,
        "base": find_base(folder),
        "version": __version__,
        "key": _key_variable(model),
        "requirement": source.requirement,
        "action": source.action or PLACEHOLDER.action or "",
    }


def _make(folder: Path, *, dry_run: bool) -> None:
    """The last folder of a path alone: with all above it missing, the path is misspelt. Raises ConfigurationError."""
    taken, parent = os.path.lexists(folder), folder.parent
    if taken or not parent.is_dir():
        why = "something else has its name" if taken else f"there is no folder {str(parent)!r}"
        raise ConfigurationError(
            f"the folder {str(folder)!r} cannot be made: {why}. Make it yourself, or name one that is there"
        )
    if not dry_run:
        try:
            folder.mkdir()
        except OSError as error:
            raise ConfigurationError(f"the folder {str(folder)!r} cannot be made: {error.strerror}") from error


def _require_room(folder: Path, place: str) -> None:
    """Before anything is written, so that a refusal leaves no half. Raises ConfigurationError."""
    path = folder / place
    nearest = next((above for above in path.parents if os.path.lexists(above)), folder)
    if os.path.lexists(path) or (not folder.is_dir() and nearest != folder):
        return
    if not nearest.is_dir():
        raise ConfigurationError(f"{str(path)!r} cannot be written: {str(nearest)!r} is no folder; nothing was written")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"{str(path)!r} cannot be written: {str(nearest)!r} takes no files; nothing was written"
        )


def _repository_above(folder: Path) -> str | None:
    """The root of the repository whose subfolder this is; None: it is none."""
    place = Path(os.path.realpath(folder))
    if os.path.lexists(place / ".git"):
        return None
    return next((str(above) for above in place.parents if os.path.lexists(above / ".git")), None)


def _write(path: Path, text: str, *, dry_run: bool) -> str:
    """`written`, `there` or `would be`; ConfigurationError when the file system does not allow it."""
    if path.exists() or path.is_symlink():
        return "there"
    if dry_run:
        return "would be"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigurationError(f"{str(path)!r} cannot be written: {error.strerror}") from error
    return "written"


def _mentions_us(path: Path) -> bool:
    try:
        return path.is_file() and b"ci-agent" in path.read_bytes()
    except OSError:
        return False


def _find_system(folder: Path) -> System:
    """By what lies there, else by where the repository comes from."""
    if (folder / ".github").is_dir():
        return "github"
    if (folder / ".gitlab-ci.yml").exists():
        return "gitlab"
    argv = ["git", "-c", "core.fsmonitor=false", "config", "--local", "--get-regexp", r"^remote\..*\.url$"]
    try:
        found = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "none"
    return "github" if "github" in found else "gitlab" if "gitlab" in found else "none"


def _key_variable(model: str) -> str:
    from ci_agent.providers.servers import SERVERS  # noqa: PLC0415 - brings every API

    server = SERVERS.get(parse_model(model).provider)
    return server.key_variables[0] if server and server.key_variables else "MODEL_API_KEY"
