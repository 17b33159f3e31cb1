"""What no wildcard reaches, and what no rule reaches."""

import os
from pathlib import Path

import pytest
from policy_calls import MakePolicy, Put, bash

from ci_agent.hooks import Decision
from ci_agent.policy.decide import Policy, compile_policy
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.protected import Surroundings
from ci_agent.workspace import Workspace, enters_kernel_folder

EVERYTHING = """
    - {id: files, allow: [read, write, edit, grep, find, ls], path: ["**", "/**"]}
    - {id: shell, allow: bash, command: "**", paths: ["**", "/**"]}
    - {id: spelled, allow: bash, command: ["sed -i **", "find **", "tar xf **"], paths: ["**", "/**"]}
"""

SPELLED = """
    - {id: hooks, allow: [write, read], path: [".git/hooks/**", "sub/.git/config", ".github/workflows/ci.yml"]}
    - {id: shell, allow: bash, command: ["echo **", "rm **"], paths: [".git/hooks/**"]}
"""


def write(policy: Policy, path: str) -> Decision:
    return policy.decide("write", {"path": path, "content": ""})


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git",
        "sub/.git/hooks/x",
        "a/b/.git",
        ".GIT/config",
        "src/../.git/x",
        ".github/workflows/ci.yml",
        ".github/workflows",
        ".GitHub/Workflows/x.yml",
        "sub/.github/workflows/x",
        "in/config",
    ],
)
def test_no_wildcard_writes_what_runs_later(policy: MakePolicy, workspace: Workspace, path: str) -> None:
    (workspace.root / ".git").mkdir()
    (workspace.root / "in").symlink_to(".git")
    decision = write(policy(EVERYTHING), path)
    assert (decision.effect, decision.code) == ("deny", "hazard")


def test_reading_what_runs_later_needs_no_spelling(policy: MakePolicy) -> None:
    assert policy(EVERYTHING).decide("read", {"path": ".git/config"}).effect == "allow"


@pytest.mark.parametrize(
    "path", [".gitignore", ".github/dependabot.yml", ".gitmodules", "git/x", "a.git/x", "workflows/x"]
)
def test_names_that_only_look_like_it_are_ordinary(policy: MakePolicy, path: str) -> None:
    assert write(policy(EVERYTHING), path).effect == "allow"


def test_a_rule_that_spells_it_may_write_it(policy: MakePolicy) -> None:
    decided = policy(SPELLED)
    answers = {
        path: write(decided, path).effect
        for path in (
            ".git/hooks/pre-commit",
            "sub/.git/config",
            ".github/workflows/ci.yml",
            ".git/config",
            ".github/workflows/x",
        )
    }
    assert list(answers.values()) == ["allow", "allow", "allow", "deny", "deny"]
    assert bash(decided, "echo x > .git/hooks/pre-commit").effect == "allow"
    assert bash(decided, "rm .git/hooks/pre-commit").effect == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/config",
        "cp a .git/config",
        "cp a .git",
        "mv a .git/hooks/pre-commit",
        "rm -rf .git",
        "rm -rf .",
        "rm -r sub",
        "tee .git/config",
        "mv .git x",
        "mv sub other",
        "ln -f a .git/config",
        "ln -s /tmp .git",
        "touch sub/.git/x",
        "mkdir -p .git/hooks",
        "cp -r evil .",
        "cp -r evil/. new",
        "cp -r evil/.git .",
        "mv evil sub2",
        "rm -rf .github",
        "mv .github x",
        "sed -i s/a/b/ .git/config",
        "find . -delete",
        "install a .git/hooks/x",
        "rmdir .git",
        "rm -r $PWD/sub",
        "cd sub && rm -rf .git",
    ],
)
def test_the_shell_does_not_reach_it_by_wildcards_either(policy: MakePolicy, put: Put, command: str) -> None:
    for name in (".git/config", "sub/.git/config", "evil/.git/config", ".github/workflows/ci.yml", "a"):
        put(name)
    decision = bash(policy(EVERYTHING), command)
    assert (decision.effect, decision.code) == ("deny", "hazard"), decision


