from collections.abc import Iterable
from pathlib import Path

import pytest

from ci_agent.cancellation import CancelToken
from ci_agent.confined_commands import create_confine, create_confine_reader
from ci_agent.errors import ToolError
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.protected import Surroundings
from ci_agent.process import open_processes
from ci_agent.sandbox import landlock
from ci_agent.sandbox.confinement import Confined, Wrapper
from ci_agent.sandbox.landlock import Ruleset
from ci_agent.sandbox.private_folder import PrivateFolder
from ci_agent.sandbox.ruleset import ruleset_without_sandbox
from ci_agent.sandbox.sandbox import Sandbox
from ci_agent.tools.ripgrep import Ripgrep, may_match
from ci_agent.workspace import open_workspace

RULES = """
policy: 1
rules:
  - {id: look, allow: bash, command: "cat **"}
  - {id: test, allow: bash, command: "pytest **"}
  - {id: go, allow: bash, command: "go **", paths: ["**", "~/.cache/**"], host: proxy.example}
  - {id: closed, deny: read, path: .env}
"""
LANDLOCK = Sandbox("landlock", abi=6)


class Given(PrivateFolder):
    """One that is there already."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.given = folder

    def path(self) -> Path:
        return self.given


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    (tmp_path / "home" / ".cache").mkdir(parents=True)
    (tmp_path / "ws" / "src").mkdir(parents=True)
    around = Surroundings(home=tmp_path.resolve() / "home")
    return compile_policy(load_policy_source(None, text=RULES), open_workspace(tmp_path / "ws"), around=around)


def confined(policy: Policy, temporary: Path, command: str, sandbox: Sandbox = LANDLOCK) -> Confined:
    return create_confine(policy, sandbox, Given(temporary), git_settings=no_git)({"command": command})


def no_git(folders: Iterable[Path]) -> dict[str, str]:
    del folders
    return {}


def test_each_call_gets_its_own_ruleset(policy: Policy, temporary: Path) -> None:
    root = str(policy.site.workspace.root)
    look, test = (confined(policy, temporary, command).confinement for command in ("cat a", "pytest"))
    assert isinstance(look, Ruleset)
    assert isinstance(test, Ruleset)
    assert set(test.grants) - set(look.grants) == {grant for grant in test.grants if grant[0] == root}
    assert str(temporary) in dict(look.grants)


def test_without_a_sandbox_a_call_still_gets_its_folder_for_temporary_files(policy: Policy, temporary: Path) -> None:
    apart = ruleset_without_sandbox(landlock.abi())
    assert confined(policy, temporary, "pytest", Sandbox("none")) == Confined(apart, {"TMPDIR": str(temporary)})


def test_bubblewrap_gets_the_same(policy: Policy, temporary: Path) -> None:
    made = confined(policy, temporary, "pytest", Sandbox("bubblewrap", program="/usr/bin/bwrap"))
    assert isinstance(made.confinement, Wrapper)
    words = made.confinement.argv
    root = str(policy.site.workspace.root)
    assert words[words.index("--bind-try") + 1 : words.index("--bind-try") + 3] == (root, root)


def test_a_private_cache_is_for_calls_that_cannot_write_the_usual_one(policy: Policy, temporary: Path) -> None:
    assert confined(policy, temporary, "pytest").environment == {
        "TMPDIR": str(temporary),
        "GOCACHE": f"{temporary}/go-build",
    }
    assert confined(policy, temporary, "go test ./...").environment == {"TMPDIR": str(temporary)}


def test_what_a_call_may_do_is_put_into_words(policy: Policy, temporary: Path, tmp_path: Path) -> None:
    begin = "[The sandbox refused something if it says so above: this call may write "
    assert confined(policy, temporary, "cat a").explanation == (
        f"{begin}$TMPDIR and nothing else; it may not use the network.]"
    )
    cache = tmp_path.resolve() / "home" / ".cache"
    assert (
        confined(policy, temporary, "go test").explanation
        == f"{begin}the workspace, {cache}, $TMPDIR and nothing else.]"
    )


def test_who_may_not_use_the_network_can_be_told_what_it_takes(policy: Policy, temporary: Path) -> None:
    offline = confined(policy, temporary, "pytest").explanation_of_network or ""
    assert offline.startswith("[The sandbox keeps this call from the network, and from servers of its own on localhost")
    assert confined(policy, temporary, "go test").explanation_of_network is None
    assert confined(policy, temporary, "pytest", Sandbox("none")).explanation_of_network is None


def test_a_closed_file_of_the_workspace_is_named(policy: Policy, temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "ws" / ".env").write_text("")
    explanation = confined(policy, temporary, "pytest").explanation or ""
    assert explanation.endswith(
        "it may not read .env; it cannot read back what it newly makes in the folder of a file that it may not read.]"
    )
    other = confined(policy, temporary, "pytest", Sandbox("bubblewrap", program="/usr/bin/bwrap")).explanation or ""
    assert other.endswith("it may not read .env.]")


def test_attack_swap_a_file_after_the_call_was_allowed(policy: Policy, temporary: Path, tmp_path: Path) -> None:
    confine = create_confine(policy, LANDLOCK, Given(temporary), git_settings=no_git)
    (tmp_path / "ws" / "a").write_text("")
    assert policy.decide("bash", {"command": "cat a"}).effect == "allow"
    (tmp_path / "ws" / "a").unlink()
    (tmp_path / "ws" / "a").symlink_to("/etc/shadow")
    with pytest.raises(ToolError, match="has changed since it was allowed, so it was not run"):
        confine({"command": "cat a"})


def test_without_a_place_for_temporary_files_nothing_runs(policy: Policy) -> None:
    class Nowhere(PrivateFolder):
        def path(self) -> Path:
            raise OSError(28, "No space left on device")

    with pytest.raises(
        ToolError, match=r"there is no place for temporary files, so the command was not run: .*No space"
    ):
        create_confine(policy, LANDLOCK, Nowhere(), git_settings=no_git)({"command": "cat a"})


@pytest.mark.skipif(landlock.abi() == 0, reason="this kernel offers no Landlock")
def test_attack_write_by_a_search_program_that_was_replaced(tmp_path: Path) -> None:
    program = tmp_path / "rg"
    program.write_text("#!/bin/sh\necho x > a\nprintf './a\\0'\n")
    program.chmod(0o755)
    (tmp_path / "a").write_text("as it was")
    with open_processes() as processes:
        ripgrep = Ripgrep(program, processes, create_confine_reader(Sandbox("landlock", abi=landlock.abi())))
        assert may_match(ripgrep, "x", tmp_path, ["a"], CancelToken()) == frozenset({"a"})
    assert (tmp_path / "a").read_text() == "as it was"
