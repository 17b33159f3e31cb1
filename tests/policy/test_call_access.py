"""What each call gets of the machine: the writable places, what is closed, the network."""

import os
import tempfile
from pathlib import Path

import pytest

from ci_agent.errors import ToolError
from ci_agent.policy.call_access import Closed, call_access, closed_places, folders_of_git, judge_again
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.protected import Surroundings
from ci_agent.sandbox.access import Access
from ci_agent.workspace import open_workspace

RULES = """
policy: 1
rules:
  - id: look
    allow: bash
    command: ["{cat,grep,ls,echo,find,cp,mv,tee,rm,mkdir} **", "git {diff,status,log} **", "sed -i **", "timeout **"]
  - {id: commit, allow: bash, command: "git commit **"}
  - {id: write, allow: write, path: ["**", "/elsewhere/**"]}
  - {id: test, allow: bash, command: "pytest **"}
  - {id: build, allow: bash, command: "make **", paths: ["build/**", "src/**", "/nowhere/there/**", "~/.cache/**"]}
  - {id: one, allow: bash, command: "generate **", paths: [src/made.py]}
  - {id: install, allow: bash, command: "npm ci", host: registry.example}
  - {id: get, allow: bash, command: "curl **", host: data.example}
  - {id: keys, allow: bash, command: "deploy **", paths: ["~/.ssh/known_hosts"]}
  - {id: hooks, allow: bash, command: "install-hooks", paths: [".git/hooks/**", "**"]}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "workspace"
    for name in ("src/main.py", "notes.txt", ".git/config"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "home" / ".cache").mkdir()
    return root


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "home"


def policy_of(rules: str, workspace: Path, home: Path, runner_files: tuple[Path, ...] = ()) -> Policy:
    around = Surroundings(home=home, records=(workspace.parent / "record.json",), runner_files=runner_files)
    return compile_policy(load_policy_source(None, text=rules), open_workspace(workspace), around=around)


@pytest.fixture
def policy(workspace: Path, home: Path) -> Policy:
    return policy_of(RULES, workspace, home)


NOTHING = Closed()


def access_of(policy: Policy, command: str, closed: Closed = NOTHING) -> Access:
    verdicts = judge_again(policy, {"command": command})
    assert verdicts is not None, command
    return call_access(policy, verdicts, closed)


def writable(policy: Policy, command: str) -> list[str]:
    """Relative to the workspace."""
    return [os.path.relpath(path, policy.site.workspace.root) for path in access_of(policy, command).writable]


@pytest.mark.parametrize(
    "command",
    [
        "cat notes.txt",
        "grep -rn x src | cat > /dev/null",
        "git diff; git status --short && git log",
        "git -C src --no-pager log",
        "find . -name '*.py' -exec cat {} +",
        "f() { cat notes.txt; }; for each in a b; do f; done",
        "timeout 5 cat notes.txt",
    ],
)
def test_a_call_that_only_looks_may_write_nothing(policy: Policy, command: str) -> None:
    assert writable(policy, command) == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo x > notes.txt", ["notes.txt"]),
        ("echo x > src/new.py", ["src"]),
        ("sed -i s/a/b/ src/main.py", ["src"]),
        ("cp notes.txt src/copy.txt", ["src"]),
        ("mv src/main.py notes.py", ["src", "."]),
        ("rm src/main.py", ["src"]),
        ("mkdir -p src/a/b/c", ["src"]),
        ("grep x notes.txt | tee src/found", ["src"]),
        ("timeout 5 tee src/found", ["src"]),
    ],
)
def test_a_call_that_tells_what_it_writes_gets_that(policy: Policy, command: str, expected: list[str]) -> None:
    assert sorted(writable(policy, command)) == sorted(expected)


@pytest.mark.parametrize("command", ["pytest -q", "timeout 5 pytest", "git commit -m x", "cat notes.txt; pytest"])
def test_a_program_that_does_not_tell_gets_the_workspace(policy: Policy, command: str) -> None:
    assert writable(policy, command) == ["."]


def test_a_program_that_does_not_tell_gets_what_its_rule_spells(policy: Policy, workspace: Path) -> None:
    (workspace / "build").mkdir()
    assert writable(policy, "make all") == ["build", "src", "../home/.cache"]


def missing(policy: Policy, command: str) -> list[str]:
    """Relative to the workspace."""
    return [os.path.relpath(path, policy.site.workspace.root) for path in access_of(policy, command).missing]


def test_a_folder_that_a_rule_spells_and_that_is_not_there_is_to_be_made(policy: Policy, workspace: Path) -> None:
    assert writable(policy, "make all") == ["build", "src", "../home/.cache"]
    assert missing(policy, "make all") == ["build"]
    (workspace / "build").mkdir()
    assert missing(policy, "make all") == []


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("dist/**", ["dist"]),
        ("dist/*.js", ["dist"]),
        ("./dist/**", ["dist"]),
        ("a/b/c/**", ["a/b/c"]),
        ("src/dist/**", ["src/dist"]),
        ("**/dist/**", []),
        ("dist.txt", []),
        ("notes.txt/**", []),
        ("notes.txt/x/**", []),
        ("dangling/**", []),
        ("out/dist/**", []),
        ("back/dist/**", []),
        (".git/new/**", []),
        ("src/.git/**", []),
        ("~/elsewhere/**", []),
    ],
)
def test_what_else_a_rule_spells_is_not_made(workspace: Path, home: Path, paths: str, expected: list[str]) -> None:
    (workspace / "dangling").symlink_to("nowhere")
    (workspace / "out").symlink_to("..")
    (workspace / "back").symlink_to("src")
    rules = f"policy: 1\nrules:\n  - {{id: build, allow: bash, command: 'build', paths: ['{paths}']}}\n"
    assert missing(policy_of(rules, workspace, home), "build") == expected


def test_attack_open_the_workspace_by_a_folder_that_is_not_there(workspace: Path, home: Path) -> None:
    rules = "policy: 1\nrules:\n  - {id: build, allow: bash, command: 'build', paths: ['a/b/**', 'dist/**']}\n"
    assert writable(policy_of(rules, workspace, home), "build") == ["a/b", "dist"]
    (workspace / "a").symlink_to("..")
    assert writable(policy_of(rules, workspace, home), "build") == ["dist"]


@pytest.mark.parametrize("link", ["../src", "..", ".", "../src/main.py", "../../home"])
@pytest.mark.parametrize("paths", ["dist/a/**", "dist/a/b.js", "dist/a/b/**", "dist/a"])
def test_attack_lead_what_another_rule_spells_elsewhere(workspace: Path, home: Path, link: str, paths: str) -> None:
    """A program that may write `dist` makes `dist/a` a link, and the next one, which may write there, is led by it."""
    (workspace / "dist").mkdir()
    (workspace / "dist" / "a").symlink_to(link)
    rules = f"policy: 1\nrules:\n  - {{id: build, allow: bash, command: 'build', paths: ['{paths}']}}\n"
    assert writable(policy_of(rules, workspace, home), "build") == []


def test_a_rule_that_spells_one_file_opens_it_or_the_folder_that_it_will_be_in(policy: Policy, workspace: Path) -> None:
    assert writable(policy, "generate") == ["src"]
    (workspace / "src" / "made.py").write_text("")
    assert writable(policy, "generate") == ["src/made.py"]


def test_attack_close_a_folder_to_be_given_all_of_it_for_one_of_its_files() -> None:
    """Any program may change modes; where nobody can look the file may be, and its folder is not opened for it."""
    own = os.getuid()
    with tempfile.TemporaryDirectory() as folder:  # of a place that everybody reaches
        top = Path(folder).resolve()
        top.chmod(0o755)
        (top / "workspace" / "src").mkdir(parents=True)
        (top / "workspace" / "src" / "made.py").write_text("")
        policy = policy_of(RULES, top / "workspace", top)
        (top / "workspace" / "src").chmod(0)
        try:
            if own == 0:
                os.setresuid(65534, 65534, 0)  # root looks everywhere
            assert writable(policy, "generate") == ["src/made.py"]
        finally:
            os.setresuid(own, own, own)
            (top / "workspace" / "src").chmod(0o755)


def test_a_program_that_does_not_tell_gets_no_folder_for_anothers_new_file(
    workspace: Path, home: Path, tmp_path: Path
) -> None:
    outside = tmp_path.resolve() / "outside"
    outside.mkdir()
    rules = RULES.replace("/elsewhere/**", f"{outside}/one.txt")
    policy = policy_of(rules, workspace, home)
    assert writable(policy, f"echo x > {outside}/one.txt") == ["../outside"]
    assert writable(policy, f"pytest > {outside}/one.txt") == ["."]
    (outside / "one.txt").write_text("")
    assert writable(policy, f"pytest > {outside}/one.txt") == ["../outside/one.txt", "."]


@pytest.mark.parametrize(
    ("command", "folders"),
    [
        ("cat notes.txt && ls src", []),
        ("cat notes.txt; pytest", ["."]),
        ("git diff", ["."]),
        ("git diff -- src/main.py", [".", "src/main.py"]),
        ("cd src && git diff", ["src"]),
    ],
)
def test_git_is_looked_for_where_it_may_be_started(
    workspace: Path, home: Path, command: str, folders: list[str]
) -> None:
    rules = RULES + '  - {id: more, allow: bash, command: ["cd **", "ls **", "git diff **"]}\n'
    verdicts = judge_again(policy_of(rules, workspace, home), {"command": command})
    assert verdicts is not None
    found = {os.path.relpath(folder, workspace.resolve()) for folder in folders_of_git(verdicts)}
    assert sorted(found) == folders


def test_a_call_that_is_not_allowed_gets_nothing(policy: Policy) -> None:
    for command in ("rm -rf /", "python3 x.py", "cat notes.txt; id", "cat $(", "cat /etc/shadow"):
        assert judge_again(policy, {"command": command}) is None


@pytest.mark.parametrize(
    ("command", "network"),
    [
        ("cat notes.txt", False),
        ("pytest", False),
        ("npm ci", True),
        ("curl https://data.example/x", True),
        ("curl https://data.example/x | cat", True),
    ],
)
def test_the_network_is_for_calls_whose_rule_names_a_host(policy: Policy, command: str, network: bool) -> None:
    assert access_of(policy, command).network is network


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("curl https://data.example/x; pytest", "`pytest` use the network"),
        ("npm ci && pytest", "`pytest` use the network"),
        ("pytest & echo x > notes.txt; curl https://data.example/x", "`pytest` use the network"),
        ("cp src/main.py main.py; make all", "`make all` write ."),
        ("make all | tee log.txt", "`make all` write ."),
        ("pytest; make all", "`pytest` write "),
        ("pytest; deploy", "known_hosts"),
        ("cat ~/.ssh/known_hosts; pytest", "`pytest` read "),
    ],
)
def test_attack_get_for_a_program_what_its_neighbour_was_granted(
    workspace: Path, home: Path, command: str, problem: str
) -> None:
    (workspace / "build").mkdir()
    (home / ".ssh/known_hosts").write_text("canary")
    rules = RULES + '  - {id: known, allow: bash, command: "cat **", paths: ["~/.ssh/known_hosts"]}\n'
    policy = policy_of(rules, workspace, home)
    closed = closed_places(policy, [home / ".ssh"])
    with pytest.raises(ToolError) as refused:
        access_of(policy, command, closed)
    assert problem in str(refused.value)
    assert str(refused.value).endswith("Run them in calls of their own")


@pytest.mark.parametrize(
    "command",
    [
        "pytest 2>&1 | cat",
        "cp notes.txt src/x && pytest",
        "pytest > notes.txt; git commit -m x",
        "make all > src/main.py 2> /dev/null",
        "cp src/main.py src/other.py && make all | tee src/log.txt",
    ],
)
def test_what_stays_within_the_rule_of_each_may_be_one_call(workspace: Path, policy: Policy, command: str) -> None:
    (workspace / "build").mkdir()
    assert access_of(policy, command).writable != ()


def test_secrets_are_closed_but_for_what_a_rule_spells(policy: Policy, home: Path) -> None:
    closed = closed_places(policy, [home / ".ssh", home / ".aws"])
    assert closed == Closed(secrets=(home / ".ssh", home / ".aws"))
    tests = access_of(policy, "pytest", closed)
    assert (tests.hidden, tests.readable) == ((str(home / ".ssh"), str(home / ".aws")), ())
    deploy = access_of(policy, "deploy now", closed)
    assert deploy.hidden == (str(home / ".ssh"), str(home / ".aws"))
    assert deploy.readable == (str(home / ".ssh/known_hosts"),)


def test_a_secret_that_the_call_itself_names_and_may_read_is_readable(workspace: Path, home: Path) -> None:
    rules = "policy: 1\nrules: [{id: a, allow: bash, command: 'cat **', paths: ['~/**']}]"
    policy = policy_of(rules, workspace, home)
    closed = closed_places(policy, [home / ".ssh"])
    assert access_of(policy, "cat ~/.ssh/config", closed).readable == (str(home / ".ssh/config"),)
    assert access_of(policy, "cat ~/x", closed).readable == ()


DENIES = """
policy: 1
rules:
  - {id: run, allow: bash, command: ["pytest **", "ls **"], paths: ["**", .env]}
  - id: closed
    deny: read
    path: [.env, "conf/{a,b}.key", "private/**", "~/token", /etc/machine-id, "**/*.pem", "**/.env", .git/config]
  - {id: other, deny: write, path: [notes.txt]}
  - {id: tested, deny: [read], path: [notes.txt], args: {limit: {min: 1}}}
