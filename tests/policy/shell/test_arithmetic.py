"""Arithmetic: what is accepted never fails in bash, for bash drops what stands behind arithmetic that does."""

import random
import re
import shutil
import subprocess

import pytest

from ci_agent.policy.shell.analysis import analyse
from ci_agent.policy.shell.program import UnparsableError

_TABLE = """
0 1 2 3 07 0x1f i j $i ${j} $# $? ${#i} + - * / % ** << >> < > <= >= == != & | ^ && || ! ~ ? : , ( ) = += -= /=
++ --
"""


def _is_understood(expression: str) -> bool:
    try:
        analyse(f"i=1; j=3; echo $(({expression}))")
    except UnparsableError:
        return False
    return True


@pytest.mark.parametrize(
    "expression",
    ["1 + 2 * (3 - 4)", "i++ + --j", "i = j = 5", "i += 2, j", "(i = 2) * 3", "i > 1 ? j : -1", "!i && ~j", "7 / 2 % 3",
     "2 ** 10", "1 << 4 | 0xff", "$i + ${j} - $# - ${#i}"],
)  # fmt: skip
def test_plain_arithmetic_is_understood(expression: str) -> None:
    assert _is_understood(expression)


@pytest.mark.parametrize(
    "expression",
    ["1 / 0", "1 / i", "1 % (i)", "i /= 0", "i %= j", "2 ** -1", "2 ** i", "08", "1 +", "+", "1 2", "i j", "()", "(1",
     "1)", "1 = 2", "i + 1 = 2", "-i = 2", "1 ? 2", "1 : 2", "1 ? 2 : j = 3", "++1", "i++ = 2", "++i++", "1, ", "i[0]",
     "2#101", "'1'", "$(ls)", "`ls`", "i; j", "\\i", "i = ", "@"],
)  # fmt: skip
def test_arithmetic_that_might_fail_or_hold_more_is_refused(expression: str) -> None:
    assert not _is_understood(expression)


def test_bash_gives_a_number_for_whatever_is_understood() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    tokens = _TABLE.split()
    chance, accepted = random.Random(1), list[str]()
    while len(accepted) < 400:
        expression = " ".join(chance.choice(tokens) for _ in range(chance.randint(1, 7)))
        if _is_understood(expression):
            accepted.append(expression)
    script = "".join(f"i=1; j=3; echo $(({expression}))\n" for expression in accepted)
    finished = subprocess.run([bash, "-c", script], capture_output=True, text=True, check=True)
    assert finished.stderr == ""
    numbers = finished.stdout.splitlines()
    assert len(numbers) == len(accepted)
    assert all(re.fullmatch(r"-?[0-9]+", number) for number in numbers)
