"""The final answer as JSON: taken when it satisfies the schema, asked for again a few times when not."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.hooks import FinishedTurn
from ci_agent.messages import AssistantMessage, TextContent, UserMessage
from ci_agent.run_hooks.structured_output import MAX_CORRECTIONS, StructuredOutput

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def answer(output: StructuredOutput, text: str) -> Sequence[UserMessage]:
    return output(FinishedTurn(1, AssistantMessage((TextContent(text),), "stop", "p", "m", "a", NOW), (), ()))


@pytest.mark.parametrize("text", ['{"n": 1}', ' {"n": 1}\n', '```json\n{"n": 1}\n```', '```\n{"n": 1}\n```\n'])
def test_an_answer_that_satisfies_the_schema_is_kept(text: str) -> None:
    output = StructuredOutput(SCHEMA, lambda: NOW)
    assert answer(output, text) == ()
    assert (output.satisfied, output.value, output.problem) == (True, {"n": 1}, None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("one", "it is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ('{"n": 1, "n": 2}', 'it is not JSON: the key "n" appears twice in one object'),
        ('{"n": NaN}', "it is not JSON: NaN is not JSON"),
        ("[]", "- the answer: expected object, got []"),
        ('Here: {"n": 1}', "it is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (
            '{"n": "1", "m": 2}',
            '- n: expected integer, got "1"\n- m: unknown field; known are n',
        ),
    ],
)
def test_an_answer_that_does_not_is_sent_back_with_every_problem(text: str, problem: str) -> None:
    output = StructuredOutput(SCHEMA, lambda: NOW)
    (request,) = answer(output, text)
    assert request == UserMessage(
        (
            TextContent(
                f"Your answer does not satisfy the output schema: {problem}\nAnswer again with the JSON value alone."
            ),
        ),
        NOW,
    )
    assert (output.satisfied, output.problem) == (False, problem)


def test_the_model_gets_a_bounded_number_of_further_tries() -> None:
    output = StructuredOutput(SCHEMA, lambda: NOW)
    assert [len(answer(output, "no")) for _ in range(MAX_CORRECTIONS + 2)] == [1] * MAX_CORRECTIONS + [0, 0]


def test_an_answer_of_a_million_line_ends_is_looked_through_once() -> None:
    output = StructuredOutput(SCHEMA, lambda: NOW)
    for text in ("```\n" + "\n" * 1_000_000 + "x", "```" + " \n" * 1_000_000 + "```", "`" * 1_000_000):
        answer(output, text)
    assert not output.satisfied


def test_an_answer_that_would_take_too_long_to_check_is_none() -> None:
    schema = {"type": "array", "items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}
    output = StructuredOutput(schema, lambda: NOW)
    answer(output, "[" * 60 + "]" * 60)
    assert output.problem is not None
    assert output.problem.startswith("- it could not be checked (")
    answer(output, "[[], [[]]]")
    assert output.satisfied


def test_a_schema_that_is_none_is_refused_before_the_run() -> None:
    with pytest.raises(ConfigurationError, match=r"output schema is wrong at \$\.type: "):
        StructuredOutput({"type": "objekt"}, lambda: NOW)
