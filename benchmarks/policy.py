"""How fast a policy loads and decides: ratios between sizes, and against bash itself, in one run.

    .venv/bin/python -m benchmarks.policy

Absolute times depend on the machine; the ratios are what to compare. hostile.py has the lines made to take long,
alike.py the policies.
"""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.alike import ALIKE, BOUND_MS, policy_of
from benchmarks.hostile import HOSTILE, IN_A_REPOSITORY, grow
from ci_agent import Policy, load_policy
from ci_agent.json_types import JsonObject
from ci_agent.workspace import MAX_LINKS

SHOWN = 25
"""How many of the hostile lines are printed."""

FILES = 250
"""In the folder that globs look at."""

LINKS = 100
"""Symbolic and hard ones, each."""

DEPTH = 60
"""Of the deepest folder."""

ROUNDS = 20
TIMES = 30
"""How often every policy decides in a round, and bash runs a third as often."""

TRACKED = (200, 8_000)
"""So many further files there are in the repositories."""

FIVE_COMMANDS = "cd src && git log --oneline -5 | head -3 && wc -l *.py 2>/dev/null | sort -n"

OWN_RULES = """
  - {id: five, allow: bash, command: ["cd *", "git log **", "head **", "wc **", "sort **"], paths: ["**"]}
  - {id: no-secrets, deny: read, path: ["**/.env"]}
"""


def policy_text(rules: int) -> str:
    """A policy of so many rules of all kinds, of which two matter to the call."""
    kinds = (
        "{{id: c{n}, allow: bash, command: ['tool{n} run **']}}",
        "{{id: p{n}, allow: [read, edit], path: ['area{n}/**/*.py']}}",
        "{{id: d{n}, deny: [write], path: ['**/secret{n}/*']}}",
        "{{id: h{n}, allow: fetch, host: ['host{n}.example.org']}}",
        "{{id: b{n}, deny: bash, command: ['danger{n} **']}}",
    )
    filler = "".join(f"  - {kinds[n % len(kinds)].format(n=n)}\n" for n in range(rules - 2))
    return f"policy: 1\nrules:\n{OWN_RULES.strip(chr(10))}\n{filler}"


