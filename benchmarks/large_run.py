"""A run of five thousand calls with half a gigabyte of output: peak memory, the record's size, its page.

python -m benchmarks.large_run [--calls N]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CALLS = 5_000
CALLS_PER_TURN = 50
BYTES_PER_CALL = 100_000

POLICY = """\
policy: 1
limits: {max_turns: 1000, max_tool_calls: 10000, timeout_s: 3600}
rules:
  - {id: show, allow: bash, command: "cat big.txt"}
"""


def script_of(calls: int) -> str:
    turns = [
        {"tool_calls": [{"name": "bash", "arguments": {"command": "cat big.txt"}}] * CALLS_PER_TURN}
        for _ in range(calls // CALLS_PER_TURN)
    ]
    return json.dumps({"turns": [*turns, {"text": "Done."}]})


def measured(argv: list[str], folder: Path) -> tuple[float, float]:
    """Seconds, and the peak of the process's memory in MB."""
    started = time.perf_counter()
    process = subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{argv} ended with status {status}")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=CALLS)
    calls = parser.parse_args().calls
    command = [sys.executable, "-P", "-m", "ci_agent"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "policy.yml").write_text(POLICY)
        (folder / "script.yaml").write_text(script_of(calls))
        (folder / "big.txt").write_text("".join(f"line {number:>90}\n" for number in range(BYTES_PER_CALL // 96)))
        run = ["run", "--quiet", "--policy", "policy.yml", "--model", "scripted:script.yaml", "--transcript", "t.json"]
        seconds, peak_mb = measured([*command, *run, "Go."], folder)
        print(
            f"{calls:,} calls, {calls * BYTES_PER_CALL / 1e6:,.0f} MB of output: {seconds:.0f} s, peak {peak_mb:.0f} MB"
        )
        record_mb = (folder / "t.json").stat().st_size / 1e6
        print(f"record: {record_mb:.1f} MB, {record_mb / (calls * BYTES_PER_CALL / 1e6):.3f} of the output")
        bare, bare_mb = measured([sys.executable, "-c", "import json; json.load(open('t.json'))"], folder)
        print(f"yardstick, json.load of the record: {bare:.2f} s, peak {bare_mb:.0f} MB")
        report = ["report", "t.json", "--format", "html", "--output", "page.html"]
        seconds, peak_mb = measured([*command, *report], folder)
        page_mb = (folder / "page.html").stat().st_size / 1e6
        ratio = seconds / bare
        print(f"HTML page: {seconds:.2f} s, {ratio:.1f} of the yardstick, {page_mb:.1f} MB, peak {peak_mb:.0f} MB")


if __name__ == "__main__":
    main()
