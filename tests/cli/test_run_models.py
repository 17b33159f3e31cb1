"""`ci-agent run`: what is said of the model, right and wrong, and what a hostile one can reach."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import CIAgent
    from tests.conftest import Answer, Faults, FaultServer

KEY = "sk-test-0123456789abcdef"
ENV = {"OPENAI_API_KEY": KEY}
MODEL = "openai-chat:m"


class Served:
    """One run against a server; its record is checked each time, and the key may be nowhere."""

    def __init__(self, ci_agent: "CIAgent") -> None:
        self._ci_agent = ci_agent
        self.document: Any = None
        self.stderr = ""

    def __call__(self, server: "FaultServer", *args: str, env: dict[str, str] = ENV, model: str = MODEL) -> int:
        more = ["--model", model, "--base-url", f"{server.url}/v1", "--transcript", "t.json", *args]
        done = self._ci_agent("run", "--policy", "read-only", *more, "Hello.", env=env)
        self.stderr = done.stderr
        self.document = json.loads(done.stdout)
        report = self._ci_agent("report", "t.json")
        assert self._ci_agent("transcript", "verify", "t.json").returncode == 0
        for text in (done.stdout, done.stderr, report.stdout):
            assert "0123456789" not in text
        self.report = report.stdout
        return done.returncode

    @property
    def result(self) -> Any:
        return self.document["result"]


@pytest.fixture
def served(ci_agent: "CIAgent") -> Served:
    return Served(ci_agent)


# Values


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--timeout", "inf"),
        ("--tool-timeout", "1e300"),
        ("--idle-timeout", "nan"),
        ("--request-timeout", "inf"),
        ("--max-cost-usd", "nan"),
        ("--temperature", "nan"),
    ],
)
def test_what_limits_nothing_is_no_limit(ci_agent: "CIAgent", flag: str, value: str) -> None:
    done = ci_agent("run", "--policy", "read-only", "--model", MODEL, flag, value, "Hello.")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"'{flag}': {value} is not a number up to" in done.stderr


def test_a_limit_in_a_variable_is_blamed_on_it(ci_agent: "CIAgent") -> None:
    done = ci_agent("run", "--policy", "read-only", "--model", MODEL, "Hello.", env={"CI_AGENT_TIMEOUT": "inf"})
    assert (done.returncode, "(the variable CI_AGENT_TIMEOUT)" in done.stderr) == (2, True)


def test_wrong_names_and_files_are_blamed_on_where_they_stand(ci_agent: "CIAgent", workspace: Path) -> None:
    (workspace / "c.yml").write_text(f"policy: read-only\nmodel: {MODEL}\nfallback-model: [x]\n")
    done = ci_agent("run", "--config", "c.yml", "Hello.")
    assert (done.returncode, "--fallback-model (c.yml:3:1" in done.stderr) == (2, True)
    done = ci_agent(
        "run", "--policy", "read-only", "--model", MODEL, "Hello.", env={"CI_AGENT_API_KEY_FILE": "no-such-file"}
    )
    assert (done.returncode, "(the variable CI_AGENT_API_KEY_FILE)" in done.stderr) == (3, True)


def test_a_config_file_says_all_of_it_and_the_report_tells_what_came_of_it(
    faults: "Faults", ci_agent: "CIAgent", workspace: Path
) -> None:
    broken = faults.serve(faults.error(404, "No such model."))
    works = faults.serve(faults.error(429, "Slow down.", retry_after_ms="1"), faults.answer('{"a": 1}', usage=(10, 2)))
    (workspace / "key").write_text(KEY)
    (workspace / "schema.json").write_text('{"type": "object", "required": ["a"]}')
    prices = "price: {input: 1000, output: 1000}"
    (workspace / "m.yml").write_text(f"models:\n  anthropic:m: {{{prices}}}\n  {MODEL}: {{{prices}}}\n")
    (workspace / "c.yml").write_text(
        f"policy: read-only\nmodel: anthropic:m\nbase-url: {broken.url}\napi-key-file: key\n"
        f'fallback-model: ["{MODEL}"]\nthinking: low\ntemperature: 0.5\nmax-output-tokens: 500\n'
        "output-schema: schema.json\nmax-cost-usd: 5\nmodels-file: m.yml\nshrink: summary\nattempts: 2\n"
        "output: text\ntranscript: t.json\n"
    )
    done = ci_agent("run", "--config", "c.yml", "Hello.", env={"OPENAI_BASE_URL": f"{works.url}/v1"})
    assert (done.returncode, done.stdout) == (0, '{"a":1}\n')
    assert broken.requests[0].headers["x-api-key"] == KEY
    assert "authorization" not in works.requests[0].headers
    assert (works.requests[1].json["temperature"], works.requests[1].json["max_tokens"]) == (0.5, 500)
    report = ci_agent("report", "t.json").stdout
    for line in (
        f"fallback  {MODEL} in place of anthropic:m: HTTP 404: No such model.",
        "retry  attempt 2 of 2 in 0.0 s: HTTP 429: Slow down.",
        "10 tokens in, 2 out; 0.0120 USD",
    ):
        assert line in report


# What a hostile server can reach


def calling(faults: "Faults", usage: object) -> "Answer":
    function = {"name": "read", "arguments": '{"path": "a.txt"}'}
    call = {"tool_calls": [{"index": 0, "id": "c1", "function": function}]}
    body = faults.events(
        {"choices": [{"index": 0, "delta": call}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": usage},
    )
    return faults.reply(200, body, content_type="text/event-stream")


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": -1000, "completion_tokens": -1000},
        {"prompt_tokens": "1", "completion_tokens": 1e30},
        {"prompt_tokens": 500, "completion_tokens": 500, "cost": -1000},
    ],
    ids=json.dumps,
)
def test_lies_about_usage_do_not_lift_the_limits(
    faults: "Faults", served: Served, workspace: Path, usage: object
) -> None:
    (workspace / "m.yml").write_text(f"models:\n  {MODEL}: {{price: {{input: 1000, output: 1000}}}}\n")
    server = faults.serve(calling(faults, usage))
    assert served(server, "--models-file", "m.yml", "--max-cost-usd", "3", "--max-turns", "20") == 6
    assert served.result["error"] == "the limit of 3.0 USD is used up"


def test_what_a_server_says_acts_on_no_terminal_and_no_runner_and_holds_no_key(
    faults: "Faults", served: Served
) -> None:
    words = f"\x1b[31mBearer {KEY}\n::error::x\r\n##[error]y \u202e {KEY[:12]}..."
    assert served(faults.serve(faults.error(401, words))) == 4
    for text in (served.stderr, served.report):
        assert not {"\x1b", "\r", "\u202e"} & set(text)
        assert not [line for line in text.splitlines() if line.lstrip().startswith(("::", "##["))]
        assert "##[" not in text
    assert "[the key]" in served.report


def test_a_failed_answer_is_never_a_success(faults: "Faults", served: Served) -> None:
    text = {"choices": [{"index": 0, "delta": {"content": "All is well."}}]}
    filtered = {"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]}
    stop = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    for body in (
        faults.events(text, done=False),
        faults.events(text, filtered),
        faults.events(text, stop, {"error": {"message": "The server broke."}}),
        faults.events(stop),
        b"",
    ):
        server = faults.serve(faults.reply(200, body, content_type="text/event-stream"))
        assert served(server, "--attempts", "1") == 4
        assert (served.result["reason"], served.result["final_text"]) == ("provider_error", None)


def test_a_server_that_keeps_the_connection_busy_is_left(faults: "Faults", served: Served) -> None:
    pings = [step for _ in range(200) for step in (b": ping\n\n", 0.1)]
    server = faults.serve(faults.stream(*pings))
    assert served(server, "--attempts", "1", "--request-timeout", "1") == 4
    assert served.result["error"] == "the request took longer than 1 s"


def test_names_and_ids_of_calls_are_shown_harmless(faults: "Faults", served: Served) -> None:
    function = {"name": "re\x1b[2Jad\n::error::x", "arguments": "{}"}
    call = {"tool_calls": [{"index": 0, "id": "\x1b]0;x\x07\ud800", "function": function}]}
    body = faults.events({"choices": [{"index": 0, "delta": call, "finish_reason": "tool_calls"}]})
    server = faults.serve(faults.reply(200, body, content_type="text/event-stream"), faults.answer())
    assert served(server) == 0
    assert [entry["status"] for entry in served.document["tool_calls"]] == ["error"]
    for text in (served.stderr, served.report):
        assert not {"\x1b", "\x07"} & set(text)
        assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]


# A model that costs nothing


SCRIPT = """\
turns:
  - tool_calls: [{name: ls, arguments: {path: .}}]
    usage: {input_tokens: 600, output_tokens: 40}
  - text: done
    usage: {input_tokens: 300}
