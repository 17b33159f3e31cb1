"""Lines that people type in CI, under a rule for each of their programs and a rule that keeps secrets unread."""

from collections.abc import Callable
from pathlib import Path

from ci_agent.policy.decide import Policy

MakePolicy = Callable[..., Policy]
Put = Callable[..., Path]

_LINES = (Path(__file__).parent / "everyday_programs.txt").read_text(encoding="utf-8").splitlines()
_PROGRAMS = sorted({line.split()[0] for line in _LINES})
_INNER = ("wc", "grep", "xargs", "pytest", "tsc")


def test_everyday_lines_pass_when_their_programs_are_granted(policy: MakePolicy, put: Put) -> None:
    for name in ("src/a.py", "dir/b.txt", "a.txt", "chart/values.yml", "tests/test_a.py", "requirements.txt", ".env"):
        put(name)
    commands = [f"{program} **" for program in (*_PROGRAMS, *_INNER)]
    decided = policy(
        f"""
        - {{id: tools, allow: bash, command: {[*commands, "python -m {pytest,mypy} **"]}}}
        - {{id: secrets, deny: read, path: "**/.env"}}
        """
    )
    refused = [line for line in _LINES if decided.decide("bash", {"command": line}).effect == "deny"]
    print(f"{len(_LINES) - len(refused)} of {len(_LINES)} everyday lines are allowed")
    assert refused == ["docker build -t app:latest ."]  # the secret would be sent along
