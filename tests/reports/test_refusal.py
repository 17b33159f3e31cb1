"""What a step is told of a run that was refused, whatever the message repeats of a command line or a file."""

from collections.abc import Callable, Iterator

from ci_agent.reports.places import Place
from ci_agent.reports.refusal import Refusal, refusal_annotation, refusal_summary

Runner = Callable[[str], list[str]]


def test_a_refusal_is_one_annotation_and_a_short_summary() -> None:
    refusal = Refusal("No such option '--polcy'.", 2)
    assert refusal_annotation(refusal) == "::error title=ci-agent%3A usage%2C exit code 2::No such option '--polcy'."
    assert refusal_summary(refusal) == (
        "## ❌ ci-agent: usage, exit code 2\n\nThe command line is wrong.\n\n```text\nNo such option '--polcy'.\n"
        "```\n\n### What to do next\n\nSee `ci-agent COMMAND --help`.\n"
    )


def test_attack_hostile_text_is_no_command_and_stays_in_its_fence(
    hostile_texts: Callable[[int, int], Iterator[str]], runner_commands: Runner
) -> None:
    for text in hostile_texts(1_000, 7):
        refusal = Refusal(text, 3, Place("p.yml", 1))
        assert len(runner_commands(refusal_annotation(refusal))) == 1
        summary = refusal_summary(refusal)
        assert runner_commands(summary) == []
        fence = next(line for line in summary.splitlines() if line.startswith("```")).removesuffix("text")
        assert summary.splitlines().count(fence) == 1


def test_a_message_of_megabytes_is_cut() -> None:
    refusal = Refusal("x" * 5_000_000, 3)
    assert len(refusal_annotation(refusal)) < 4_096
    assert len(refusal_summary(refusal)) < 30_000