def seconds_of(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def run_bash() -> None:
    subprocess.run(["bash", "-c", "true"], check=True)


def load(rules: int, folder: Path) -> tuple[Policy, float]:
    text = policy_text(rules)
    start = time.perf_counter()
    policy = load_policy(text=text, workspace=folder)
    return policy, time.perf_counter() - start


def measure_hostile(policy: Policy, kinds: Mapping[str, Callable[[int], str]]) -> list[tuple[float, str, int, str]]:
    """For each kind of hostile line, just within the bounds and just beyond: how long it takes, its name, its length,
    and the code of the decision."""
    rows = []
    for name, make in kinds.items():
        for line in grow(policy, make):
            code = policy.decide("bash", {"command": line}).code
            rows.append((least_s(policy, "bash", {"command": line}), name, len(line), code))
    return sorted(rows, reverse=True)


def least_s(policy: Policy, tool: str, arguments: JsonObject) -> float:
    """CPU seconds, the least of a few decisions: on a busy machine the least says most."""
    times = []
    for _ in range(5):
        start = time.process_time()
        policy.decide(tool, arguments)
        times.append(time.process_time() - start)
    return min(times)


def fill(folder: Path) -> None:
    """Files for globs to match, a deep folder, links of every kind."""
    (folder / "src").mkdir()
    (folder / "src/a.py").write_text("x\n")
    for number in range(FILES):
        (folder / f"m{number:03}").touch()
    (folder / "deep" / "/".join("d" * DEPTH)).mkdir(parents=True)
    (folder / "links").mkdir()
    for number in range(LINKS):
        (folder / "links" / f"l{number}").symlink_to(f"../m{number:03}")
        (folder / f"h{number:03}").hardlink_to(folder / f"m{number:03}")
    (folder / "loop").symlink_to("loop")
    (folder / "c0").symlink_to("src")
    for number in range(1, MAX_LINKS):
        (folder / f"c{number}").symlink_to(f"c{number - 1}")


def make_repository(folder: Path, files: int) -> None:
    """All of it committed, with a list of what a build leaves out."""
    for number in range(files):
        place = folder / f"src/d{number // 50}"
        place.mkdir(exist_ok=True)
        (place / f"f{number}.py").write_text(str(number))
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    (folder / ".dockerignore").write_text("".join(f"x{number}\n" for number in range(25)))
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (("init", "-q"), ("add", "-A"), (*author, "commit", "-qm", "all")):
        subprocess.run(["git", "-C", folder, *command], check=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder)
        bash_s = statistics.median(seconds_of(run_bash) for _ in range(50))
        print(f"yardstick: `bash -c true` takes {bash_s * 1e3:.2f} ms")
        policies = print_loading(folder, bash_s)
        print_deciding(policies)
        print("\nThe slowest lines, each grown until a bound refuses more of it, and a little further:")
        print_hostile(policies[1_000], HOSTILE, bash_s)
        print_alike(folder, bash_s)
    for tracked in TRACKED:
        with tempfile.TemporaryDirectory() as name:
            fill(Path(name))
            make_repository(Path(name), tracked)
            print(f"\nIn a repository with {tracked:,} files more:")
            print_hostile(load(1_000, Path(name))[0], IN_A_REPOSITORY, bash_s, shown=5)


def print_loading(folder: Path, bash_s: float) -> dict[int, Policy]:
    policies = {}
    for rules in (10, 1_000, 10_000):
        policies[rules], seconds = load(rules, folder)
        print(f"load {rules:>6,} rules: {seconds:.3f} s, {seconds / bash_s:.0f} of `bash -c true`")
    return policies


def print_deciding(policies: Mapping[int, Policy]) -> None:
    """In turns, so that what the machine does meanwhile falls on all alike."""
    assert all(policy.decide("bash", {"command": FIVE_COMMANDS}).effect == "allow" for policy in policies.values())
    took: dict[int, list[float]] = {rules: [] for rules in policies}
    bash_took = []
    for _ in range(ROUNDS):
        bash_took += [seconds_of(run_bash) for _ in range(TIMES // 3)]
        for rules, policy in policies.items():
            decide = partial(policy.decide, "bash", {"command": FIVE_COMMANDS})
            took[rules] += [seconds_of(decide) for _ in range(TIMES)]
    bash_s = statistics.median(bash_took)
    decided_s = {rules: statistics.median(each) for rules, each in took.items()}
    print(f"meanwhile `bash -c true` takes {bash_s * 1e3:.2f} ms")
    for rules, seconds in decided_s.items():
        print(
            f"decide five commands under {rules:>6,} rules: {seconds * 1e3:.2f} ms, "
            f"{seconds / decided_s[10]:.2f} of 10 rules, {seconds / bash_s:.2f} of `bash -c true`"
        )


def print_hostile(policy: Policy, kinds: Mapping[str, Callable[[int], str]], bash_s: float, shown: int = SHOWN) -> None:
    print(f"{'CPU ms':>8} {'of bash -c true':>16} {'bytes':>8}  decision     kind")
    for seconds, name, size, code in measure_hostile(policy, kinds)[:shown]:
        print(f"{seconds * 1e3:8.1f} {seconds / bash_s:16.1f} {size:8,}  {code:<12} {name}")


def print_alike(folder: Path, bash_s: float) -> None:
    print(f"\nPolicies whose rules look alike, each with a call that asks much of it; at most {BOUND_MS} ms:")
    print(f"{'CPU ms':>8} {'of bash -c true':>16} {'rules':>8}  decision     kind")
    for name, alike in ALIKE.items():
        policy = load_policy(text=policy_of(alike), workspace=folder)
        code = policy.decide(alike.tool, alike.arguments).code
        seconds = least_s(policy, alike.tool, alike.arguments)
        print(f"{seconds * 1e3:8.1f} {seconds / bash_s:16.1f} {alike.rule_count:8,}  {code:<12} {name}")


if __name__ == "__main__":
    main()
