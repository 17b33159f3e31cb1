"""Here-documents: what of them is data, and what runs."""

from collections.abc import Callable

import pytest

from ci_agent.policy.shell.analysis import analyse
from ci_agent.policy.shell.program import UnparsableError

Commands = Callable[[str], list[str]]


@pytest.mark.parametrize("delimiter", ["'E'", '"E"', "\\E"])
def test_nothing_runs_behind_a_quoted_delimiter(delimiter: str, commands: Commands) -> None:
    assert commands(f"cat <<{delimiter}\n$(rm) `rm` ${{x:-$(rm)}} ' \" \\\nE\nls") == ["cat", "ls"]


def test_substitutions_run_behind_a_plain_delimiter(commands: Commands) -> None:
    text = 'cat <<E\n$(a) `b` ${x:-$(c)} $((1 + 1)) \\$(no) \\`no\\` \\\\$(d) it\'s "$(e)"\nE\n'
    assert commands(text) == ["a", "b", "c", "d", "e", "cat"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cat <<A <<B\na\nA\nb\nB\nls", ["cat", "ls"]),
        ("cat <<A | wc <<B && ls\na\nA\nb\nB\nrm", ["cat", "wc", "ls", "rm"]),
        ("cat <<-E\n\t$(a)\n\tE\nls", ["a", "cat", "ls"]),
        ("cat <<E\n E\nE \n\tE\nE\nls", ["cat", "ls"]),
        ("cat <<E\nx\\\nE\nE\nls", ["cat", "ls"]),
        ("cat <<'E' > x; ls\nE\nrm", ["cat write:x", "ls", "rm"]),
        ("(cat <<E)\nx\nE\nls", ["cat", "ls"]),
        ('x="$(cat <<E\n)"\nE\n)"; ls', ["cat", "x=word(...)", "ls"]),
        ("if cat <<E\nthen\nE\nthen ls; fi", ["cat", "ls"]),
        ("cat <<E |\nx\nE\nwc", ["cat", "wc"]),
        ("3<<E cat\nx\nE", ["cat"]),
        ("x=$(cat <<E | wc\nx\nE\n)", ["cat", "wc", "x=word(...)"]),
        ("x=$(cat <<E | wc\nx\nE\nls; rm)", None),
        ("x=$(cat <<E\nx\nE\nls; rm)", None),
        ("x=$(ls && cat <<E\nx\nE\n)", ["ls", "cat", "x=word(...)"]),
        ("x=$(cat <<E | wc; rm\nx\nE\n)", None),
        ("x=$(cat <<E && rm\nx\nE\n)", None),
        ("x=$(cat <<E |\nx\nE\nwc; rm)", None),
        ("x=$({ cat <<E\nx\nE\n}; rm)", None),
        ("x=$(if cat <<E\nx\nE\nthen ls; fi)", None),
        ("wc <(cat <<E | wc; rm\nx\nE\n)", None),
        ("x=`cat <<E | wc; rm\nx\nE\n`", ["cat", "wc", "rm", "x=word(...)"]),
        ("cat <<E", None),
        ("cat <<E\nx", None),
        ("cat <<E\nE\\\n\nls\nE", None),
        ("cat <<E\n\\\nE\nls\nE", None),
        ("x=$(cat <<E\nx\nE); ls", None),
        ("x=$(cat <<E); ls\nx\nE", None),
        ('cat <<E "a\nb"\nx\nE', None),
        ("cat <<E $(ls\n)\nx\nE", None),
        ("cat <<$x\nx\n$x", None),
        ("cat <<E'F'\nx\nEF", None),
        ("cat <<'a b'\nx\na b", None),
    ],
)
def test_bodies_end_where_bash_ends_them_or_are_refused(text: str, found: list[str] | None, commands: Commands) -> None:
    if found is None:
        with pytest.raises(UnparsableError):
            analyse(text)
    else:
        assert commands(text) == found