@pytest.mark.parametrize(
    "command", ["rm -rf build", "mv build other", "cp -r build new", "cp a .", "mkdir -p x/y", "rm link", "mv a build"]
)
def test_ordinary_work_in_the_shell_goes_on(policy: MakePolicy, put: Put, workspace: Workspace, command: str) -> None:
    for name in (".git/config", "build/x/y", "a"):
        put(name)
    (workspace.root / "link").symlink_to("/etc")
    assert bash(policy(EVERYTHING), command).effect == "allow"


def test_a_second_link_to_a_protected_file_is_protected(policy: MakePolicy, put: Put, workspace: Workspace) -> None:
    hook = put(".git/hooks/pre-commit")
    put("harmless")
    os.link(hook, workspace.root / "notes.txt")
    os.link(workspace.root / "harmless", workspace.root / "harmless2")
    decided = policy(EVERYTHING)
    assert [write(decided, name).code for name in ("notes.txt", "harmless2")] == ["hazard", "rule"]
    assert bash(decided, "echo x > notes.txt").effect == "deny"


def test_the_policy_and_the_record_are_written_by_no_rule(workspace: Workspace, tmp_path: Path) -> None:
    root = workspace.root
    policy_file, transcript = root / "ci/policy.yml", root / "out/transcript.json"
    policy_file.parent.mkdir()
    policy_file.write_text(
        "policy: 1\nrules:\n- {id: all, allow: [write, edit, read], path: ['**', ci/policy.yml, out/transcript.json]}\n"
        "- {id: sh, allow: bash, command: ['**'], paths: ['**', ci/policy.yml]}\n"
    )
    os.link(policy_file, root / "copy.yml")
    around = Surroundings(records=(transcript,))
    decided = compile_policy(load_policy_source(policy_file), workspace, around=around)
    for path in ("ci/policy.yml", "CI/Policy.yml", "out/transcript.json", "copy.yml"):
        assert write(decided, path).code == "hazard", path
        assert not decided.permits_path("write", "write", root / path)
    for command in ("rm -rf ci", "mv out x", "echo x > ci/policy.yml", "rm ci/policy.yml", "mv ci other", "rm -rf ci/"):
        assert bash(decided, command).effect == "deny", command
    assert decided.decide("read", {"path": "ci/policy.yml"}).effect == "allow"
    assert write(decided, "ci/other.yml").effect == "allow"


@pytest.mark.parametrize("tool", ["read", "write", "edit", "grep", "find", "ls"])
@pytest.mark.parametrize(
    "path", ["/proc/self/status", "/sys/kernel", "/dev/null", "/proc", "/proc/self/cwd/a", "link/status"]
)
def test_file_tools_never_enter_the_kernels_folders(
    policy: MakePolicy, workspace: Workspace, tool: str, path: str
) -> None:
    (workspace.root / "link").symlink_to("/proc/self")
    decided = policy(
        "- {id: f, allow: [read, write, edit, grep, find, ls], path: ['**', '/**', '/proc/**', '/dev/**']}\n"
    )
    assert decided.decide(tool, {"path": path}).effect == "deny"


def test_shell_readers_enter_them_when_it_is_spelled_but_for_secrets(policy: MakePolicy) -> None:
    wild = policy('- {id: c, allow: bash, command: "cat **", paths: ["**", "/**"]}\n')
    spelled = policy('- {id: c, allow: bash, command: "cat **", paths: ["/proc/**", "/dev/**"]}\n')
    assert bash(wild, "cat /proc/cpuinfo").code == "hazard"
    assert bash(spelled, "cat /proc/cpuinfo").effect == "allow"
    for name in (
        "self/environ",
        "1/environ",
        "self/mem",
        "kcore",
        "self/root/etc/passwd",
        "self/fd/3",
        "self/task/1/environ",
    ):
        assert bash(spelled, f"cat /proc/{name}").effect == "deny", name
    assert bash(spelled, "cat /dev/mem").effect == "deny"


