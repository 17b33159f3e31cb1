"""Whoever asked for no record is told that there is none, and sent to no file that is not there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CIAgent = Callable[..., Any]

NOT_KEPT = "With --transcript FILE the record stays, and ci-agent report shows all of it."
RUN = ("run", "--policy", "read-only", "--model", "scripted:s.yaml", "Push.")


@pytest.fixture(autouse=True)
def script(workspace: Path) -> None:
    turn = "{tool_calls: [{name: bash, arguments: {command: git push}}]}"
    (workspace / "s.yaml").write_text(f"turns: [{turn}, {{text: done}}]\n")


def test_a_good_run_whose_record_goes_says_so_and_one_whose_record_stays_does_not(ci_agent: CIAgent) -> None:
    good = (*RUN, "--fail-on-denied", "never", "--output", "text")
    assert ci_agent(*good).stderr.endswith(f"\n  {NOT_KEPT}\n")
    assert NOT_KEPT not in ci_agent(*good, "--transcript", "t.json").stderr


@pytest.mark.parametrize("manner", ["--quiet", "--verbose"])
def test_a_failed_run_without_a_record_names_no_file(ci_agent: CIAgent, manner: str) -> None:
    done = ci_agent(*RUN, manner)
    assert (done.returncode, done.stderr.count(NOT_KEPT), "TRANSCRIPT" in done.stderr) == (5, 1, False)
    suggest = "run again with --transcript FILE, then `ci-agent policy suggest --policy read-only FILE`."
    assert suggest in done.stderr


def test_a_journal_that_nobody_asked_for_is_named_as_a_document_is(ci_agent: CIAgent, workspace: Path) -> None:
    done = ci_agent(*RUN, "--output", "text")
    (told,) = (word for word in done.stderr.split() if word.endswith(".journal"))
    assert Path(told).name == "transcript.json.journal"
    ci_agent(*RUN, "--transcript", "t.json", "--keep-journal", "--quiet")
    journal = (workspace / "t.json.journal").rename(workspace / Path(told).name)
    assert ci_agent("transcript", "recover", journal.name).stdout == "transcript.json\n"
