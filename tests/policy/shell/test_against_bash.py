"""What real shells start and write must be among what the analysis says, for any text that it does not refuse.

Bash gets most lines, and what is understood of text for `sh` goes to dash, to the ash of busybox, and to bash --posix.
CI_AGENT_FUZZ_LINES sets how many lines bash runs (10,000 when absent), CI_AGENT_FUZZ_SEED which.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import pytest

from ci_agent.policy.shell.analysis import analyse
from ci_agent.policy.shell.program import BoundExceededError, Command, Dialect, UnparsableError
from ci_agent.policy.words import Word

_HERE = Path(__file__).parent
_CORPUS = Path(__file__).parents[3] / "../shared/corpus/policy/cases.jsonl"
_LINES = int(os.environ.get("CI_AGENT_FUZZ_LINES", "10000"))
_SEED = os.environ.get("CI_AGENT_FUZZ_SEED", "1")
_BATCH = 2_000
_CHANGED = "STAR has another value"
"""What the worker logs besides: no line may set a variable unseen."""
_WORKERS = 2
_PROGRAMS = {"bash": "bash", "bash --posix": "bash", "sh": "dash", "ash": "busybox"}
_SHELLS = ["bash"] * 6 + ["sh"] * 2 + ["ash", "bash --posix"]

_PIECES = r"""
a  ls  -rf  a.txt  *.txt  x\ y  'q r'  "d $X"  $X  "$X"  ${X}  ${X:-d}  "${X:-$(ls in)}"  ${X:+`ls op`}  $EVIL
"$EVIL"  $OPT  "$OPT"  $STAR  "$STAR"  $(out1)  "$(out2)"  $(out3)  `ls bt`  "`ls bq`"  {a,b}  a{1..3}b  {a,"b c"}d
{x,$X}  a{b  $'\x61\n'  $'it\'s'  ~  ~/x  X=~/y  #no  a#b  !  [a-c]*  "*"  \*  ''  $((1+2))  $((i+1))  $(($i*2))  $#
$?  "$@"  $*  $1  <(ls ps)  >(ls out)  $f  "$f"  "$f.bak"  ${f%.txt}  \;  a'b'"c"  é  =  a=b  --x={1,2}  }  {  do
done  in  if  \\  "\\"  "\$X"  "\`"  \$X  $  "$"  a$  %  ^  @  ,  :  [  ]  -v  a[$(pwned)]  'a[$(pwned)]'  "a[0]"  $_
$!  $$  $-  ${#X}  ${X#a}  ${X//a/b}  ${X:0:1}  "${X##*/}"  "a;b"  'a&b'  a\;b  a\|b  \<x  ?(a)  *(b)  sub  sub/c.txt
..  .  -  --  +x  2  10  012  $i  "$i"  ${i}  src/*.py  {01..3}  {-1..1}  {3..1..2}  {a..c}  {$,x}y  "$X"{,.b}  ${f}{,b}
ā  "ā é"  $'ł'  'Ɓ*'  ł*  ${X#'}'}  ${X%"$i"}  ${X-a b}  "${X+a\}b}"  ${X:-'; ls x'}  "a'b"  ~root
$(ls <a.txt)  ?  [!a]*  -np  "-p"
"${f%.*}"  "${f##*/}"  ${f%%.*}  "in/${f#*/}.bak"  "$(basename "$f")"  $(basename $f .txt)  "$(dirname -- "$f")"
$'\e[x'  $'\u41'  $'a\''  "$'x'"  "${X:-'}'}"  ${X:-"$(ls q)"}  ${X:-<(ls u)}  "${X//\//-}"  ${X/#a/b}  ${X^^}
"${X@Q}"  ${X:$i}  ${X:0:$i}  ${#a[@]}  ${a[0]}  ${a[i]}  "${a[*]}"  ${!X}  "${!a@}"  $((X))  $((i=2))  $((X+=1))
$(( i ? 1 : 2 ))  $((${#X}))  $(<a.txt)  "$(<a.txt)"  `<a.txt`  $(cat <<E)  ~+  ~-  ~1  a=~  --x=~/y  x:~  {a,b}{c,d}
{a,{b,c}}  {,a}  {a,}  {a..z..2}  {1,2}..3  a{b,c}{  '{'a,b}  {a\,b}  {"a,b"}  ${X}{a,b}  {$X,b}  [[:alpha:]]*  [a-  [!
[^a]*  **  ***  */  ./*  +(a)  @(a|b)  !(a)  a|b  \(a\)  a\"b  "\a"  "\!"  !!  !x  \!  "!x"  =(a)  a=(b)  X[0]=a  ]]  [[
))  ((  "${f/.txt/}"  ${f/a/b}  "${f//./_}"  ${f^^}  "${f,,}-$i"  $f-$i  "$f$i"  "${f%.*}/${f#*.}"  ${X:=d}
"${X:=$(ls de)}"  $((SECONDS+1))  $((${#a[@]}+i))  $(($f+1))  $((OPTIND-1))  "${X[@]}"  "${m[k]}"  ${m[$f]}  "${!m[@]}"
"${!f[@]}"  ${f[@]}  "${i[@]}"  "${#f[@]}"  "$1"
-e  `ls \$X`  `ls \`ls n\``  "`ls \\\$X`"  $(cd sub; ls pw)  $"d"  *"y"  "*"y*  $(($#+1))  ${X:?}  "${a[@]}"
"""
_NAMES = """
ls rm git wc cat no noo out1 out2 out3 echo printf test [ cd : true false export read eval exec command local declare
set unset trap pushd popd wait type builtin readonly mapfile getopts hash time shift return break continue exit source
f g l\\s 'ls' $X let . umask times kill jobs ulimit caller dirs disown enable shopt alias unalias fc bg fg typeset
"""
_REDIRECTS = r"""
>o  >>o  2>o  >"$f"  >|o  &>o  >&o  &>>o  2>&1  >&2  <a.txt  <<<"x$(ls hs)"  <<<$X  {fd}>o  <>o  3>&1  >/dev/null
{X}>o  {i}>>o  {X}<a.txt  {fd}>&-  {X}>&1  <<<"$(ls q)"{,}  >"$(ls t)"  >$(ls t)  2>&1>o  >o2>&1  0<&-  >&$i  <&$fd
>&"$fd"  >''  >"a b"  >o\ p  >'o'"p"  &>"$X"  >&./o  >& o  >o<a.txt  9>o  10>o  99<a.txt  </dev/null  >>/dev/null
<<<a<<<b  >~+/o  >a{b,c}  >[o]  >?
2>&-  >sub/o  >$X  >a.txt  <$EVIL  2>/dev/null  >{o,p}  >*.txt  >~/o  < <(ls rp)  >>"o $X"  1>&2-  <&0
"""
_TOKENS = r"""
; & && || | |& ;; ;& ( ) { } < > << <<- <<< >> >& &> <> $ ` ' " \ # ! * ? [ ] [[ ]] (( )) $( ${ $(( )) } = += ~ , .. -
@ % ^ : if then else elif fi for in do done while until case esac function time coproc select f() $' $" \\ \' \" \$ \`
>( <( 2> EOF E eval cd X=
"""


def _divide(table: str) -> list[str]:
    """The entries of a table, between which stand two blanks or a line break."""
    return [entry for entry in re.split(r"\n|  +", table) if entry]


class _Generator:
    """Makes lines: by a grammar, of random tokens, and by changing lines that people type."""

    def __init__(self, seed: str, seeds: Sequence[str]) -> None:
        self._random = random.Random(seed)
        self._seeds = seeds
        self._pieces, self._names = _divide(_PIECES), _NAMES.split()
        self._redirects = _divide(_REDIRECTS)
        self._tokens = [*_TOKENS.split(), " ", " ", "\n", "\n", "\\\n", "\t", "\\ "]
        self._bodies: list[str] = []

    def line(self) -> str:
        kind = self._random.random()
        if kind < 0.45:
            return self._program()
        if kind < 0.55:
            return f'ls "$({self._program()})"'
        if kind < 0.75:
            return self._mutate(self._program())
        if kind < 0.95:
            return self._mutate(self._random.choice(self._seeds))
        return self._soup()

    def _soup(self) -> str:
        vocabulary = [
            *self._tokens,
            *self._random.sample(self._pieces, 8),
            *self._random.sample(self._names, 5),
            " ls ",
        ]
        return "".join(self._random.choice(vocabulary) for _ in range(self._random.randint(2, 14)))

    def _mutate(self, line: str) -> str:
        for _ in range(self._random.randint(1, 3)):
            at, to = sorted(self._random.randint(0, len(line)) for _ in range(2))
            token = self._random.choice([*self._tokens, *self._pieces, " ls x ", "; rm y", "\n\\rm z"])
            match self._random.randint(0, 4):
                case 0:
                    line = line[:at] + line[min(to, at + 4) :]
                case 1:
                    line = line[:to] + line[at:to] + line[to:]
                case _:
                    line = line[:at] + token + line[at:]
        return line

    def _program(self) -> str:
        self._bodies.clear()
        text = self._list(self._random.choice([0, 0, 1, 1, 2]))
        return text + self._newline() if self._bodies or self._maybe(0.1) else text

    def _maybe(self, chance: float) -> bool:
        return self._random.random() < chance

    def _newline(self) -> str:
        """A line break, and behind it the here-documents that wait for it."""
        text = "\n" + "".join(self._bodies)
        self._bodies.clear()
        return text

    def _list(self, depth: int) -> str:
        text = self._and_or(depth)
        for _ in range(self._random.choice([0, 0, 1, 1, 2])):
            separator = self._random.choice([";", "; ", " & ", "\n", "\n", ";\\\n"])
            text += self._newline() if separator == "\n" else separator
            text += self._and_or(depth)
        return text

    def _and_or(self, depth: int) -> str:
        text = self._pipeline(depth)
        while self._maybe(0.25):
            text += self._random.choice([" && ", " || ", "&&", " ||\\\n"]) + self._pipeline(depth)
        return text

    def _pipeline(self, depth: int) -> str:
        text = self._random.choice(["! ", "time ", "time -p "]) if self._maybe(0.08) else ""
        text += self._command(depth)
        while self._maybe(0.15):
            text += self._random.choice([" | ", "|", " |& ", " | \\\n"]) + self._command(depth)
        return text

    def _command(self, depth: int) -> str:
        if depth == 0 or self._maybe(0.5):
            return self._simple()
        text = self._compound(depth - 1)
        return text + " " + self._redirect() if self._maybe(0.2) else text

    def _compound(self, depth: int) -> str:
        body, other = self._list(depth), self._list(depth)
        name = self._random.choice(["f", "X", "i", "STAR"])
        words = " ".join(self._random.choice(self._pieces) for _ in range(self._random.randint(1, 3)))
        end = self._random.choice(["; ", self._newline() if self._bodies else "\n"])
        make = self._random.choice([self._blocks, self._values, self._arrays, self._calls])
        return self._random.choice(make(name, words, body, other, end))

    def _blocks(self, name: str, words: str, body: str, other: str, end: str) -> list[str]:
        first, last = words.partition(" ")[0], words.rpartition(" ")[2]
        return [
            f"( {body} )",
            f"{{ {body}{end}}}",
            f"if {body}; then {other}{end}fi",
            f"if {body}; then {other}; else {body}{end}fi",
            f"while no {words}; do {body}{end}done",
            f"for {name} in {words}; do {body}{end}done",
            f"for {name} in {words}{end}do {other}; done",
            f"case {first} in a|*) {body};; b) {other};; esac",
            f"{name}() {{ {body}{end}}}; {name}",
            f"{name}() {{ {body}{end}}}; {other}",
            f"for ((i = 0; i < 2; i++)); do {body}{end}done",
            f"[[ {first} == {last} ]] && {body}",
            f"[[ $i -eq {first} ]] || {body}",
            f"i=1; {body}; (( i++ )); {other}",
            f"ls $({body})",
            f'ls "$({body})"',
            f"set -e; {body}",
            f"set -e; cd {first}; {body}",
            f"set -e; {{ cd sub && {body}{end}}}; {other}",
            f"cd sub && {body}; {other}",
            f"cd sub || exit{end}{body}",
            f"for {name} in sub .; do (cd ${name} && {body}); done",
            f"trap '{self._random.choice(self._names)} ${name}' EXIT; {body}",
            f"{name}={first}; {body}; {name}={last}",
            f"{name}=({words}); ls ${{{name}[@]}}; {body}",
            f"{name}() {{ local X{end}X=a; {other}; }}; {body}",
        ]

    def _arrays(self, name: str, words: str, body: str, other: str, end: str) -> list[str]:
        first, last = words.partition(" ")[0], words.rpartition(" ")[2]
        return [
            f'{name}=({words}); {body}; {name}+=({last}); ls "${{{name}[@]}}"',
            f'{name}=({words}); {body} && {name}+=(y); ls "${{{name}[@]}}"; {name}+=($f "$i"); {other}',
            f'a=({words}); if {body}; then a+=(z); fi; for {name} in "${{a[@]}}"; do ls "${name}"; done; {other}',
            f'a=(); for f in {words}; do a+=("$f"); {body}; done; ls "${{a[@]}}"',
            f'a=(x); {{ {body}; a+=(y); }} {self._random.choice(["| cat", "", "&", "> o"])}{end}ls "${{a[@]}}"',
            f'{name}() {{ ls "$@" "${{a[@]}}"; }}; set -- {words}; a=($f); {body}; ls "$@"; a+=(w); {name} y',
            f'declare -A m; {body}; m[x]={first}{end}ls "${{m[x]}}" ${{m[x]}} ${{#m[@]}}; {other}',
            f'declare -A m=([a]=b.txt ["c d"]=-x); {body}; for i in "${{!m[@]}}"; do ls "$i${{m[$i]}}" $i; done',
            f'declare -A m{end}for i in {words}; do m[$i]=y; {body}; ls "${{m["$i"]}}"; done',
            f'{name}() {{ local -A m=([k]=x); {body}; m[k]=z; ls "${{m[k]}}" "${{!m[@]}}"; {other}; }}; {name}',
            f'{body}; declare -A m; m[k]=v; {other}; ls "${{m[k]}}" "${{m[0]:-x}}" "${{m[@]}}"',
            f'set -- {words}; {body}; for {name} in "$@"; do {other}; done; ls "$@" "$1" $2',
            f'{body}; set -e -- {words}; ls "$@"',
            f"for {name} in a b.txt; do for f in c 'd e' 1; do {body}; ls \"${name}-$f\" ${name}$f; done; done",
        ]

    def _calls(self, name: str, words: str, body: str, other: str, end: str) -> list[str]:
        first = words.partition(" ")[0]
        return [
            f'{name}() {{ local f={first} i=1; {other}; ls "$f" $f; }}; {body}; {name} x',
            f'{name}() {{ {body}; ls "$1" $2 "$@"; {other}; }}; {name} {words}; {name} "$X" y; {other}',
            f'f() {{ local X=$1; {body}; ls "$X"; g "$X" b; }}; g() {{ {other}; ls "$X" "$2"; }}; f {words}; g c',
            f'f() {{ X=$1; {body}; ls "$X"; }}; f {words}; {other}; f y; ls "$X"',
            f'f() {{ "$@"; ls $#; }}; f {words}; f ls "$f"; {body}; f {words}',
            f"f() {{ ls \"$1\"; {body}; }}; trap 'f a; {self._random.choice(self._names)}' EXIT; {other}; f b",
            f'f() {{ ls "$1"; {body}; }}; {other} || f() {{ ls "$2"; }}{end}f {words}; $X a; ls $(f z)',
            f'g() {{ f "$1" x; }}; f() {{ {body}; ls "$2" "$1"; [ $i ] || g y; }}; g {words}; {other}',
        ]

    def _values(self, name: str, words: str, body: str, other: str, end: str) -> list[str]:
        """What gives variables values, leaves folders, loops and shells, and defers commands."""
        first, last = words.partition(" ")[0], words.rpartition(" ")[2]
        return [
            f"(( {name} = 1 )); {body}",
            f"(( i++ )); ls $i; {body}",
            f"ls $(( i = {name} )); {body}",
            f"printf -v {name} %s {first}; {body}",
            f"printf 'a{self._random.choice(['%n', '%%n', '%s%hn', '%%%-3n'])}' {name} {name}; {body}",
            f"read -r {name} <<< {first}; {body}",
            f"mapfile -t {name} <<< {first}; {body}",
            f"mapfile -t a < <({body}); ls " + '"${a[@]}"',
            f"readonly {name}={first}; {body}; {name}=z; {other}",
            f"export {name}={first}; {body}",
            f"declare {name}={first} i; {body}",
            f"unset {name}; {body}",
            f"{name}+=({words}); {body}",
            f"set -- {words}; {body}",
            f"set -- {words}; shift; " + 'ls "$@"; ls $1; ' + body,
            f"trap '{body}' EXIT{end}{other}" if "'" not in body else body,
            f"trap 'ls $X' DEBUG{end}{other}",
            f"trap 'ls $X' ERR{end}{other}",
            f"trap 'ls $X' RETURN{end}{other}",
            f"{name}() ( {body} ); {name} {words}; {other}",
            f"function {name} {{ {body}{end}}}; {name}; unset -f {name}; {name}",
            f"function {name} () {{ {body}{end}}} >o; {name}",
            f"{body} | while read -r {name}; do {other}{end}done",
            f"while read -r {name}; do {other}{end}done < <({body})",
            f"until {body}; do {other}{end}break; done",
            f"for {name} do {body}{end}done",
            f"for {name} in {words}; do {body}; {name}=z; {other}{end}done",
            f"case $X in {first}) {body};; *) {other};& b) ls c;; esac",
            f"[[ -v {name} && {first} =~ {last} ]]; {body}",
            f"[[ -f {first} || ! ( -n $X ) ]] && {body}",
            f"[ {words} ] && {body}",
            f"test {words} && {body}",
            f"getopts ab {name} {words}; {body}",
            f"while getopts ab: {name} {words}; do {body}{end}done",
            f"exec {{{name}}}>o; {body}",
            f"exec {self._redirect()}{end}{body}" if not self._bodies else body,
            f"coproc {{ {body}{end}}}; {other}",
            f"time {{ {body}{end}}}",
            f"! {{ {body}{end}}} && {other}",
            f"{{ {body}{end}}} & wait; {other}",
            f"eval '{body}'{end}{other}" if "'" not in body else body,
            f'eval "{body}"{end}{other}' if '"' not in body else body,
            f"bash_x={first} {body}",
            f"cd sub && {{ {body}{end}cd ..; }}; {other}",
            f"cd sub; cd -; {body}",
            f"pushd sub && {body}{end}popd; {other}",
            f"(cd sub; {body}); {other}",
            f"cd ./sub/.. && {body}",
            f"cd sub/deep && cd .. && {body}",
            f"return; {body}",
            f"for i in 1 2; do {body}; continue; {other}{end}done",
            f"if {body}; then exit; fi; {other}",
            f"{body} || exit; {other}",
            f"({body}) || {{ {other}{end}exit; }}{end}ls z",
        ]

    def _simple(self) -> str:
        parts: list[str] = []
        if self._maybe(0.25):
            parts.append(
                self._random.choice(["X=", "i=", "f=", "Y+=", "HOME=", "f=", "OPTIND="])
                + self._random.choice(self._pieces)
            )
        if not parts or self._maybe(0.5):
            parts.append(self._random.choice(self._names[: self._random.choice([9, 9, len(self._names)])]))
            parts += (self._random.choice(self._pieces) for _ in range(self._random.choice([0, 1, 1, 2, 3])))
        if self._maybe(0.25):
            parts.insert(self._random.randint(0, len(parts)), self._redirect())
        return self._random.choice([" ", " ", " ", "  ", " \\\n"]).join(parts)

    def _redirect(self) -> str:
        if self._maybe(0.75):
            return self._random.choice(self._redirects)
        operator, delimiter = self._random.choice(["<<", "<<-"]), self._random.choice(["E", "'E'", '"E"', "\\E", "E"])
        inside = self._random.choice(
            ["x", "$(ls hd)", "`ls hb`", "\\$(ls)", "it's", '"', " E", "\tE", "x\\", "$X", "${X:-$(ls)}"]
        )
        self._bodies.append(f"{inside}\nE\n")
        return operator + delimiter


@dataclass
class _Tally:
    made: int = 0
    run: int = 0
    started: Counter[str] = field(default_factory=Counter)
    """How many programs, by shell."""
    written: int = 0
    misses: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def seeds() -> list[str]:
    """The lines that are changed: everyday ones, and those of the corpus where it is there."""
    lines = [
        "\n".join(line for line in entry.split("\n") if not line.startswith("=> "))
        for entry in (_HERE / "everyday.txt").read_text(encoding="utf-8").split("\n----\n")
    ]
    if _CORPUS.exists():
        cases = map(json.loads, _CORPUS.read_text(encoding="utf-8").splitlines())
        commands = (case["args"].get("command") for case in cases if case["tool"] == "bash")
        lines += (command for command in commands if isinstance(command, str) and len(command) < 500)
    return [line for line in lines if line]


@pytest.mark.timeout(300 + _LINES // 20)
def test_bash_starts_and_writes_nothing_that_the_analysis_does_not_say(seeds: list[str], tmp_path: Path) -> None:
    if not _has_bash_5():
        pytest.skip("the bash on PATH is older than 5.0, or there is none")
    generator, tally = _Generator(_SEED, seeds), _Tally()
    sizes = [_BATCH] * (_LINES // _BATCH) + [_LINES % _BATCH] * (_LINES % _BATCH > 0)
    with ThreadPoolExecutor(1) as running:
        batch = _make(generator, sizes[0], tally)
        for following in (*sizes[1:], 0):
            reports = running.submit(_run_all, [(shell, line) for shell, line, _ in batch], tmp_path)
            after = _make(generator, following, tally)
            for (shell, line, commands), report in zip(batch, reports.result(), strict=True):
                _compare(shell, line, commands, report, tally)
            batch = after
    print(f"{tally.made} lines made, {tally.run} run, {tally.written} files written, started: {dict(tally.started)}")
    assert tally.misses == []
    assert tally.started.total() > tally.run / 2 > 0
    assert all(tally.started[shell] for shell, program in _PROGRAMS.items() if shutil.which(program))


def _make(generator: _Generator, size: int, tally: _Tally) -> list[tuple[str, str, list[Command]]]:
    """Lines that the analysis does not refuse for a shell, with what it says of each."""
    accepted: list[tuple[str, str, list[Command]]] = []
    while len(accepted) < size:
        tally.made += 1
        shell, line = _SHELLS[len(accepted) % len(_SHELLS)], generator.line()
        if (commands := _analyse(line, "bash" if shell == "bash" else "posix")) is not None:
            accepted.append((shell, line, commands))
    return accepted


def _has_bash_5() -> bool:
    bash = shutil.which("bash")
    if bash is None:
        return False
    version = subprocess.run([bash, "-c", "echo $BASH_VERSINFO"], capture_output=True, text=True, check=True).stdout
    return int(version) >= 5


def _analyse(text: str, dialect: Dialect) -> list[Command] | None:
    """The commands, those of `eval` included; None: refused, or runs what nobody can know."""
    try:
        commands = list(analyse(text, {"HOME": "/work"}, dialect).commands)
    except (UnparsableError, BoundExceededError):
        return None
    found: list[Command] = []
    for command in commands:
        found.append(command)
        words = _unwrap([word.literal for word in command.words])
        if words[:1] in (["source"], ["."]) or (words and words[0] is None):
            return None
        if words[:1] == ["eval"]:
            if None in words:
                return None
            inner = _analyse(" ".join(word or "" for word in words[1 + (words[1:2] == ["--"]) :]), dialect)
            if inner is None:
                return None
            found += (Command(one.words, one.assignments, one.redirects, None, one.span) for one in inner)
    return found


def _unwrap(words: list[str | None]) -> list[str | None]:
    while words and words[0] in {"command", "builtin", "exec"}:
        words = words[1:]
        while words and words[0] == "-p":
            words = words[1:]
        words = words[words[:1] == ["--"] :]
    return words


def _run_all(lines: list[tuple[str, str]], scratch: Path) -> list[dict[str, object] | None]:
    """What the shells did for each line, by workers that share them."""
    size = -(-len(lines) // _WORKERS)
    shares = [lines[start : start + size] for start in range(0, len(lines), size)]
    folders = [scratch / f"worker-{index}" for index in range(len(shares))]
    with ThreadPoolExecutor(_WORKERS) as pool:
        return list(chain.from_iterable(pool.map(_run_share, shares, folders)))


def _run_share(lines: list[tuple[str, str]], folder: Path) -> list[dict[str, object] | None]:
    folder.mkdir()
    command = [sys.executable, str(_HERE / "bash_worker.py"), str(folder)]
    finished = subprocess.run(command, input=json.dumps(lines), stdout=subprocess.PIPE, text=True, check=True)
    shutil.rmtree(folder)
    return [json.loads(line) for line in finished.stdout.splitlines()]


def _compare(shell: str, line: str, commands: list[Command], report: dict[str, object] | None, tally: _Tally) -> None:
    if report is None:
        return
    tally.run += 1
    folder, started, written = str(report["folder"]), report["started"], report["written"]
    assert isinstance(started, list)
    assert isinstance(written, list)
    tally.started[shell] += len(started)
    tally.written += len(written)
    for place, *argv in started:
        if argv == [_CHANGED]:
            if not any(map(_sets_star, commands)):
                tally.misses.append(f"{shell}: {line!r} changes STAR")
        elif not any(_covers(command, place, argv, folder) for command in commands):
            tally.misses.append(f"{shell}: {line!r} starts {argv} in {place}")
    for name in written:
        if not any(_opens(command, f"{folder}/{name}", folder) for command in commands):
            tally.misses.append(f"{shell}: {line!r} writes {name!r}")


def _sets_star(command: Command) -> bool:
    """Whether the command is an assignment to STAR, or `declare` and its like with the name among their words."""
    words = [word.literal or word.prefix for word in command.words]
    return any(each.name == "STAR" for each in command.assignments) or any(word[:4] == "STAR" for word in words)


def _covers(command: Command, place: str, argv: list[str], start: str) -> bool:
    """Whether the command may be what bash started. A call of a function starts nothing by itself."""
    if command.function or not _is_in(command, place, start):
        return False
    source = [word.literal for word in command.words]
    skipped = len(source) - len(_unwrap(source))
    return any(_match(command.words[index:], argv) for index in {0, skipped})


def _is_in(command: Command, place: str, start: str) -> bool:
    return command.folder is None or os.path.normpath(os.path.join(start, command.folder)) == place


def _opens(command: Command, path: str, start: str) -> bool:
    for redirect in command.redirects:
        for word in redirect.target.choices or (redirect.target,):
            if redirect.mode == "read":
                continue
            if word.kind != "literal" or (command.folder is None and path.endswith(word.text.lstrip("./"))):
                return True
            if command.folder is not None and os.path.normpath(os.path.join(start, command.folder, word.text)) == path:
                return True
    return False


def _match(words: Sequence[Word], argv: Sequence[str]) -> bool:
    """Whether the words may have become these arguments."""
    ends = {0}
    for word in words:
        ends = {end for start in ends for end in _ends(word, argv, start)}
    return len(argv) in ends


def _ends(word: Word, argv: Sequence[str], start: int) -> Iterator[int]:
    """Where in the arguments the word may end if it begins here."""
    left = len(argv) - start
    most = left if word.splits or word.kind == "glob" else 1
    least = 0 if word.splits and not word.prefix else 1
    return (start + count for count in range(least, min(most, left) + 1) if _becomes(word, argv[start : start + count]))


def _becomes(word: Word, arguments: Sequence[str]) -> bool:
    match word.kind:
        case "literal":
            return list(arguments) == [word.text]
        case "unknown":
            return not arguments or arguments[0].startswith(word.prefix)
        case "choice":
            return word.splits or any(_becomes(choice, arguments) for choice in word.choices)
        case "glob" if word.edits:
            last = word.edits[-1]
            ends = (last.before, last.behind) if last.kind == "around" else ("", "")
            return len(arguments) == 1 and arguments[0].startswith(ends[0]) and arguments[0].endswith(ends[1])
        case "glob":
            pattern = _translate(re.sub("/+", "/", word.text))
            plain = re.sub(r"\\(.)", r"\1", word.text, flags=re.DOTALL)
            return list(arguments) == [plain] or all(
                re.fullmatch(pattern, re.sub("/+", "/", argument)) for argument in arguments
            )


def _translate(pattern: str) -> str:
    """A glob as a regular expression, in which a set stands for any character."""
    sets = r"\[[!^]?\]?(?:\[[:.=][^]]*\]|\\.|[^\]\\])*\]"
    token = re.compile(rf"\\(?P<quoted>.)|(?P<star>\*)|(?P<one>\?|{sets})|(?P<other>.)", re.DOTALL)
    pieces: list[str] = []
    for match in token.finditer(pattern):
        kind = match.lastgroup or ""
        pieces.append({"star": "[^/]*", "one": "[^/]"}.get(kind, re.escape(match[kind])))
    return "".join(pieces)
