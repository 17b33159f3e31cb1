"""What of a conversation is no longer sent, because it would not fit: results left out, turns summarised.

The conversation itself stays whole; the record has all of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ci_agent.messages import AssistantMessage, Message, TextContent, ToolResultMessage, UserMessage
from ci_agent.providers.request_size import estimate_message_tokens

WORTH_LEAVING_OUT_TOKENS = 100
"""A shorter result is hardly longer than what would stand in its place."""


@dataclass(frozen=True, slots=True)
class Omissions:
    results: frozenset[int] = frozenset()
    """Positions of results that are replaced by a line."""
    summary: str | None = None
    """Stands for the messages from the first answer up to, not including, `summarised_before`."""
    summarised_before: int = 0


NOTHING = Omissions()


def without(messages: Sequence[Message], omissions: Omissions) -> tuple[Message, ...]:
    """What is sent of a conversation. The same for the same conversation, and the beginning of it stays the same as the
    conversation grows."""
    sent = [
        _left_out(message) if index in omissions.results and isinstance(message, ToolResultMessage) else message
        for index, message in enumerate(messages)
    ]
    if omissions.summary is None:
        return tuple(sent)
    first = first_answer(messages)
    summary = UserMessage((TextContent(_summary_text(omissions.summary)),), messages[first].timestamp)
    return (*sent[:first], summary, *sent[omissions.summarised_before :])


def leave_out_results(messages: Sequence[Message], omissions: Omissions, spare_tokens: int) -> Omissions:
    """Leave out further results, oldest first and those that nobody has answered yet last, until at least so many
    tokens are spared or there are none left."""
    results = set(omissions.results)
    for index, tokens in _candidates(messages, omissions):
        if spare_tokens <= 0:
            break
        results.add(index)
        spare_tokens -= tokens
    return replace(omissions, results=frozenset(results))


def first_answer(messages: Sequence[Message]) -> int:
    """Position of the first message of the model's; what stands before it is the task."""
    return next((i for i, message in enumerate(messages) if isinstance(message, AssistantMessage)), len(messages))


def last_answer(messages: Sequence[Message]) -> int:
    """Position of the last message of the model's; 0 when there is none."""
    return max((i for i, message in enumerate(messages) if isinstance(message, AssistantMessage)), default=0)


def _candidates(messages: Sequence[Message], omissions: Omissions) -> Iterator[tuple[int, int]]:
    for index, message in enumerate(messages):
        if index in omissions.results or not isinstance(message, ToolResultMessage):
            continue
        tokens = estimate_message_tokens([message])
        if index >= omissions.summarised_before and tokens > WORTH_LEAVING_OUT_TOKENS:
            yield index, tokens


def _left_out(result: ToolResultMessage) -> ToolResultMessage:
    characters = sum(len(part.text) for part in result.content if isinstance(part, TextContent))
    text = (
        f"[Left out: this result of {characters:,} characters no longer fits into what the model can take in. "
        "Call the tool again if it is needed, for a smaller part if that will do.]"
    )
    return replace(result, content=(TextContent(text),))


def _summary_text(summary: str) -> str:
    return f"What happened so far, in your own summary; the messages themselves were left out:\n\n{summary}"
