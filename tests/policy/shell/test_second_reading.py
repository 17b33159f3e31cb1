"""The second reading: a text whose commands the first one misses or invents does not pass."""

import pytest

from ci_agent.policy.shell.program import UnparsableError
from ci_agent.policy.shell.reader import Mask, Role, Unit
from ci_agent.policy.shell.second_reading import check_agreement


def _unit(text: str, *roles: tuple[int, int, Role], masks: tuple[Mask, ...] = (), string: bool = False) -> Unit:
    return Unit(text, 0, len(text), list(roles), list(masks), string, None)


def test_the_same_commands_agree() -> None:
    check_agreement([_unit("ls a; wc", (0, 2, "name"), (3, 4, "argument"), (6, 8, "name"))])
    check_agreement(
        [_unit("X=1 ls >a b", (0, 3, "assignment"), (4, 6, "name"), (8, 9, "target"), (10, 11, "argument"))]
    )


@pytest.mark.parametrize(
    "roles",
    [
        [(0, 2, "name"), (3, 4, "argument")],
        [(0, 2, "name"), (3, 4, "argument"), (6, 8, "argument")],
        [(0, 2, "name"), (3, 8, "argument")],
        [(0, 2, "name"), (3, 4, "argument"), (6, 8, "name"), (6, 8, "name")],
        [],
    ],
)
def test_another_set_of_commands_disagrees(roles: list[tuple[int, int, Role]]) -> None:
    with pytest.raises(UnparsableError, match="not understood with certainty"):
        check_agreement([_unit("ls a; wc", *roles)])


def test_a_text_that_does_not_parse_disagrees() -> None:
    with pytest.raises(UnparsableError) as refusal:
        check_agreement([_unit("ls ( a", (0, 2, "name"), (5, 6, "argument"))])
    assert refusal.value.span[0] >= 2


def test_masked_characters_are_not_looked_at() -> None:
    check_agreement([_unit("ls `a`", (0, 2, "name"), (3, 6, "argument"), masks=(Mask(3, 6, "x"),))])


def test_a_string_is_read_for_what_it_substitutes() -> None:
    check_agreement([_unit("a $(ls)", (4, 6, "name"), string=True)])
    with pytest.raises(UnparsableError):
        check_agreement([_unit("a $(ls)", string=True)])


def test_the_span_is_that_in_the_whole_text() -> None:
    text = "ls a; wc; rm b"
    with pytest.raises(UnparsableError) as refusal:
        check_agreement([Unit(text, 6, len(text), [(6, 8, "name"), (10, 12, "name")], [], False, None)])
    assert refusal.value.span == (13, 14)
