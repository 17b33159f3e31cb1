"""sed scripts, held against the sed that is installed: what it writes or runs must have been said."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from ci_agent.policy.programs.interpret import interpret
from ci_agent.policy.programs.languages.sed import MAX_COMMANDS
from ci_agent.policy.words import literal_word

_SED = shutil.which("sed")
pytestmark = pytest.mark.skipif(_SED is None, reason="sed is not installed")

_ODD_PLACES = r"""
:a;w out
:a w out
:a}w out
b;w out
b x;w out
{:a};w out
ba}w out
v 4.2;w out
v;w out
q;w out
l;w out
l 5;w out
y/a/b/;w out
y/\//x/w out
}w out
p w out
p#w out
{p}w out
{p};w out
s/a/b/w out
s/a/b/ w out
s/a/b/;w out
s/a/b/I;w out
s/a/b/2gw out
s,a,b,w out
s/a\/b/c/w out
s/[a/]/c/w out
s/[^]/]/c/w out
s/[[:alpha:]/]/c/w out
s/a/[/w out
s/\[/x/w out
s/a/b\/w out/
s/a/b/e;w out
!w out
1!!w out
1,w out
1,2w out
$w out
/a/w out
/a/,w out
/a/I,/b/M!w out
1~2w out
1,+1w out
1,~2w out
0,/a/w out
a\;w out
a;w out
ax;w out
i\⏎text⏎w out
i\⏎text\⏎w out
a text\⏎w out
a text\\⏎w out
c\⏎⏎w out
#n⏎w out
# comment⏎w out
r x⏎w out
r x;w out
\cacw out
\c[c]cw out
\,x,w out
  w   out
;;w out
wout
W out
T;w out
tx⏎w out
z;F;=;w out
{{p;w out⏎}}
e true⏎w out
s/a/b/m;w out
s/x/y/;ta;w out;:a
/[/]/w out
\x[x]xw out
s/[\/]/x/w out
s/[\n]/x/w out
s/a/&\n[/w out
y/[/]/w out
"""


def _wrote(script: str, folder: Path) -> bool:
    assert _SED is not None
    for left in folder.iterdir():
        left.unlink()
    subprocess.run([_SED, script], cwd=folder, input=b"a\nb\n", capture_output=True, timeout=10, check=False)
    return any(folder.iterdir())


def _says_so(script: str) -> bool:
    effects = interpret([literal_word("sed"), literal_word(script)])
    return bool(effects.hazards)


@pytest.mark.parametrize("script", [line.replace("⏎", "\n") for line in _ODD_PLACES.strip().splitlines()])
def test_writing_is_seen_wherever_it_stands(script: str, tmp_path: Path) -> None:
    assert _says_so(script) or not _wrote(script, tmp_path)


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_writing_is_seen_in_random_scripts(count: int, tmp_path: Path) -> None:
    pieces = [*"/,;{}!$0123[]\\abpdnqwWrseyicx#:=~+ ", "\n", "w out", "s/a/b/", "/a/", "a\\\n", "b;", ":x", "[^", "]"]
    choose = random.Random(20_240_601)
    scripts = ("".join(choose.choices(pieces, k=choose.randint(1, 7))) + "w out" for _ in range(count))
    missed = [script for script in scripts if not _says_so(script) and _wrote(script, tmp_path)]
    assert missed == []


@pytest.mark.parametrize(
    "script",
    ["s/a/b/g", "5,10p", "$!d", "/^#/d;s/ *$//", "s|a|b|;s,c,d,", "/x/{s/a/b/;p}", "y/abc/xyz/", "s/[^/]*$//", "1q"],
)
def test_everyday_scripts_are_harmless(script: str) -> None:
    assert interpret([literal_word("sed"), literal_word(script)]).hazards == ()


def test_a_script_is_read_to_its_end_or_not_known() -> None:
    read = interpret([literal_word("sed"), literal_word("s/[a]/b/;" * (MAX_COMMANDS - 2) + "w out")])
    unread = interpret([literal_word("sed"), literal_word("s/[a]/b/;" * MAX_COMMANDS + "w out")])

    assert (read.problem, [use.path.text for use in read.files]) == (None, ["out"])
    assert unread.problem == "a sed script of 2,000 commands or more is not read to its end; do it in several steps"
