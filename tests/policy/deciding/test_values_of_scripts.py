"""Variables of functions, numbers that may be missing, and edits of values, as scripts of CI use them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.policy.decide import Policy

MakePolicy = Callable[..., Policy]
Put = Callable[..., Path]

_RULES = """
- id: tools
  allow: bash
  command: ["{cat,wc,tail,sed,date,git,tee,echo,test,'[','[[',local,export,true,trap,make,getopts,shift,return,':'} **",
    "getconf *", "nproc", "{cmake,ctest} **", "cd *", "git rev-list **"]
- {id: files, allow: write, path: "build/**"}
- {id: secrets, deny: read, path: "**/.env"}
"""


@pytest.fixture
def decided(policy: MakePolicy, put: Put) -> Policy:
    for name in ("README.md", "VERSION", ".env", "build/a.log", "py311", "a-b.md"):
        put(name)
    put("VERSION", "1.2.3\n")
    return policy(_RULES)


KNOWN = [
    'f() { local n=0; until make; do n=$((n + 1)); if [ "$n" -ge 3 ]; then return 1; fi; done; }; f',
    'f() { local log=build/a.log; tail "$log"; }; f',
    'f() { local log=README.md; echo "$1" | tee "build/x"; cat "$log"; }; f a; f b',
    'v=$(cat VERSION); major=${v%%.*}; rest=${v#*.}; minor=${rest%%.*}; patch=${rest#*.}; echo "$((patch + 1))"',
    "SECONDS=0; make; echo $SECONDS",
    'sed -e "s/^Version: .*/Version: $(cat VERSION)/" -e "s/^Date: .*/Date: $(date +%F)/" README.md',
    'n=$(wc -l < VERSION); sed -n "${n}p" README.md',
    'start=$SECONDS; make; echo "$((SECONDS - start))"',
    "while getopts vo: o; do true; done; shift $((OPTIND - 1))",
    ': "${X:=y}"; echo "$X"',
    'make -j"$(getconf _NPROCESSORS_ONLN)"',
    "cmake --build build -j$(nproc)",
    'ctest --test-dir build -j"$(nproc)" -E slow',
    "n=$(git rev-list --count HEAD); echo $((n + 1))",
    'for v in 3.11; do cat "py${v/./}"; done',
    'for v in a.b; do cat "${v//./-}.md"; done',
    'for f in README.MD; do cat "${f%.MD}.md"; done',
    'for x in a/b; do echo "${x^^}" "${x,,}" > "build/${x//\\//-}"; done',
]


@pytest.mark.parametrize("command", KNOWN)
def test_values_that_follow_from_the_text_are_known(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "allow"


DENIED = [
    # Outside of its function the variable has another value, or none.
    'f() { local log=README.md; }; f; cat "$log"',
    'local log=README.md; cat "$log"',
    'f() { local log=.env; cat "$log"; }; f',
    'f() { local log=README.md; log=$1; cat "$log"; }; f .env',
    'f() { local log=README.md > build/x; cat "$log"; }; f',
    'f() { local log=README.md; g() { cat "$log"; }; }; f; g',
    "f() { local log=README.md; trap 'cat \"$log\"' EXIT; }; f",
    "trap 'local log=README.md; cat \"$log\"' EXIT",
    "local n=0; echo $((n + 1))",
    "f() { local n=$1; echo $((n + 1)); }; f $X",
    "f() { local n=0; n=$X; echo $((n + 1)); }; f",
    # A command of sed that opens a file, and the name of a commit, which may begin with the letter of a command.
    'sed "s/a/b/w build/$(date +%F)" README.md',
    'sed "s/a/$(date +%F)/e" README.md',
    'sed "s/a/b/1$(git rev-parse HEAD)" README.md',
    'sed "s/a/$X/" README.md',
    # With a `$` an empty value is a part of the expression, and an error drops the rest of the line.
    "n=$(wc -l < VERSION); echo $(($n * 2))",
    "v=$(cat VERSION); p=${v##*.}; echo $((${p} * 2))",
    "v=$(cat VERSION); echo $((v + 1))",
    "v=$(cat README.md); p=${v##*.}; echo $((p + 1))",
    "SECONDS=$X",
    "SECONDS+=1",
    "OPTIND=$X; echo $((OPTIND))",
    "export SECONDS=5",
    'X=README.md; : "${X:=.env}"; cat "$X"',
    ': "${PATH:=.}"; make',
    ': "${X:=$(cat .env)}"',
    ': "${LD_PRELOAD:=x.so}"; make',
    'for v in .xenv; do cat "${v/x/}"; done',
    'for v in .ENV; do cat "${v,,}"; done',
    'for v in .E; do for w in NV nv; do cat "${v,,}$w"; done; done',
    'for v in ../x; do cat "${v/x/y}"; done',
    'for v in .xnv; do cat "${v//x/$X}"; done',
    # The number is the name of a file, or of a folder.
    "cmake -S . -B$(nproc)",
    "ctest --test-dir build -O$(nproc)",
    "ctest --test-dir $(nproc)",
    # What becomes of an i depends on the locale.
    'for v in I; do cat "${v,,}"; done',
]


@pytest.mark.parametrize("command", DENIED)
def test_values_that_may_be_others_are_not(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "deny"
