"""What all results of a run may hold together."""

from datetime import UTC, datetime

from ci_agent.cancellation import CancelToken
from ci_agent.hooks import ExecutedToolCall, ProposedToolCall, ResultOverride
from ci_agent.json_types import JsonObject
from ci_agent.messages import ImageContent, TextContent, ToolCall, ToolResultContent
from ci_agent.run_hooks.result_budget import ALWAYS_KEPT_BYTES, ResultBudget
from ci_agent.tool import OnUpdate, Tool, ToolResult

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def nothing(call_id: str, arguments: JsonObject, cancel: CancelToken, on_update: OnUpdate) -> ToolResult:
    raise AssertionError((call_id, arguments, cancel, on_update))


def executed(
    *content: ToolResultContent, details: JsonObject | None = None, is_error: bool = False
) -> ExecutedToolCall:
    proposed = ProposedToolCall(ToolCall("c", "ls", "{}"), Tool("ls", "Lists.", {}, nothing), {})
    return ExecutedToolCall(proposed, content, details, is_error, terminate=False)


def text_of(override: ResultOverride | None) -> str:
    assert override is not None
    assert override.content is not None
    (part,) = override.content
    assert isinstance(part, TextContent)
    return part.text


def test_results_pass_until_they_hold_too_much_together() -> None:
    budget = ResultBudget(20_000)
    large = executed(TextContent("x" * 8_000))
    assert [budget(large), budget(large)] == [None, None]
    cut = budget(large)
    assert text_of(cut).startswith("x" * 600)
    assert text_of(cut).endswith(
        "[The results of this run hold more than 0.02 MB, so of this one only the beginning and the end are kept. "
        "Ask for less at a time.]"
    )
    assert len(text_of(cut)) < ALWAYS_KEPT_BYTES + 200


def test_a_small_result_always_passes() -> None:
    budget = ResultBudget(10)
    small = executed(TextContent("ä" * (ALWAYS_KEPT_BYTES // 2)))
    assert [budget(small) for _ in range(5)] == [None] * 5


def test_a_result_that_was_cut_says_how_large_it_was_and_stays_what_it_was() -> None:
    cut = ResultBudget(10)(executed(TextContent("ä" * 5_000), details={"exit_status": 1}, is_error=True))
    assert cut is not None
    assert (cut.details, cut.is_error) == ({"output_bytes": 10_000, "exit_status": 1, "truncated": True}, None)


def test_what_the_tool_says_of_its_output_counts_more() -> None:
    cut = ResultBudget(10)(executed(TextContent("x" * 5_000), details={"output_bytes": 7_000_000}))
    assert cut is not None
    assert cut.details == {"output_bytes": 7_000_000, "truncated": True}


def test_an_image_that_has_no_room_is_left_out_and_told_of() -> None:
    cut = ResultBudget(10)(executed(TextContent("A picture:"), ImageContent("image/png", "QUJD" * 2_000)))
    assert text_of(cut) == (
        "A picture:\n[The results of this run hold more than 1e-05 MB, so of this one only the beginning and the end "
        "are kept. 1 of its parts are images and left out. Ask for less at a time.]"
    )
