"""The real command and its sandbox: what is said of it, and what commands that the policy allows cannot do."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from forked_command import Run, run_anew

from ci_agent.sandbox import landlock, seccomp
from ci_agent.sandbox.sandbox import find_sandbox

Write: TypeAlias = Callable[[str], str]
Calls: TypeAlias = Callable[..., list[Any]]

CANARY = "canary-71c2e9"

POLICY = """
rules:
  - {id: run, allow: bash, command: ["bash attack.sh", "cat **", "ls **"]}
  - {id: serve, allow: bash, command: "python3 connect.py", host: localhost}
  - {id: closed, deny: read, path: secret.txt}
"""

needs_landlock = pytest.mark.skipif(landlock.abi() == 0, reason="this kernel offers no Landlock")


@pytest.fixture
def run_command() -> Run:
    """Anew: attacks go to whatever process is above them, and look for what the kernel shows of its start."""
    return run_anew


@pytest.fixture
def calls(ci_agent: Any, policy: Write, script: Write) -> Calls:
    """Run these commands, one call each, and give the calls as they are in the record."""

    def run(*commands: str, sandbox: str = "auto", env: dict[str, str] | None = None) -> list[Any]:
        turn = {"tool_calls": [{"name": "bash", "arguments": {"command": command}} for command in commands]}
        model = script(json.dumps({"turns": [turn, {"text": "done"}]}))
        arguments = ("--policy", policy(POLICY), "--model", model, "--sandbox", sandbox, "Go.")
        done = ci_agent("run", *arguments, env=env)
        assert done.returncode == 0, done.stderr
        found: list[Any] = json.loads(done.stdout)["tool_calls"]
        return found

    return run


def text_of(call: Any) -> str:
    return str(call["content"][0]["text"])


def attack(workspace: Path, text: str) -> str:
    (workspace / "attack.sh").write_text(text)
    return "bash attack.sh"


def test_the_sandbox_is_in_the_first_line_and_in_the_record(ci_agent: Any, script: Write) -> None:
    here = find_sandbox("auto", os.environ["PATH"])
    model = script("turns: [{text: hi}]")
    done = ci_agent("run", "--policy", "read-only", "--model", model, "Go.")
    recorded = json.loads(done.stdout)["run"]["sandbox"]
    assert recorded == {"kind": here.kind, "requested": "auto", "abi": here.abi}
    assert f"  sandbox {here}  record " in done.stderr.splitlines()[0]


def test_a_required_sandbox_is_in_force_or_nothing_runs(ci_agent: Any, script: Write) -> None:
    here = find_sandbox("auto", os.environ["PATH"])
    model = script("turns: [{text: hi}]")
    done = ci_agent("run", "--policy", "read-only", "--model", model, "--sandbox", "required", "Go.")
    if here.kind == "none":
        assert (done.returncode, done.stdout) == (3, "")
        assert "a sandbox is required and there is none" in done.stderr
    else:
        assert json.loads(done.stdout)["run"]["sandbox"] == {
            "kind": here.kind,
            "requested": "required",
            "abi": here.abi,
        }


def test_off_means_off_and_is_on_record(calls: Calls, ci_agent: Any, script: Write, workspace: Path) -> None:
    (call,) = calls(attack(workspace, "echo x > ../outside.txt"), sandbox="off")
    assert (call["status"], (workspace.parent / "outside.txt").read_text()) == ("ok", "x\n")
    done = ci_agent("run", "--policy", "read-only", "--model", script("turns: [{text: hi}]"), "--sandbox", "off", "Go.")
    assert json.loads(done.stdout)["run"]["sandbox"] == {"kind": "none", "requested": "off", "abi": None}


@needs_landlock
def test_attack_write_outside_by_a_script_that_the_policy_allows(calls: Calls, workspace: Path) -> None:
    victim = workspace.parent / "victim.txt"
    victim.write_text("as it was")
    (call,) = calls(attack(workspace, f"echo x > here.txt; echo {CANARY} > {victim}"))
    assert (victim.read_text(), (workspace / "here.txt").read_text()) == ("as it was", "x\n")
    assert text_of(call) == (
        f"attack.sh: line 1: {victim}: Permission denied\n"
        "[The sandbox refused something if it says so above: this call may write the workspace, $TMPDIR and nothing "
        "else; it may not use the network.]\nexit status 1"
    )


@needs_landlock
def test_attack_read_a_denied_file_by_a_script_that_the_policy_allows(calls: Calls, workspace: Path) -> None:
    (workspace / "secret.txt").write_text(CANARY)
    call, other = calls(attack(workspace, "cat *.txt; tar c ."), "cat script.yaml")
    assert CANARY not in json.dumps([call, other])
    assert "it may not read secret.txt; it cannot read back what it newly makes" in text_of(call)
    assert other["status"] == "ok"


@needs_landlock
def test_attack_find_the_key_of_a_shell_above(calls: Calls, workspace: Path) -> None:
    hunt = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2> errors | tr '\\0' '\\n'; cat errors"
    (call,) = calls(attack(workspace, hunt), env={"SOME_API_TOKEN": CANARY[::-1], "OTHER": "x"})
    assert CANARY not in text_of(call)
    assert CANARY[::-1] not in text_of(call)
    assert "Permission denied" in text_of(call)


@needs_landlock
def test_attack_read_a_key_file_that_the_run_was_given(ci_agent: Any, policy: Write, workspace: Path) -> None:
    key = workspace / "key"
    key.write_text(CANARY)
    key.chmod(0o600)
    command = attack(workspace, "cat key; cat ./k*")
    turns = [{"tool_calls": [{"name": "bash", "arguments": {"command": command}}]}, {"text": "done"}]
    (workspace / "script.yaml").write_text(json.dumps({"turns": turns}))
    arguments = ("--policy", policy(POLICY), "--model", "scripted:script.yaml", "--api-key-file", "key", "Go.")
    done = ci_agent("run", *arguments)
    assert done.returncode == 0, done.stderr
    (call,) = json.loads(done.stdout)["tool_calls"]
    assert text_of(call).startswith("cat: key: Permission denied\ncat: ./key: Permission denied\n")


BUILD = """
rules:
  - {id: build, allow: bash, command: "bash attack.sh", paths: [attack.sh, "dist/**", "a/b/c/**"]}