"""
SPENDER = ("run", "--policy", "read-only", "--model", "scripted:script.yaml", "--transcript", "t.json", "--quiet")


@pytest.mark.parametrize(
    ("limit", "code", "told"),
    [
        (("--max-tokens", "640"), 6, "the limit of 640 tokens is used up"),
        (("--max-cost-usd", "0.1"), 6, "0.64 USD, 6.4 times the limit of 0.1"),
        (("--max-tokens", "700"), 0, "940 tokens, 1.3 times the limit of 700"),
        (("--max-cost-usd", "0.9"), 0, "0.94 USD, just over the limit of 0.9"),
    ],
    ids=str,
)
def test_a_script_with_a_price_tries_the_limits_and_a_last_answer_that_passes_one_is_told(
    ci_agent: "CIAgent", workspace: Path, limit: tuple[str, str], code: int, told: str
) -> None:
    (workspace / "script.yaml").write_text(SCRIPT)
    (workspace / "m.yml").write_text('models: {"scripted:script.yaml": {price: {input: 1000, output: 1000}}}')
    assert ci_agent(*SPENDER, "--models-file", "m.yml", *limit, "Go.").returncode == code
    for form in ("text", "markdown", "github", "junit", "html"):
        assert told in ci_agent("report", "t.json", "--format", form).stdout, form


def test_a_script_that_a_models_file_does_not_name_has_no_price(ci_agent: "CIAgent", workspace: Path) -> None:
    (workspace / "script.yaml").write_text(SCRIPT)
    (workspace / "m.yml").write_text('models: {"scripted:other.yaml": {price: {input: 1, output: 1}}}')
    done = ci_agent(*SPENDER, "--models-file", "m.yml", "--max-cost-usd", "1", "Go.")
    assert (done.returncode, "the price of scripted:script.yaml is not known" in done.stderr) == (3, True)