"""


def test_what_a_deny_rule_on_reading_spells_is_closed_to_every_program(workspace: Path, home: Path) -> None:
    policy = policy_of(DENIES, workspace, home)
    inside = [".env", "conf/a.key", "conf/b.key", "private"]
    expected = (*(workspace / name for name in inside), home / "token", Path("/etc/machine-id"))
    closed = closed_places(policy, [])
    assert closed == Closed(denied=expected)
    # Also where the rule that allows the call spells it, and where the call names it without reading it.
    for command in ("pytest", "ls .env"):
        access = access_of(policy, command, closed)
        assert (access.hidden, access.readable) == (tuple(map(str, expected)), ())


def test_folders_that_programs_need_as_a_whole_are_not_closed(workspace: Path, home: Path) -> None:
    around = workspace.parent
    paths = f'["/etc/**", "/proc/**", "~/**", "**", "/etc/shadow", "{workspace}/**", "{around}/**", "{around}/x/**"]'
    policy = policy_of(f"policy: 1\nrules: [{{id: wide, deny: read, path: {paths}}}]", workspace, home)
    assert closed_places(policy, []) == Closed(denied=(Path("/etc/shadow"), around / "x"))


def test_the_runners_files_are_closed(workspace: Path, home: Path, tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "_runner_file_commands"
    policy = policy_of(RULES, workspace, home, runner_files=(folder,))
    assert closed_places(policy, []) == Closed(secrets=(folder,))


def test_protected_names_are_listed_unless_a_rule_spells_them(policy: Policy, workspace: Path) -> None:
    record = str(workspace.parent / "record.json")
    git = [f"{workspace}/.git/{name}" for name in ("hooks", "config", "config.worktree")]
    assert access_of(policy, "pytest").protected == (*git, f"{workspace}/.github/workflows", record)
    assert access_of(policy, "install-hooks").protected == (f"{workspace}/.github/workflows", record)