"""


@needs_landlock
@pytest.mark.parametrize("obstacle", [None, "file", "link"])
def test_attack_write_beside_a_folder_that_is_not_there_yet(
    ci_agent: Any, policy: Write, script: Write, workspace: Path, obstacle: str | None
) -> None:
    (workspace / "src").mkdir()
    attack(workspace, "echo x > canary; echo x > src/canary; echo ok > a/b/c/made; echo ok > dist/made; true")
    if obstacle == "file":
        (workspace / "dist").write_text("")
    if obstacle == "link":
        (workspace / "dist").symlink_to("nowhere")
    call = {"name": "bash", "arguments": {"command": "bash attack.sh"}}
    model = script(json.dumps({"turns": [{"tool_calls": [call]}, {"text": "done"}]}))
    done = ci_agent("run", "--policy", policy(BUILD), "--model", model, "Go.")
    assert done.returncode == 0, done.stderr
    assert not list(workspace.rglob("canary"))
    assert (workspace / "a/b/c/made").read_text() == "ok\n"
    assert (workspace / "dist/made").exists() == (obstacle is None)
    assert not (workspace / "nowhere").exists()


@needs_landlock
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_folder_that_cannot_be_made_opens_nothing(
    ci_agent: Any, policy: Write, script: Write, workspace: Path
) -> None:
    attack(workspace, "echo x > canary; mkdir dist; true")
    call = {"name": "bash", "arguments": {"command": "bash attack.sh"}}
    model = script(json.dumps({"turns": [{"tool_calls": [call]}, {"text": "done"}]}))
    rules = policy(BUILD)
    workspace.chmod(0o555)
    done = ci_agent("run", "--policy", rules, "--model", model, "Go.")
    workspace.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert not (workspace / "dist").exists()


@needs_landlock
@pytest.mark.skipif(landlock.abi() < 4, reason="this version of Landlock knows no TCP")
def test_the_network_is_for_calls_whose_rule_names_a_host(calls: Calls, workspace: Path) -> None:
    code = "import socket\nwith socket.create_server(('127.0.0.1', 0)) as s:\n"
    code += "    socket.create_connection(s.getsockname()).close()\nprint('reached')\n"
    (workspace / "connect.py").write_text(code)
    granted, attacked = calls("python3 connect.py", attack(workspace, "python3 connect.py"))
    assert text_of(granted) == "reached\n"
    assert "PermissionError" in text_of(attacked)
    assert "it may not use the network" in text_of(attacked)


@needs_landlock
def test_temporary_files_have_a_private_folder_that_is_gone_afterwards(calls: Calls, workspace: Path) -> None:
    show = attack(workspace, 'mktemp -d > made; stat -c "%a %n" "$TMPDIR"; chmod 0 "$TMPDIR"/tmp.*')
    first, second = calls(show, "bash attack.sh")
    modes = [text_of(call).splitlines()[-1].split() for call in (first, second)]
    folder = Path(modes[0][1])
    assert modes == [["700", str(folder)]] * 2
    assert not folder.exists()


@needs_landlock
def test_attack_hide_a_secret_among_too_many_files(calls: Calls, workspace: Path) -> None:
    (workspace / "secret.txt").write_text(CANARY)
    for number in range(4_001):
        (workspace / f"f{number}").touch()
    (call,) = calls(attack(workspace, "cat secret.txt"))
    assert call["status"] == "error"
    assert text_of(call).startswith(
        "the sandbox cannot be set up, so the command was not run: there are more than 4,000"
    )


needs_scopes = pytest.mark.skipif(landlock.abi() < 6, reason="this version of Landlock does not keep signals in")

ALL_ABOVE = "pid=$$; while pid=$(cut -d' ' -f4 /proc/$pid/stat); [ $pid -gt 1 ]; do {} $pid || true; done; echo end"


@needs_scopes
@pytest.mark.parametrize("sandbox", ["auto", "off"])
@pytest.mark.parametrize("signal", ["KILL", "STOP", "TERM"])
def test_attack_signal_ci_agent(calls: Calls, workspace: Path, signal: str, sandbox: str) -> None:
    kill = ALL_ABOVE.format(f"kill -{signal}")
    call, after = calls(attack(workspace, kill), "ls attack.sh", sandbox=sandbox)
    assert (call["status"], after["status"]) == ("ok", "ok")
    assert "Operation not permitted" in text_of(call)


@needs_scopes
@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_attack_trace_ci_agent(calls: Calls, workspace: Path, sandbox: str) -> None:
    """PTRACE_ATTACH (16), which stops a process as SIGSTOP does, and reading memory."""
    (workspace / "trace.py").write_text(
        "import ctypes, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "print('traced' if libc.ptrace(16, int(sys.argv[1]), 0, 0) == 0 else f'errno {ctypes.get_errno()}')\n"
        "try:\n    open(f'/proc/{sys.argv[1]}/mem').close()\n    print('traced')\nexcept OSError: pass\n"
    )
    call, after = calls(attack(workspace, ALL_ABOVE.format("python3 trace.py")), "ls attack.sh", sandbox=sandbox)
    assert (call["status"], after["status"]) == ("ok", "ok")
    assert "errno 1\n" in text_of(call)
    assert "traced" not in text_of(call)


LIMIT_ALL_AROUND = """
import os, resource
pid = os.getppid()
for _ in range(3):  # supervisor, server, ci-agent
    for limit, most in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CPU, 1), (resource.RLIMIT_NOFILE, 3)):
        try:
            resource.prlimit(pid, limit, (most, most))
            print("limited")
        except OSError as error:
            print(error)
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
"""


@needs_scopes
@pytest.mark.skipif(not seccomp.is_available(), reason="no filters for system calls are to be had here")
@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_attack_limit_ci_agent(calls: Calls, workspace: Path, sandbox: str) -> None:
    """So that it can write no more of its record, or is killed by the kernel when it has used a second."""
    (workspace / "limit.py").write_text(LIMIT_ALL_AROUND)
    call, after = calls(attack(workspace, "exec python3 limit.py"), "ls attack.sh", sandbox=sandbox)
    assert (call["status"], after["status"]) == ("ok", "ok")
    assert text_of(call) == "[Errno 1] Operation not permitted\n" * 9


def test_without_a_sandbox_root_keeps_all_that_it_can(calls: Calls, workspace: Path) -> None:
    show = "grep CapEff /proc/self/status"
    (call,) = calls(attack(workspace, show), sandbox="off")
    here = subprocess.run(show, shell=True, capture_output=True, text=True, check=True).stdout
    assert text_of(call) == here


def test_without_a_sandbox_processes_of_a_call_signal_each_other(calls: Calls, workspace: Path) -> None:
    (call,) = calls(attack(workspace, "sleep 60 & kill -9 $! && wait; echo $?"), sandbox="off")
    assert text_of(call).endswith("0\n")


def test_a_bubblewrap_is_used_where_there_is_no_landlock(
    policy: Write, script: Write, workspace: Path, tmp_path: Path
) -> None:
    if find_sandbox("auto", os.environ["PATH"], landlock_abi=0).kind != "bubblewrap":
        pytest.skip("bubblewrap cannot be used here")
    victim = tmp_path / "victim.txt"
    victim.write_text("as it was")
    turn = {"tool_calls": [{"name": "bash", "arguments": {"command": attack(workspace, f"echo x > {victim}")}}]}
    model = script(json.dumps({"turns": [turn, {"text": "done"}]}))
    code = (
        "import sys; from ci_agent.sandbox import landlock; landlock.abi = lambda: 0\n"
        "from ci_agent.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "run", "--policy", policy(POLICY), "--model", model, "Go."],
        cwd=workspace,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    document = json.loads(done.stdout)
    assert document["run"]["sandbox"] == {"kind": "bubblewrap", "requested": "auto", "abi": None}
    assert "Read-only file system" in text_of(document["tool_calls"][0])
    assert victim.read_text() == "as it was"
