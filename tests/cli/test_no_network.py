"""What is not asked to talk to a model talks to nobody: no update check, no telemetry, no look-up of a name."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WATCHED = """
import sys, socket

def watch(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto") or (
        event in ("socket.connect", "socket.bind") and arguments[0].family != socket.AF_UNIX
    ):
        open("canary", "a").write(f"{event} {arguments[1:]}\\n")

sys.addaudithook(watch)
sys.argv = ["ci-agent", *sys.argv[1:]]
from ci_agent.__main__ import main
main()
"""


def watched(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-P", "-c", WATCHED, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=110,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("--help",),
        ("tools",),
        ("models", "gpt"),
        ("policy", "check", "review"),
        ("policy", "explain", "--policy", "read-only", "--tool", "fetch", "--args", '{"url": "https://example.com/"}'),
        ("run", "--policy", "read-only", "--model", "scripted:script.yaml", "Go."),
    ],
    ids=" ".join,
)
def test_nobody_is_talked_to(workspace: Path, environment: dict[str, str], arguments: tuple[str, ...]) -> None:
    calls = [{"name": "ls", "arguments": {}}, {"name": "fetch", "arguments": {"url": "https://example.com/"}}]
    (workspace / "script.yaml").write_text(json.dumps({"turns": [{"tool_calls": calls}, {"text": "Done."}]}))
    done = watched(workspace, environment, *arguments)
    assert done.returncode == 0, done.stderr
    assert not (workspace / "canary").exists(), (workspace / "canary").read_text()


def test_who_talks_is_seen(workspace: Path, environment: dict[str, str]) -> None:
    call = {"name": "fetch", "arguments": {"url": "http://127.0.0.1:1/"}}
    (workspace / "script.yaml").write_text(json.dumps({"turns": [{"tool_calls": [call]}, {"text": "Done."}]}))
    rule = "policy: 1\nrules: [{id: f, allow: fetch, host: 127.0.0.1, scheme: http, port: 1}]\n"
    (workspace / "policy.yml").write_text(rule)
    watched(workspace, environment, "run", "--policy", "policy.yml", "--model", "scripted:script.yaml", "Go.")
    assert "socket.connect" in (workspace / "canary").read_text()
