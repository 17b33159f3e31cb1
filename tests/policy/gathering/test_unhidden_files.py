"""A search that passes hidden files by is denied only where it would come to a forbidden one, as ripgrep does."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.workspace import Workspace

RULES = """
- {id: look, allow: bash, command: ["{rg,xargs,cat,cd,make,export,echo,cp,sort,git} **"], env: [HOME, "LC_*"]}
- {id: files, allow: write}
- {id: secrets, deny: read, path: ["**/.env", "**/.git/config", "**/.cache/*.key"]}
"""


@pytest.fixture
def workspace_of_secrets(put: Put, workspace: Workspace) -> Path:
    for name in (".env", "src/deep/.env", ".git/config", "src/.cache/a.key"):
        put(name, "needle\n")
    put("src/a.py", "needle\n")
    put(".gitignore", ".env\nnode_modules/\n")
    return workspace.root


EVERYDAY = [
    "rg needle",
    "rg needle .",
    "rg -l needle src",
    "rg -n needle -g '!tests'",
    "rg -n 'a|b' --no-ignore",
    "rg -u needle_",
    "cd src && rg needle",
    "rg -l needle | xargs cat",
    "rg --files | sort",
    "LC_ALL=C rg --no-hidden -i needle ./src",
]


@pytest.mark.usefixtures("workspace_of_secrets")
@pytest.mark.parametrize("command", [each for each in EVERYDAY if "-u" not in each and "LC_" not in each])
def test_a_plain_search_passes_by_what_is_hidden(policy: MakePolicy, command: str) -> None:
    assert policy(RULES).decide("bash", {"command": command}).effect == "allow"


@pytest.mark.usefixtures("workspace_of_secrets")
@pytest.mark.parametrize(
    "command",
    [
        "rg --hidden needle",
        "rg -. needle",
        "rg -uu needle",
        "rg --unrestricted needle",
        "rg -g '*' needle",
        "rg -g '.e*' needle",
        "rg -t sh needle",
        "rg --ignore-file x needle",
        "rg needle .env",
        "rg needle src .git/config",
        "rg needle src/.cache",
        "rg -L needle",
        "HOME=src rg needle",
        "env HOME=src rg needle",
        "export RIPGREP_CONFIG_PATH=x; rg needle",
        "echo '!.env' > .ignore && rg needle",
        "echo '!.env' > src/.rgignore; rg needle",
        "cp src/a.py .gitignore && rg needle",
        "git checkout main; rg needle",
        "make x && rg needle",
        "rg -l needle_ | xargs make; rg needle",
    ],
)
def test_a_search_that_may_come_to_it_is_denied(policy: MakePolicy, command: str) -> None:
    assert policy(RULES).decide("bash", {"command": command}).effect == "deny"


@pytest.mark.parametrize("variable", ["RIPGREP_CONFIG_PATH", "XDG_CONFIG_HOME"])
def test_a_variable_that_leads_to_other_settings_takes_nothing_for_granted(
    policy: MakePolicy, workspace_of_secrets: Path, variable: str
) -> None:
    decided = policy(RULES, exported=frozenset({variable}))
    assert decided.decide("bash", {"command": f"rg needle {workspace_of_secrets}"}).rule_id == "secrets"


PLACES = [
    *(".ignore", ".rgignore", ".gitignore", "src/.ignore", "src/deep/.gitignore", "../.ignore", ".git/info/exclude"),
    *("../home/.config/git/ignore", "../home/.gitconfig"),
]
TAKEN_IN = [
    *("!", "!\r", "! ", "!\t", "!/"),
    *("!.env", "!.e*", "!*", "!?env", "![.]env", "!\\.env", "!**/.env", "!{.env,x}", "!src/deep/.*", "!src/**"),
    *(
        "!*.md",
        "!.gitkeep",
        "!src",
        "!a.py",
        ".env",
        "\\!.env",
        "#!.env",
        "x\n!.env\n",
        "\ufeff!.env",
        "!.git",
        "!.cache",
    ),
]


@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("line", TAKEN_IN)
def test_wherever_ripgrep_finds_a_secret_the_search_is_denied(
    policy: MakePolicy, put: Put, workspace_of_secrets: Path, place: str, line: str
) -> None:
    home = workspace_of_secrets.parent / "home"
    if place.endswith(".gitconfig"):
        put("../home/ignored", line)
        line = f"[core]\n\texcludesFile = {home}/ignored\n"
    put(place, f"{line}\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    found = subprocess.run(
        ["rg", "-l", "needle", "."],
        cwd=workspace_of_secrets,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    secrets = {"./.env", "./src/deep/.env", "./.git/config", "./src/.cache/a.key"}
    decision = policy(RULES).decide("bash", {"command": "rg -l needle ."})
    if not secrets.isdisjoint(found):
        assert decision.rule_id == "secrets"
    elif line in ("!*.md", "!.gitkeep", "!src", "!a.py", ".env"):
        assert decision.effect == "allow" or place.endswith(".gitconfig")


@pytest.mark.parametrize("make", ["pipe", "folder", "large", "repository"])
def test_an_ignore_file_that_cannot_be_read_may_take_anything_in(
    policy: MakePolicy, put: Put, workspace_of_secrets: Path, make: str
) -> None:
    file = workspace_of_secrets / "src/.ignore"
    if make == "pipe":
        os.mkfifo(file)
    elif make == "folder":
        file.mkdir()
    elif make == "large":
        file.write_text("x\n" * 200_000)
    else:
        put("src/.git", "gitdir: ../elsewhere\n")
    assert policy(RULES).decide("bash", {"command": "rg needle"}).rule_id == "secrets"
