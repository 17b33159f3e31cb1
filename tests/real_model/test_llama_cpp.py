"""The wire and the gates with a model that nobody scripted: whatever it says in its own words is not looked at."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from no_records import no_records

from ci_agent.cancellation import CancelToken
from ci_agent.messages import TextContent, ToolCall, UserMessage
from ci_agent.provider import ContentDelta, ContentEnd, ContentStart, Context, StreamDone, StreamOptions, StreamStart
from ci_agent.providers.outside import Outside
from ci_agent.providers.settings import ModelSettings
from ci_agent.providers.table import open_models, parse_model
from ci_agent.tool import Tool, ToolResult

pytestmark = [pytest.mark.slow, pytest.mark.real_model, pytest.mark.timeout(300)]

POLICY = """
policy: 1
extends: [read-only]
rules:
  - id: no-secrets
    deny: [ls]
    path: ["secrets"]
    because: secrets stay out of the run
"""

Run: TypeAlias = Callable[[str], tuple[int, Any]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "notes").mkdir(parents=True)
    (folder / "secrets").mkdir()
    (folder / "notes" / "plan.md").write_text("1\n")
    return folder


@pytest.fixture
def run(workspace: Path, tmp_path: Path, base_url: str) -> Run:
    """Runs `ci-agent run` with a prompt, and returns its exit code and transcript.

    The system prompt names no folder of this machine: a model so small may answer differently for each.
    """
    (tmp_path / "policy.yml").write_text(POLICY)
    (tmp_path / "system.txt").write_text("You list folders.")
    files = ["--policy", "../policy.yml", "--system-file", "../system.txt"]
    options = ["--tools", "ls", "--model", "llamacpp:local", "--base-url", base_url]
    limits = ["--temperature", "0", "--max-turns", "3", "--max-output-tokens", "100"]

    def call(prompt: str) -> tuple[int, Any]:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "ci_agent", "run", *files, *options, *limits, prompt],
            cwd=workspace,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
            timeout=200,
        )
        return done.returncode, json.loads(done.stdout)

    return call


def test_a_call_that_the_policy_allows_runs_and_the_model_answers_with_its_result(run: Run, workspace: Path) -> None:
    exit_code, transcript = run("List the folder notes.")
    _, asked, result, answered = transcript["messages"]
    (call,) = asked["content"]
    (record,) = transcript["tool_calls"]
    assert (asked["stop_reason"], call["name"], call["arguments"]) == ("tool_use", "ls", {"path": "notes"})
    assert call["id"] == record["id"] == result["tool_call_id"]
    assert record["decision"]["effect"] == "allow"
    assert record["decision"]["rule_id"] == "read-only/look"
    assert [fact["value"] for fact in record["decision"]["facts"]] == [str(workspace / "notes")]
    assert record["status"] == "ok"
    assert record["content"] == result["content"] == [{"type": "text", "text": "plan.md  2 bytes"}]
    assert (answered["stop_reason"], answered["content"][0]["type"]) == ("stop", "text")
    assert transcript["result"]["final_text"] == answered["content"][0]["text"]
    assert (exit_code, transcript["result"]["reason"]) == (0, "completed")


def test_a_call_that_the_policy_denies_does_not_run_and_the_run_says_so(run: Run) -> None:
    exit_code, transcript = run("List the folder secrets.")
    (record,) = transcript["tool_calls"]
    assert (record["tool"], record["arguments"]) == ("ls", {"path": "secrets"})
    assert (record["decision"]["effect"], record["decision"]["rule_id"]) == ("deny", "no-secrets")
    assert (record["status"], record["is_error"]) == ("denied", True)
    assert record["content"][0]["text"].startswith("Blocked by policy rule no-secrets: secrets stay out of the run")
    assert (exit_code, transcript["result"]["reason"]) == (5, "denied")


def test_the_server_counts_the_tokens_of_each_message_and_what_it_still_had_in_its_cache(run: Run) -> None:
    _, transcript = run("List the folder notes.")
    first, second = (message["usage"] for message in transcript["messages"] if message["role"] == "assistant")
    for usage in (first, second):
        assert 5 < usage["output_tokens"] <= 100
        assert usage["cost_usd"] is None
        assert "estimated" not in usage
    assert first["input_tokens"] + first["cache_read_tokens"] > 200
    assert second["cache_read_tokens"] > 200
    assert transcript["usage"]["output_tokens"] == first["output_tokens"] + second["output_tokens"]


def test_a_call_arrives_piece_by_piece_and_obeys_the_schema_of_the_tool(base_url: str) -> None:
    schema = {"type": "object", "properties": {"path": {"enum": ["north"]}}, "required": ["path"]}
    tool = Tool("look_at", "Look at a folder.", schema, lambda *_: ToolResult((TextContent("never run"),)))
    now = datetime.now(UTC)
    context = Context("You list folders.", (UserMessage((TextContent("List the folder notes."),), now),), (tool,))
    model = parse_model("llamacpp:local")
    outside = Outside({}, lambda: now, random.random, no_records)
    opened = open_models([model], ModelSettings(base_url=base_url), outside)
    options = StreamOptions(temperature=0, max_output_tokens=100)
    start, *content, done = opened.stream_fn(model, context, options, CancelToken())
    opened.close()
    assert isinstance(done, StreamDone)
    (call,) = done.message.content
    assert isinstance(call, ToolCall)
    assert (call.name, json.loads(call.arguments_json)) == ("look_at", {"path": "north"})
    assert (start, content[0], content[-1]) == (StreamStart(), ContentStart("toolcall", 0), ContentEnd("toolcall", 0))
    pieces = [event.delta for event in content if isinstance(event, ContentDelta)]
    assert len(pieces) > 1
    assert json.loads("".join(pieces)) == {"path": "north"}