def test_the_runners_files_are_out_of_reach(policy: MakePolicy, tmp_path: Path) -> None:
    commands = tmp_path / "temp" / "_runner_file_commands"
    commands.mkdir(parents=True)
    (commands / "set_env_1").touch()
    around = {"runner_files": (commands,)}
    wild = policy(EVERYTHING, **around)
    spelled = policy(
        f'- {{id: f, allow: [read, write], path: "{commands}/**"}}\n'
        f'- {{id: c, allow: bash, command: ["cat **", "tee **"], paths: "{commands}/**"}}\n',
        **around,
    )
    file = commands / "set_env_1"
    for decided in (wild, spelled):
        assert decided.decide("read", {"path": str(file)}).effect == "deny"
        assert write(decided, str(file)).effect == "deny"
        assert bash(decided, f"echo x | tee {file}").effect == "deny"
        assert bash(decided, f"echo x > {file}").effect == "deny"
    assert bash(wild, f"cat {file}").effect == "deny"
    assert bash(wild, f"grep -r x {commands.parent}").effect == "deny"
    assert bash(spelled, f"cat {file}").effect == "allow"


@pytest.mark.parametrize(
    ("text", "enters"),
    [
        ("a/b", False),
        ("/proc/self", True),
        ("link/x", True),
        ("loop/x", True),
        ("up/../a", False),
        ("link2/x", True),
        ("/etc/hosts", False),
    ],
)
def test_a_path_through_the_kernels_folders_is_noticed(tmp_path: Path, text: str, enters: bool) -> None:
    (tmp_path / "link").symlink_to("/proc/self/cwd")
    (tmp_path / "link2").symlink_to("link")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "up").symlink_to("..")
    assert enters_kernel_folder(tmp_path, text) is enters


# Folders into which nobody knows what is put


@pytest.mark.parametrize(
    "command",
    [
        "tar xf a.tar -C sub",
        "tar xf a.tar -C new",
        "cd sub && tar xf ../a.tar",
        "unzip a.zip -d sub",
        "unzip a.zip",
        "docker cp box:/x sub",
        "cp -r evil/. sub",
        "cp -rT evil sub",
        "rsync -a evil/ sub",
        "rsync -a host:/x/ sub",
    ],
)
def test_an_archive_or_a_copy_plants_no_hooks_in_a_folder_within_reach(
    policy: MakePolicy, put: Put, command: str
) -> None:
    put("evil/.github/workflows/x.yml")
    put("sub/a")
    decision = bash(policy(EVERYTHING), command)
    assert (decision.effect, decision.code) == ("deny", "hazard"), decision


def test_a_denied_archive_says_what_a_rule_would_spell(policy: MakePolicy, put: Put) -> None:
    put("sub/a")
    reason = bash(
        policy('- {id: tar, allow: bash, command: "tar **", paths: [a.tar, sub, "sub/**"]}'), "tar xf a.tar -C sub"
    ).reason
    assert "sub/**/.git/**" in reason
    assert "sub/**/.github/workflows/**" in reason
    spelled = policy(
        """
        - id: tar
          allow: bash
          command: tar **
          paths: [a.tar, sub, "sub/**", "sub/**/.git/**", "sub/**/.github/workflows/**"]
        """
    )
    assert bash(spelled, "tar xf a.tar -C sub").effect == "allow"


def test_an_archive_at_the_root_says_how_a_rule_reaches_the_folder_itself(policy: MakePolicy) -> None:
    reason = bash(policy('- {id: tar, allow: bash, command: "tar **"}'), "tar xf a.tar").reason
    assert "`.`" in reason
    spelled = policy(
        '- {id: tar, allow: bash, command: "tar **", paths: [., "**", "**/.git/**", "**/.github/workflows/**"]}'
    )
    assert bash(spelled, "tar xf a.tar").effect == "allow"


