"""awk programs, held against the awks that are installed: what one of them writes or runs must have been said."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from ci_agent.policy.programs.interpret import interpret
from ci_agent.policy.programs.languages.awk import MAX_CHARACTERS, find_hazard
from ci_agent.policy.words import literal_word

_AWKS = [path for path in map(shutil.which, ("mawk", "gawk", "original-awk", "busybox")) if path is not None]
pytestmark = pytest.mark.skipif(not _AWKS, reason="no awk is installed")

_ODD_PLACES = r"""
{print > "out"}
{print>"out"}
{print $1 >"out" }
{print($1)>"out"}
{print ($1)($2)>"out"}
{print a,⏎b > "out"}
{print a, \⏎b > "out"}
{print a ? b : c > "out"}
{if(1)print>"out"}
{if(1){print}else print>"out"}
{print; print>"out"}
{print /x/ > "out"}
{print 1/2 > "out"}
{print "}" > "out"}
{print "a\"b" > "out"}
{print "/" /b/ "/" > "out"}
{x = 1 / 2; print /"/ > "out"; y = "/"}
(x) / 2 { print "/" > "out" }
$1 / 2 { print "/" > "out" }
x++ / 2 { print "/" > "out" }
/[/]/ || 1 { print > "out" }
/[/"]/ || 1 { print > "out" } /"/
/\// || 1 { print > "out" }
a /b/ 1 || 1 { print > "out" }
!/"/ { print > "out" } !/"/
{ print "x" | "touch out" }
{ "touch out" | getline }
{ "touch out" |getline x }
BEGIN { system("touch out") }
BEGIN { system ("touch out") }
function f(a) { print a > "out" } { f(1) }
{ printf "%s", 1 > "out" }
{ printf("%s", 1) > "out" }
{ print -1 > "out" }
{ print !x > "out" }
{ print x~y > "out" }
{ print x in y > "out" }
{ print (1)⏎> "out" }
{ print 1 >> "out" }
{ print # comment⏎print > "out" }
{ print "a" "b" > "o" "ut" }
{ print > ("o" "ut") }
{ for(;;) { print > "out"; break } }
{ do print > "out"; while (0) }
{ print length > "out" }
{ print length / 2 > "out" }
{ print; }⏎{ print > "out" }
1;{print > "out"}
BEGIN { print > "out"; exit }
{ print $(1) > "out" }
{ print $NF/2 > "out" }
{ print a[1] > "out" }
{ print a[1]/2 "/" > "out" }
{ print getline > "out" }
{ print substr("x",1) > "out" }
{ print(1,2) > "out" }
{ print (1,2) in x > "out" }
{ print "/dev/stdout" > "out" }
{ print > "/dev/stdout" ".out" }
{ print 1 > "/dev/stderr"; print > "out" }
{ x = "print"; print x > "out" }
{ print 1e5 > "out" }
{ print "\\" > "out" }
{ print "\\\"" > "out" } # "
{ print 1 };{ print 2 > "out" }
{ print 1 } { print 2 > "out" }
END { print > "out" }
{ print a,b,c > "out" ; close("out") }
{ while (0) ; print > "out" }
{ x["a"]; delete x; print > "out" }
{ return } { print > "out" }
"""


def _acts(awk: str, program: str, folder: Path) -> bool:
    for left in folder.iterdir():
        left.unlink()
    command = [awk, "awk", program] if awk.endswith("busybox") else [awk, program]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    subprocess.run(command, cwd=folder, input=b"a b\n", capture_output=True, timeout=10, check=False, env=environment)
    return any(folder.iterdir())


@pytest.mark.parametrize("program", [line.replace("⏎", "\n") for line in _ODD_PLACES.strip().splitlines()])
def test_writing_is_seen_wherever_it_stands(program: str, tmp_path: Path) -> None:
    assert find_hazard(program) is not None or not any(_acts(awk, program, tmp_path) for awk in _AWKS)


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_writing_is_seen_in_random_programs(count: int, tmp_path: Path) -> None:
    pieces = [
        *"(){};/,\"!$+-[]#?:=~ ", "\n", "\\\n", "\\", "print ", "x", "1", "if(1)", "/", "/", '"', '"', "/a/", '"/"',
        "a[1]", "||", "&&", "++", "in ", "length", "else ", "BEGIN", "$1",
    ]  # fmt: skip
    choose = random.Random(20_240_602)
    ends = ['print 1 > "out"', 'print "x">"out"', '{print>"out"}', 'system("touch out")', '"touch out"|getline']
    missed = []
    for _ in range(count):
        program = "".join(choose.choices(pieces, k=choose.randint(1, 9))) + choose.choice(ends)
        program = choose.choice(["{%s}", "%s", "BEGIN{%s}", '{%s}#"', "{%s}/", '%s"', "%s}"]) % program
        if find_hazard(program) is None and any(_acts(awk, program, tmp_path) for awk in _AWKS):
            missed.append(program)
    assert missed == []


@pytest.mark.parametrize(
    "program",
    [
        "{print $1}",
        "NR>1",
        "$3 > 100 && $2 >= 5 {print $1}",
        "{s += $2} END {print s/NR}",
        '/a|b/ {print "x > y"}',
        "!seen[$0]++",
        'BEGIN {FS=","} {print $NF}',
        "{ if ($1 > 5) print; else next }",
        '{ printf "%-10s %d\\n", $1, $2 }',
        "{ for (i = 1; i <= NF; i++) if ($i > m) m = $i } END { print m }",
        '{ gsub(/[ \\t]+/, " "); print toupper($0) }',
        '{ print "warning: " $0 > "/dev/stderr" }',
    ],
)
def test_everyday_programs_are_harmless(program: str) -> None:
    assert find_hazard(program) is None


def test_a_program_is_read_to_its_end_or_not_known() -> None:
    end = "; print > out }"
    longest = "{ x = 1" + " " * (MAX_CHARACTERS - len("{ x = 1" + end)) + end
    read = interpret([literal_word("awk"), literal_word(longest)])
    unread = interpret([literal_word("awk"), literal_word(longest + " ")])
    assert (read.problem, [what for _, what in read.hazards]) == (None, ["writes a file"])
    assert unread.problem == "an awk program of more than 16,000 characters is not read: put it into a file"
