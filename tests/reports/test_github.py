"""The log of GitHub Actions: folded turns, annotations within the runner's limits, and no command but ours."""

from collections.abc import Callable
from typing import Any

import pytest

from ci_agent.reports.github import render_github
from ci_agent.transcript.document import document_digest

Runner = Callable[[str], list[str]]


def test_the_whole_log_of_a_denied_run(records: Any) -> None:
    push = records.decision(
        "deny",
        "default",
        "Blocked: no policy rule allows running `git push`",
        nearest={"rule_id": "inspect", "source": "p.yml:4", "stopped_at": "`push` is not `status`"},
    )
    no_env = records.decision("deny", "rule", "Blocked by policy rule no-env: 100% secret", "no-env", "shipped/x.yml:7")
    calls = [
        records.call(1, "read", {"path": "a,b:c.env"}, "denied", "100% secret", decision=no_env),
        records.call(2, "bash", {"command": "git push"}, "denied", "no", decision=push),
        records.call(3, "read", {"path": "src/a.py", "offset": 12}, "error", "src/a.py has 3 lines."),
        records.call(4, "bash", {"command": "make"}, "ok", "\n".join(map(str, range(14)))),
    ]
    ending = records.result("denied", 5) | {"final_text": "I could not push."}
    document = records.transcript(calls, result=ending)
    document["messages"][0]["content"].insert(0, {"type": "text", "text": "I look.\n::error::x"})
    document["integrity"]["document_sha256"] = document_digest(document)
    assert render_github(document) == (
        """\
::group::turn 1: 2 calls (2 denied)
    | I look.
    | ::error::x
denied     #1  turn 1  read  a,b:c.env  by no-env (shipped/x.yml:7): 100% secret
denied     #2  turn 1  bash  git push   (default, nearest rule p.yml:4): no policy rule allows running `git push`
::endgroup::
::group::turn 2: 2 calls (1 error, 1 ok)
error      #3  turn 2  read  src/a.py  execute: src/a.py has 3 lines.
ok         #4  turn 2  bash  make      31 bytes, 0.2 s
    | 0
    | 1
    | 2
    | 3
    | 4
    | 5
    | 6
    | 7
    | 8
    | 9
    … and 4 more lines, in the transcript
::endgroup::
Answer
    | I could not push.
::error title=ci-agent%3A denied::denied, exit code 5: `--fail-on-denied` applies, or a rule with `on_denied: fail` \
or `stop` matched%0A2 of 4 calls were denied%0AIf a denied call is wanted, ask `ci-agent policy explain`: it says \
why, and shows the smallest rule for it.%0ARules for what no rule allows: `ci-agent policy suggest --policy review \
TRANSCRIPT`.
::error title=ci-agent%3A denied by no-env (shipped/x.yml%3A7),file=a%2Cb%3Ac.env::read: a,b:c.env%0A100%25 secret
::error title=ci-agent%3A denied (default%2C nearest rule p.yml%3A4),file=p.yml,line=4::bash: git push%0Ano \
policy rule allows running `git push`
::warning title=ci-agent%3A error (execute),file=src/a.py,line=12::read: src/a.py%0Asrc/a.py has 3 lines.
Why it was denied: ci-agent policy explain --policy review --tool read --args '{"path": "a,b:c.env"}'
Why it was denied: ci-agent policy explain --policy review --tool bash --args '{"command": "git push"}'
ci-agent: denied, exit code 5; 4 calls (2 denied, 1 error, 1 ok); 1,200 tokens in, 30 out; cost unknown
"""
    )


def test_a_good_run_is_one_notice(records: Any) -> None:
    assert render_github(records.transcript([])) == (
        "Answer\n    | All is well.\n    | Really.\n"
        "::notice title=ci-agent%3A completed::completed, exit code 0\n"
        "ci-agent: completed, exit code 0; no calls; 1,200 tokens in, 30 out; cost unknown\n"
    )


@pytest.mark.parametrize(
    ("ending", "level"),
    [
        (("provider_error", 4, "no\n::error::route"), "error"),
        (("unknown", None, "killed"), "error"),
        (("limit", 6), "error"),
    ],
)
def test_a_run_that_failed_by_itself_is_an_error(
    ending: tuple[Any, ...], level: str, records: Any, runner_commands: Runner
) -> None:
    (line,) = runner_commands(render_github(records.transcript([], result=records.result(*ending))))
    assert line.startswith(f"::{level} title=ci-agent%3A {ending[0]}::{ending[0]}, ")


