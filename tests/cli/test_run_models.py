"""`ci-agent run`: what is said of the model, right and wrong, and what a hostile one can reach."""

import json
from collections.abc import Callable, Iterator
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


def first_error(stderr: str) -> str:
    return stderr.strip().splitlines()[-1]


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
