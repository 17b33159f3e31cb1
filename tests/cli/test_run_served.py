"""`ci-agent run` against a model's server on this machine: the real command, over a real connection."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import CIAgent
    from tests.conftest import Faults, FaultServer

KEY = "sk-test-0123456789abcdef"
WITH_KEY = {"OPENAI_API_KEY": KEY}
PRICES = "models:\n  openai-chat:m:\n    price: {input: 1000, output: 1000}\n"

Run = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def run(ci_agent: "CIAgent") -> Run:
    """Runs against a server; returns exit code, transcript, and stderr. Neither may ever hold the key."""

    def call(server: "FaultServer | None", *args: str, env: dict[str, str] = WITH_KEY) -> tuple[int, Any, str]:
        where = [] if server is None else ["--base-url", f"{server.url}/v1"]
        done = ci_agent("run", "--policy", "read-only", "--model", "openai-chat:m", *where, *args, "Hello.", env=env)
        assert "0123456789" not in done.stdout + done.stderr
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    return call


def reading(path: str) -> dict[str, Any]:
    function = {"name": "read", "arguments": json.dumps({"path": path})}
    return {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}


@pytest.mark.parametrize(
    ("flags", "env", "said"),
    [
        ((), WITH_KEY, "(the key that was refused is that of OPENAI_API_KEY)"),
        (("--api-key-file", "key"), {}, "(the key that was refused is that of --api-key-file)"),
        ((), {}, "(no key was sent: set OPENAI_API_KEY, or give a file with --api-key-file)"),
    ],
)
def test_a_refused_key_is_told_by_where_it_came_from(
    faults: "Faults", run: Run, tmp_path: Path, flags: tuple[str, ...], env: dict[str, str], said: str
) -> None:
    (tmp_path / "ws" / "key").write_text(KEY)
    code, document, _ = run(faults.serve(faults.error(401, "No.")), *flags, env=env)
    assert (code, document["result"]["error"]) == (4, f"HTTP 401: No. {said}")


def test_a_local_server_that_is_loading_is_waited_for(faults: "Faults", ci_agent: "CIAgent") -> None:
    loading = faults.error(503, "Loading model", retry_after_ms="1")
    server = faults.serve(*[loading] * 7, faults.answer("There."))
    flags = ("--policy", "read-only", "--model", "llamacpp:m", "--base-url", f"{server.url}/v1", "--output", "text")
    done = ci_agent("run", *flags, "Hello.")
    assert (done.returncode, done.stdout) == (0, "There.\n"), done.stderr
    assert "attempt 5 of 5 in 0.0 s" in done.stderr
    assert "attempt 8 in 0.0 s" in done.stderr


def test_a_local_server_that_is_not_there_is_asked_about(ci_agent: "CIAgent") -> None:
    with socket.socket() as held:  # so that nobody else listens there meanwhile
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        flags = ("--policy", "read-only", "--model", "ollama:m", "--base-url", f"http://127.0.0.1:{port}")
        done = ci_agent("run", *flags, "--attempts", "1", "Hello.")
        doctor = ci_agent("doctor", *flags)
    assert done.returncode == 4
    assert "Connection refused: is ollama running?" in done.stderr
    assert f"127.0.0.1:{port} cannot be reached: Connection refused: is ollama running?" in doctor.stdout


@pytest.mark.parametrize("head_first", [False, True])
def test_a_server_that_says_nothing_is_left(faults: "Faults", run: Run, head_first: bool) -> None:
    head = [faults.head(200, content_type="text/event-stream", transfer_encoding="chunked")] if head_first else []
    server = faults.serve([*head, "hang"], [*head, "hang"])
    limits = ("--first-byte-timeout", "0.2", "--attempts", "1")
    code, document, _ = run(server, *limits)
    assert code == 4
    assert "0.2 s" in document["result"]["error"]
    code, document, _ = run(server, "--timeout", "2")
    told = r"the run took longer than 2 s, the last [12] s of them waiting for the model, which did not answer"
    assert (code, re.fullmatch(told, document["result"]["error"]) is not None) == (124, True), document["result"]


def test_a_tool_call_and_an_answer(faults: "Faults", run: Run, workspace: Path) -> None:
    (workspace / "a.txt").write_text("the content\n")
    server = faults.serve(
        faults.error(429, "Slow down.", retry_after_ms="1"),
        faults.answer("", finish="tool_calls", **reading("a.txt")),
        faults.answer("It says: the content."),
    )
    code, document, stderr = run(server)
    assert (code, document["result"]["final_text"]) == (0, "It says: the content.")
    assert [(call["id"], call["status"]) for call in document["tool_calls"]] == [("c1", "ok")]
    assert "attempt 2 of 5 in 0.0 s: HTTP 429: Slow down." in stderr
    assert "attempt 2 of 5 in 0.0 s: HTTP 429: Slow down." in json.dumps(document)
    last = server.requests[2]
    assert last.headers["authorization"] == f"Bearer {KEY}"
    result = next(message for message in last.json["messages"] if message["role"] == "tool")
    assert (result["tool_call_id"], "the content" in result["content"]) == ("c1", True)


def failure_of(document: Any) -> tuple[str, bool]:
    found = [value for value in _objects(document) if value.get("error_message")]
    return found[-1]["error_message"], found[-1]["error_retryable"]


def _objects(value: Any) -> list[dict[str, Any]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for item in inner for found in _objects(item)] + ([value] if isinstance(value, dict) else [])


def test_a_wrong_key_ends_the_run_at_once(faults: "Faults", run: Run) -> None:
    server = faults.serve(faults.error(401, f"Your key {KEY} is wrong.", code="invalid_api_key"))
    code, document, stderr = run(server)
    assert (code, len(server.requests)) == (4, 1)
    assert failure_of(document) == (
        "HTTP 401 invalid_api_key: Your key [the key] is wrong. (the key that was refused is that of OPENAI_API_KEY)",
        False,
    )
    assert "HTTP 401" in stderr


def test_a_server_that_stays_broken_is_given_up(faults: "Faults", run: Run) -> None:
    server = faults.serve(faults.error(500, "Broken.", retry_after_ms="1"))
    code, document, _ = run(server, "--attempts", "2")
    assert (code, len(server.requests)) == (4, 2)
    assert failure_of(document) == ("HTTP 500: Broken. (gave up after 2 attempts)", True)


def test_another_model_takes_over(faults: "Faults", run: Run, workspace: Path) -> None:
    server = faults.serve(faults.error(404, "No such model."))
    (workspace / "script.yaml").write_text("turns: [{text: I am here.}]")
    code, document, stderr = run(server, "--fallback-model", "scripted:script.yaml")
    assert (code, document["result"]["final_text"]) == (0, "I am here.")
    assert "scripted:script.yaml in place of openai-chat:m: HTTP 404: No such model." in stderr


def test_a_limit_of_cost_ends_the_run(faults: "Faults", run: Run, workspace: Path) -> None:
    (workspace / "models.yml").write_text(PRICES)
    (workspace / "a.txt").write_text("x")
    server = faults.serve(faults.answer("", finish="tool_calls", usage=(1000, 1000), **reading("a.txt")))
    code, document, _ = run(server, "--max-cost-usd", "1", "--models-file", "models.yml")
    assert (code, document["result"]["reason"], len(server.requests)) == (6, "limit", 1)


def test_a_limit_of_cost_needs_a_price(faults: "Faults", run: Run) -> None:
    server = faults.serve(faults.answer())
    code, _, stderr = run(server, "--max-cost-usd", "1")
    assert (code, server.requests) == (3, [])
    assert "openai-chat:m" in stderr


def test_a_key_comes_from_a_file(faults: "Faults", run: Run, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    (tmp_path / "key").chmod(0o600)
    server = faults.serve(faults.answer())
    code, _, _ = run(server, "--api-key-file", str(tmp_path / "key"), env={})
    assert (code, server.requests[0].headers["authorization"]) == (0, f"Bearer {KEY}")


def test_a_missing_key_is_told_by_its_variable(ci_agent: "CIAgent") -> None:
    done = ci_agent("run", "--policy", "read-only", "--model", "groq:m", "Hello.")
    assert done.returncode == 3
    assert "GROQ_API_KEY" in done.stderr


def test_the_run_s_time_ends_a_silence(faults: "Faults", run: Run) -> None:
    server = faults.serve([faults.head(200, content_type="text/event-stream"), "hang"])
    start = time.monotonic()
    code, document, _ = run(server, "--timeout", "1")
    assert (code, document["result"]["reason"]) == (124, "timeout")
    assert time.monotonic() - start < 40  # not the minute after which a silence ends by itself


def test_a_signal_ends_a_silence(faults: "Faults", workspace: Path, environment: dict[str, str]) -> None:
    reached = threading.Event()
    server = faults.serve([faults.head(200, content_type="text/event-stream"), reached.set, "hang"])
    command = [sys.executable, "-P", "-m", "ci_agent", "run", "--policy", "read-only", "--model", "openai-chat:m"]
    process = subprocess.Popen(
        [*command, "--base-url", f"{server.url}/v1", "Hello."],
        cwd=workspace,
        env=environment | WITH_KEY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert reached.wait(60)
    start = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=110)
    assert process.returncode == 143
    assert time.monotonic() - start < 20  # not the minute after which a silence ends by itself
