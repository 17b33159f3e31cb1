"""What the sandbox costs a command, beside the same command without: in turn, in one run.

    .venv/bin/python -m benchmarks.sandbox

Absolute times depend on the machine and on who else uses it; what to compare are the differences.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from ci_agent import load_policy
from ci_agent.cancellation import CancelToken
from ci_agent.confined_commands import create_confine
from ci_agent.policy.decide import Policy
from ci_agent.process import Processes, open_processes
from ci_agent.sandbox import landlock
from ci_agent.sandbox.bubblewrap import find_bubblewrap, why_unusable
from ci_agent.sandbox.confinement import Confine, leave_unconfined
from ci_agent.sandbox.private_folder import PrivateFolder
from ci_agent.sandbox.sandbox import Sandbox

ROUNDS = 200
SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
RULES = "policy: 1\nrules: [{id: all, allow: bash, command: ['true', 'pytest **']}]"

Times: TypeAlias = dict[str, list[float]]


def main() -> None:
    folder = PrivateFolder()
    try:
        with tempfile.TemporaryDirectory() as workspace, open_processes() as processes:
            policy = load_policy(text=RULES, workspace=workspace)
            kinds: dict[str, Confine] = {"without": leave_unconfined}
            for sandbox in _sandboxes():
                kinds[sandbox.kind] = create_confine(policy, sandbox, folder, git_settings=lambda _: {})
            times = measure(processes, Path(workspace), kinds)
            show(times)
            print(f"of which asking the policy again  {_median_ms(judging(policy)):6.2f} ms")
    finally:
        folder.remove()


def _sandboxes() -> list[Sandbox]:
    found = [Sandbox("landlock", abi=landlock.abi())] if landlock.abi() else []
    program = find_bubblewrap(SEARCH_PATH)
    if program is not None and why_unusable(program) is None:
        found.append(Sandbox("bubblewrap", program=program))
    return found


def measure(processes: Processes, workspace: Path, kinds: dict[str, Confine]) -> Times:
    """Seconds for `true`, from asking how it is confined to its end; each kind in turn, so that all suffer alike."""
    times: Times = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind, confine in kinds.items():
            times[kind].append(_seconds(partial(_run, processes, workspace, confine)))
    return times


def _run(processes: Processes, workspace: Path, confine: Confine) -> None:
    confined = confine({"command": "pytest -q"})
    processes.run(
        ["/bin/true"],
        cwd=workspace,
        env={"PATH": SEARCH_PATH, **confined.environment},
        timeout_s=10,
        cancel=CancelToken(),
        confinement=confined.confinement,
    )


def judging(policy: Policy) -> list[float]:
    return [_seconds(lambda: policy.decide("bash", {"command": "pytest -q"})) for _ in range(ROUNDS)]


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def show(times: Times) -> None:
    plain = _median_ms(times["without"])
    for kind, taken in times.items():
        median = _median_ms(taken)
        print(f"{kind:12} median {median:6.2f} ms  best {min(taken) * 1000:6.2f} ms  more {median - plain:+6.2f} ms")


def _median_ms(times: list[float]) -> float:
    return statistics.median(times) * 1000


if __name__ == "__main__":
    main()
