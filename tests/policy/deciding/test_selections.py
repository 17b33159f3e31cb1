"""A search of a folder that holds a forbidden file is denied only if it would come to that file."""

from pathlib import Path

import pytest

from ci_agent import Policy, load_policy

RULES = """
policy: 1
rules:
  - id: programs
    allow: bash
    command: ["{find,grep,rg,xargs,cat,mytool,tar,wc,mypy,black,eslint,gofmt} **", "ruff check **", "git ls-files **",
      "codecov **"]
  - {id: secrets, deny: read, path: ["**/.env", "**/.git/config"]}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for name in (".git/config", ".git/index", ".env", "a.py", "sub/b.py", "sub/deep/inner/.env"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("x")
    return tmp_path


@pytest.fixture
def policy(workspace: Path) -> Policy:
    return load_policy(text=RULES, workspace=workspace)


@pytest.mark.parametrize(
    "command",
    [
        "ruff check .",
        "mypy .",
        "black --check .",
        "eslint .",
        "gofmt -l .",
        "find . -name '*.py' -exec cat {} +",
        "find . -iname '*.PY' -exec cat {} +",
        "find . -type f -name '*.py' -print0 | xargs -0 wc -l",
        "find .git -name '*.py' -exec cat {} +",
        "grep -rn x --include='*.py' .",
        "grep -rn x --include='*.py' --include='*.md' .",
        "find . -type f -name deep -exec grep -r TOP {} +",
        "find . -name '*.py' -type f -exec cat {} +",
        "find . -name '*.py' -not -path './x/*' -exec cat {} +",
        "find . ! -path './x/*' -name '*.py' -exec cat {} +",
        r"find . \( -name '*.py' -o -name '*.md' \) -exec cat {} +",
        "find . -path ./sub -prune -o -name '*.py' -exec cat {} +",
        "find . -path ./sub -prune -o -name '*.py' -print | xargs cat",
        "find . -name '*.sh' -not -path './x/*' -print0 | xargs -0 cat",
        "grep -rn x --exclude=.env --exclude-dir=.git .",
        "rg x -g '!.env' -g '!.git' .",
        "rg x -g '!**/.env' -g '!.git/'",
        "rg x --hidden -g '*.py' .",
        "rg x -g '*.{py,md}' .",
        "rg x -g '!.env' -g '*.py' .",
        "rg x -t py .",
        "rg --files .",
        "rg --files | wc -l",
        "rg -l x -g '*.py' . | xargs cat",
        "eslint . --ext .ts,.tsx",
    ],
)
def test_a_search_that_does_not_come_to_the_file_is_allowed(policy: Policy, command: str) -> None:
    assert policy.decide("bash", {"command": command}).reason == "Allowed by policy rule programs."


@pytest.mark.parametrize(
    "command",
    [
        "grep -rn x .",
        "grep -rn x --exclude-dir=.git .",
        "grep -rn x --include='*' .",
        "grep -rn x --include='*.py' --include=.env .",
        "grep -rn x --include='*.py' . .env",
        "mypy . .env",
        "black --check --include x .",
        "find . -exec cat {} +",
        "find . -exec cat {} + -name '*.py'",
        "find . -print -name '*.py' | xargs cat",
        "find . -name '*.py' -o -name '*.env' | xargs cat",
        "find . ! -name '*.py' -exec cat {} +",
        "find . -not -name '*.py' -exec cat {} +",
        "find . -name '*.py' , -exec cat {} +",
        "find . -name '*env' -exec cat {} +",
        "find . -name '.e*' -exec cat {} +",
        "find . -path -name '*.py' -exec cat {} +",
        "find . -newer -name -exec cat {} +",
        "find . -name config -exec cat {} +",
        "git ls-files | xargs cat",
        "find . -name deep -exec grep -r TOP {} +",
        "find . -name '*eep' -exec grep -r TOP {} +",
        "find . -name deep -print0 | xargs -0 grep -r TOP",
        "find . -type d -name deep -exec mytool {} +",
        "find . -name deep -type d -exec tar cf - {} +",
        r"find . \( -name '*.py' -o -name '.e*' \) -exec cat {} +",
        r"find . \( -name '*.py' -o -type f \) -exec cat {} +",
        r"find . \( -name '*.py' , -true \) -exec cat {} +",
        r"find . -not \( -name '*.py' \) -exec cat {} +",
        r"find . -name '(' -o -name '*.py' -o -exec cat {} +",
        "find . -name '*.py' -prune -o -exec cat {} +",
        "find . -path ./sub -prune -o -name '*.py' -print -o -print | xargs cat",
        "find . -name '*.py' -prune -o -name '*env' | xargs cat",
        "grep -rn x --exclude=.env --exclude-dir=.git --include='*' .",
        "grep -rn x --include='*' --exclude=.env .",
        "grep -rn x --exclude='*.env2' .",
        "grep -rn x --exclude=.env --exclude-dir=.git . .env",
        "rg x -g '!.env' -g '!.git' -g '*' .",
        "rg x -g '!.env' -g '!.git' -g '.e*' .",
        "rg --hidden x -g '!/.env' .",
        "rg --hidden x -g '!.env/' .",
        "rg x -g '*.{py,env}' .",
        "rg x -g '*.{py,e{n,m}v}' .",
        "rg x -g '*{.py,}' .",
        "rg x -L -g '!.env' -g '!.git' .",
        "rg x -t all .",
        "rg x -t py --type-add 'py:.env' .",
        "rg x -t py -t sh .",
        "rg --hidden --files | xargs cat",
        "rg x -f .env --files .",
        "rg -. -g='!src' x",
        "rg -g=.env x",
        "rg -g= x",
        "rg -.ng= x",
        "rg -. -g '#x' x",
        "rg -. -g ' ' x",
        "rg -. -g '*.env ' x",
        "rg -. -g $'*.env\\u00a0' x",
        "rg -. -g '!.env' -g '!.git' -g '#' x",
        "eslint . --ext .ts,.env",
    ],
)
def test_a_search_that_comes_to_it_is_denied(policy: Policy, command: str) -> None:
    decision = policy.decide("bash", {"command": command})
    assert (decision.effect, decision.rule_id) in {("deny", "secrets"), ("deny", None)}


@pytest.mark.parametrize(
    "command", ["find . -name '*.py' -exec cat {} +", "ruff check .", "grep -r x --include=*.py ."]
)
def test_a_link_of_a_fitting_name_is_followed_to_the_file(policy: Policy, workspace: Path, command: str) -> None:
    (workspace / "link.py").symlink_to(".env")
    assert policy.decide("bash", {"command": command}).effect == "deny"


@pytest.mark.parametrize("command", ["find . -type f -name '*.py' -exec cat {} +", "find . -type f | xargs wc -l"])
def test_plain_files_are_no_links(workspace: Path, command: str) -> None:
    (workspace / "sub" / "link.py").symlink_to("/etc/hostname")
    rules = RULES.partition("  - {id: secrets")[0]
    policy = load_policy(text=rules, workspace=workspace)
    assert policy.decide("bash", {"command": command}).effect == "allow"
    assert policy.decide("bash", {"command": command.replace("-type f", "")}).effect == "deny"


def test_a_folder_that_is_passed_by_is_no_file_of_that_name(policy: Policy, workspace: Path) -> None:
    call = {"command": "grep -r --exclude-dir=.git --exclude-dir=.env x ."}
    assert policy.decide("bash", call).rule_id == "secrets"
    for file in (workspace / ".env", workspace / "sub/deep/inner/.env"):
        file.unlink()
        file.mkdir()
    assert policy.decide("bash", call).effect == "allow"


def test_folders_that_ripgrep_leaves_out_are_not_looked_at(workspace: Path) -> None:
    (workspace / ".env").unlink()
    (workspace / "sub/deep/inner/.env").unlink()
    (workspace / "link").symlink_to(".git")
    policy = load_policy(text=RULES, workspace=workspace)
    allowed = ("rg --glob '!.git' x", "rg -g'!.git/' -g '!.venv' x .", "rg --iglob='!.git' x .")
    denied = (
        *("rg -. x", "rg -g '!.git' x .git", "rg -g '!.git' -g '.git' x", "rg -g '!.git' --iglob '*' x"),
        *(
            "rg -. -g '!/.git' x",
            "rg -. -g '!.gi?' x",
            "rg -. -g '!.git/**' x",
            "rg -L -g '!.git' x",
            "rg --follow -g '!.git' x",
        ),
        "grep -R --exclude-dir=.git x .",
    )
    assert [policy.decide("bash", {"command": command}).effect for command in allowed] == ["allow"] * 3
    assert [policy.decide("bash", {"command": command}).rule_id for command in denied] == ["secrets"] * len(denied)


@pytest.mark.parametrize("options", ["", " -s sub", " -R .", " -f '*'", " -f '{x,.env}'", " -f 'sub/@(.env)'", " -Z"])
def test_a_report_is_looked_for_in_every_file(policy: Policy, options: str) -> None:
    assert policy.decide("bash", {"command": f"codecov{options}"}).rule_id == "secrets"


@pytest.mark.parametrize("options", [" -f a.py", " --disable-search", " -f '*.py'", " -s .git/index", " --version"])
def test_a_report_that_is_named_is_not_looked_for(policy: Policy, options: str) -> None:
    assert policy.decide("bash", {"command": f"codecov{options}"}).effect == "allow"