@pytest.mark.parametrize(
    "command", ["cp -r plain/. sub", "cp -rT plain sub", "rsync -a plain/ sub", "chmod -R u+w sub", "gzip -r sub"]
)
def test_what_is_known_to_bring_nothing_of_consequence_is_free(policy: MakePolicy, put: Put, command: str) -> None:
    put("plain/inner/a")
    put("sub/a")
    assert bash(policy(EVERYTHING), command).effect == "allow"


# A folder becomes a repository by what it holds


@pytest.mark.parametrize(
    "path",
    [
        "src/HEAD",
        "src/sub/HEAD",
        "HEAD",
        "bare/config",
        "bare/hooks/post-checkout",
        "bare/commondir",
        "bare/objects/x",
        "bare/refs/heads/x",
        "bare/config.worktree",
        "bare/CONFIG",
        "parts/head",
    ],
)
@pytest.mark.parametrize("by_shell", [False, True])
def test_no_wildcard_turns_a_folder_into_a_repository(policy: MakePolicy, put: Put, path: str, by_shell: bool) -> None:
    for name in ("bare/HEAD", "parts/objects/a", "parts/refs/a", "src/a"):
        put(name)
    decided = policy(EVERYTHING)
    decision = bash(decided, f"echo x > {path}") if by_shell else write(decided, path)
    assert (decision.effect, decision.code) == ("deny", "hazard")


@pytest.mark.parametrize(
    "command",
    [
        "cp a src/HEAD",
        "mv bare src",
        "cp -r bare new",
        "cp -r bare/. src",
        "rsync -a bare/ src",
        "ln -s a src/HEAD",
        "mkdir src/objects src/refs && echo x > src/config && echo 'ref: refs/heads/a' > src/HEAD",
        "mv a HEAD",
        "sed -i s/a/b/ bare/config",
    ],
)
def test_no_command_brings_a_head_into_a_folder(policy: MakePolicy, put: Put, command: str) -> None:
    for name in ("bare/HEAD", "bare/config", "src/a", "a"):
        put(name)
    assert bash(policy(EVERYTHING), command).code == "hazard"


@pytest.mark.parametrize(
    "command",
    [
        "echo x > src/config",
        "mkdir -p src/objects src/refs src/hooks",
        "mkdir -p components/Head",
        "cp a HEAD.md",
        "rm -rf bare",
        "cat bare/HEAD",
        "echo x > bare/description",
    ],
)
def test_the_parts_alone_are_ordinary_names(policy: MakePolicy, put: Put, command: str) -> None:
    for name in ("bare/HEAD", "src/a", "a"):
        put(name)
    assert bash(policy(EVERYTHING), command).effect == "allow"


def test_a_rule_that_spells_a_head_writes_it(policy: MakePolicy, put: Put) -> None:
    put("bare/HEAD")
    decided = policy("- {id: bare, allow: write, path: [bare/HEAD, bare/config]}")
    assert [write(decided, path).effect for path in ("bare/HEAD", "bare/config", "bare/refs")] == [
        "allow",
        "allow",
        "deny",
    ]
    git = policy('- {id: git, allow: write, path: ".git/**"}')
    assert write(git, ".git/HEAD").effect == "allow"


def test_a_folder_outside_that_holds_too_much_to_look_at_may_hold_anything(
    policy: MakePolicy, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ci_agent.policy.disk.MAX_ENTRIES_ABROAD", 12)
    outside = workspace.root.parent / "outside"
    for name in "abcd":
        (outside / name).mkdir(parents=True)
    assert bash(policy(EVERYTHING), f"rm -rf {outside}").code == "hazard"
    assert bash(policy(EVERYTHING), f"rm -rf {outside}/a").effect == "allow"
