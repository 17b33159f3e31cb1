"""From the beginning of the action's step to its first request of a model, in a workflow that act runs.

    python -m benchmarks.action

Cold: nothing is there, the packages are installed from the registry or pip's cache. Warm: a later step of the job.
"""

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]

WORKFLOW = """\
on: [push]
permissions: {{}}
jobs:
  t:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
{steps}
"""

STEP = """\
      - run: curl -s {url}/begin
      - uses: ./
        with: {{prompt: Go., policy: read-only, model: "openai-chat:m", base-url: "{url}/v1", python: "{python}"}}
"""

ANSWER = json.dumps({"choices": [{"index": 0, "delta": {"content": "Done."}, "finish_reason": "stop"}]})


def serve(moments: list[tuple[str, float]]) -> http.server.ThreadingHTTPServer:
    """A model that answers at once, and notes when it was asked."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            moments.append(("begin", time.monotonic()))
            self._send(b"", "text/plain")

        def do_POST(self) -> None:
            moments.append(("request", time.monotonic()))
            self.rfile.read(int(self.headers["Content-Length"]))
            self._send(f"data: {ANSWER}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")

        def _send(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def yardstick() -> float:
    """Seconds of a bare interpreter."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
    return time.perf_counter() - started


def main() -> None:
    act = Path(sys.executable).with_name("act")
    if not act.exists():
        sys.exit("act is not installed: make setup")
    moments: list[tuple[str, float]] = []
    server = serve(moments)
    url = f"http://127.0.0.1:{server.server_port}"
    with tempfile.TemporaryDirectory() as name:
        checkout, home = Path(name, "checkout"), Path(name, "home")
        home.mkdir()
        subprocess.run(["git", "clone", "-q", str(ROOT), str(checkout)], check=True)
        shutil.rmtree(checkout / ".github" / "workflows")
        (checkout / ".github" / "workflows").mkdir()
        steps = STEP.format(url=url, python=sys.executable) * 4
        (checkout / ".github" / "workflows" / "t.yml").write_text(WORKFLOW.format(steps=steps))
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        subprocess.run(["git", *identity, "commit", "-qam", "t"], cwd=checkout, check=True)
        argv = [str(act), "push", "-P", "ubuntu-latest=-self-hosted"]
        done = subprocess.run(
            argv, cwd=checkout, env={**os.environ, "HOME": str(home)}, capture_output=True, text=True, check=False
        )
    server.shutdown()
    if done.returncode != 0:
        sys.exit(re.sub(r"^", "| ", done.stdout, flags=re.MULTILINE))
    times = [at for _, at in moments]
    took = [times[number + 1] - times[number] for number in range(0, len(times), 2)]
    bare = yardstick()
    print(f"yardstick, a bare interpreter: {bare:.3f} s")
    print(f"cold: {took[0]:.2f} s, {took[0] / bare:.0f} of the yardstick")
    warm = sorted(took[1:])[len(took[1:]) // 2]
    print(f"warm: {warm:.2f} s, {warm / bare:.0f} of the yardstick (median of {len(took) - 1})")


if __name__ == "__main__":
    main()
