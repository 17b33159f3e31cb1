"""How fast a policy loads and decides: ratios between sizes, and against bash itself, in one run.

    .venv/bin/python benchmarks/policy.py

Prints one line for each figure. Absolute times depend on the machine; the ratios are what to compare.
"""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ci_agent import Policy, load_policy

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


def median_s(action: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def load(rules: int, folder: Path) -> tuple[Policy, float]:
    text = policy_text(rules)
    start = time.perf_counter()
    policy = load_policy(text=text, workspace=folder)
    return policy, time.perf_counter() - start


def decide_s(policy: Policy, command: str, repeats: int) -> float:
    return median_s(lambda: policy.decide("bash", {"command": command}), repeats)


def worst_inputs() -> dict[str, str]:
    """Inputs at the bounds, of the kinds that cost most."""
    return {
        "nesting 60": "echo " + "$(echo " * 60 + "x" + ")" * 60,
        "10,000 commands": "true;" * 9_990 + "true",
        "one word of 250 kB": "echo " + "x" * 250_000,
        "5,000 globs": "echo " + " ".join(f"a{n}*" for n in range(5_000)),
        "deep braces": "echo " + "{a,b}" * 12,
        "3,000 quoted words": "echo " + "'it'\"s\"\\ fine " * 3_000,
        "2,000 assignments": "".join(f"V{n}=x; " for n in range(2_000)) + "echo $V1",
        "1,000 here-documents": "".join(f"cat <<E{n}\nbody\nE{n}\n" for n in range(1_000)),
        "unclosed quotes": "echo " + "'a\"b" * 10_000,
        "long pipeline": "cat x" + " | sort" * 5_000,
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "src").mkdir()
        (folder / "src/a.py").write_text("x\n")
        policies = {rules: load(rules, folder) for rules in (10, 1_000, 10_000)}
        bash_s = median_s(lambda: subprocess.run(["bash", "-c", "true"], check=True), 50)
        for rules, (policy, loaded_s) in policies.items():
            print(f"load {rules:>6,} rules: {loaded_s:.3f} s")
            assert policy.decide("bash", {"command": FIVE_COMMANDS}).effect == "allow"
        decided = {rules: decide_s(policy, FIVE_COMMANDS, 200) for rules, (policy, _) in policies.items()}
        for rules, seconds in decided.items():
            print(
                f"decide five commands under {rules:>6,} rules: {seconds * 1e3:.2f} ms, "
                f"{seconds / decided[10]:.2f} of 10 rules, {seconds / bash_s:.2f} of `bash -c true`"
            )
        policy = policies[1_000][0]
        for what, command in worst_inputs().items():
            seconds = decide_s(policy, command, 3)
            print(f"decide {what}: {seconds * 1e3:.1f} ms ({policy.decide('bash', {'command': command}).code})")


if __name__ == "__main__":
    main()