def test_only_denials_whose_rule_fails_the_run_are_errors(records: Any, runner_commands: Runner) -> None:
    stop = records.decision("deny", "rule", "Blocked: no", "stop", "p.yml:1", on_denied="stop")
    soft = records.decision("deny", "rule", "Blocked: no", "soft", "p.yml:2")
    calls = [
        records.call(1, "bash", {"command": "a"}, "denied", "", decision=soft),
        records.call(2, "bash", {"command": "b"}, "denied", "", decision=stop),
    ]
    lines = runner_commands(render_github(records.transcript(calls, result=records.result("stopped", 5, "rule stop"))))
    assert [line.split(" ")[0] for line in lines] == [
        "::group::turn",
        "::endgroup::",
        "::error",
        "::error",
        "::warning",
    ]
    assert "by stop" in lines[3]
    assert "by soft" in lines[4]


def test_ten_of_each_level_and_the_last_counts_the_rest(records: Any, runner_commands: Runner) -> None:
    no = records.decision("deny", "default", "Blocked: no")
    calls = [records.call(n, "bash", {"command": f"x{n}"}, "denied", "", decision=no) for n in range(1, 31)]
    calls += [records.call(n, "bash", {"command": f"x{n}"}, "error", "e") for n in range(31, 43)]
    lines = runner_commands(render_github(records.transcript(calls, result=records.result("denied", 5))))
    errors = [line for line in lines if line.startswith("::error ")]
    warnings = [line for line in lines if line.startswith("::warning ")]
    assert (len(errors), len(warnings)) == (10, 10)
    assert errors[-1].endswith("::22 more are in the log and in the transcript")
    assert warnings[-1].endswith("::3 more are in the log and in the transcript")


def test_the_same_problem_is_annotated_once(records: Any, runner_commands: Runner) -> None:
    no = records.decision("deny", "default", "Blocked: no")
    calls = [records.call(n, "bash", {"command": "x"}, "denied", "", decision=no) for n in range(1, 52)]
    lines = runner_commands(render_github(records.transcript(calls)))
    assert [line for line in lines if line.startswith("::warning ")] == [
        "::warning title=ci-agent%3A denied (default) (51 times)::bash: x%0Ano"
    ]


@pytest.mark.parametrize("piece", ["%", "\n", "\U0001f600", ",", "\r", "\u202e"], ids=ascii)
def test_five_megabytes_in_every_place_stay_within_the_limits(
    piece: str, records: Any, runner_commands: Runner
) -> None:
    huge = piece * 5_000_000
    no = records.decision("deny", "rule", huge, huge, f"{huge}:1")
    calls = [records.call(1, huge, {"path": huge}, "denied", huge, decision=no)]
    calls += [records.call(2, "bash", {"command": huge}, "error", huge, details={"exit_status": 1})]
    document = records.transcript([]) | {"tool_calls": calls}
    document["result"] |= {"final_text": huge, "error": huge, "exit_code": 1}
    log = render_github(document)
    annotations = [line for line in runner_commands(log) if "title=" in line]
    assert len(annotations) == 3
    assert max(len(line.rpartition("::")[2].encode("utf-16-le")) // 2 for line in annotations) <= 4_096
    assert len(log) < 500_000


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("src/a.py", "file=src/a.py"),
        ("./src//a.py", "file=src/a.py"),
        ("/srv/site/src/a.py", "file=src/a.py"),
        ("/srv/site-2/a.py", None),
        ("/etc/passwd", None),
        ("../a.py", None),
        (".", None),
        ("a\nb", None),
        ("", None),
    ],
)
def test_only_files_in_the_workspace_are_named_as_places(
    path: str, place: str | None, records: Any, runner_commands: Runner
) -> None:
    calls = [records.call(1, "read", {"path": path}, "error", "no")]
    (line,) = [
        line for line in runner_commands(render_github(records.transcript(calls))) if line.startswith("::warning")
    ]
    named = line.partition("::")[2].partition("::")[0].partition(",")[2]
    assert named == (place or "")


def test_what_a_command_answered_with_its_exit_status_is_a_notice_when_the_run_ended_well(records: Any) -> None:
    details = {"exit_status": 1, "timed_out": False, "killed_because": None}
    calls = [records.call(1, "bash", {"command": "ruff check"}, "error", "E501", details=details)]
    level = {0: "::notice title=ci-agent%3A error (execute)::", 1: "::error title=ci-agent%3A error (execute)::"}
    for code, begins in level.items():
        log = render_github(records.transcript(calls, result=records.result("completed", code)))
        assert [line.startswith(begins) for line in log.splitlines() if "error (execute)::" in line] == [True]
