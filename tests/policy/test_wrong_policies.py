"""The policies of `wrong_policies.txt`, each with the exact message that it gets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ci_agent.errors import InvalidFileError
from ci_agent.policy.file.load import TEXT_NAME, load_policy_source

CASES = Path(__file__).with_name("wrong_policies.txt")


def cases() -> Iterator[tuple[str, str, list[str]]]:
    """Title, policy and lines of the message."""
    _, *blocks = f"\n{CASES.read_text()}".split("\n# ")
    for block in blocks:
        title, *lines = block.partition("\n## ")[0].split("\n")
        policy = [line for line in lines if not line.startswith("> ")]
        yield title, "\n".join(policy), [line.removeprefix("> ") for line in lines if line.startswith("> ")]


@pytest.mark.parametrize(("policy", "message"), [case[1:] for case in cases()], ids=[case[0] for case in cases()])
def test_a_wrong_policy_teaches(policy: str, message: list[str]) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_policy_source(text=policy.rstrip())
    assert str(caught.value).splitlines() == [f"{TEXT_NAME}:{line}" for line in message]


def test_there_are_many_of_them() -> None:
    assert len(list(cases())) > 100
