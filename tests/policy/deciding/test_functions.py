"""Functions, each call of which is judged with its arguments, as far as it is certain which calls there are."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.policy.decide import Policy

MakePolicy = Callable[..., Policy]
Put = Callable[..., Path]

_RULES = """
- id: tools
  allow: bash
  command: ["{cat,wc,tail,tee,echo,test,'[',local,trap,make,shift,return,sort,eval,true,set} **", "npm {ci,test}"]
- {id: files, allow: write, path: "build/**"}
- {id: secrets, deny: read, path: "**/.env"}
"""


@pytest.fixture
def decided(policy: MakePolicy, put: Put) -> Policy:
    for name in ("README.md", "VERSION", ".env", "build/a.log"):
        put(name)
    return policy(_RULES)


KNOWN = [
    'retry() { local n=0; until "$@"; do n=$((n+1)); [ "$n" -ge 3 ] && return 1; done; }; retry npm ci; retry npm test',
    'tails() { local log=$1; echo "== $log"; tail -n 1 "$log"; }; tails build/a.log; tails README.md',
    'run() { echo "+ $*"; "$@"; }; run make test; run cat README.md',
    'show() { cat "$1" | tee "build/$2"; }; show README.md a; show VERSION b',
    'last() { test "$(sort "$@" | tail -n 1)" != "$1"; }; last README.md VERSION',
    'a() { cat "$1"; }; b() { a README.md; a "$1"; }; b VERSION',
    'b() { a "$1"; }; a() { cat "$1"; }; b VERSION',
    "done_() { tail build/a.log; }; trap done_ EXIT; make",
    'f() { cat "$1"; }; for x in README.md VERSION; do f "$x"; done',
    'f() { cat "$2" "$1"; }; f README.md VERSION | tail -1; (f VERSION README.md)',
]


@pytest.mark.parametrize("command", KNOWN)
def test_a_call_is_judged_with_its_arguments(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "allow"


DENIED = [
    'f() { cat "$1"; }; f .env',
    'f() { cat "$1"; }; f README.md; f .env',
    'f() { cat "$1"; }; f "$X"',
    'f() { cat "$1"; }; f',
    'f() { cat "$1"; }',
    'f() { cat "$1"; }; f *',
    'f() { cat "$2"; }; f $X README.md',
    'run() { "$@"; }; run rm README.md',
    'run() { "$@"; }; run "$X"',
    'run() { "$@"; }; run cd ..',
    'run() { "$@"; }; run eval "$X"',
    'f() { "$@"; }; g() { cat .env; }; f g',
    'f() { shift; cat "$1"; }; f README.md .env',
    'f() { set -- .env; cat "$1"; }; f README.md',
    'f() { cat "$1"; }; f README.md; $X .env',
    'f() { cat "$1"; }; for c in f true; do $c .env; done',
    'f() { cat "$1"; }; f README.md; true || f() { cat "$2"; }; f README.md .env',
    'f() { cat "$1"; }; if true; then f() { cat "$2"; }; fi; f README.md .env',
    'f() { [ "$1" = .env ] || f .env; cat "$1"; }; f README.md',
    'f() { x=$1; [ "$1" = .env ] || g; cat "$x"; }; g() { f .env; }; f README.md',
    'f() { x=$1; y=$2; cat "./$x$y"; }; trap "f .e nv" EXIT; f .e x; f a nv',
    'f() { cat "$1"; }; trap \'f "$X"\' EXIT; f README.md',
    'f() { cat "$1"; }; eval "f .env"; f README.md',
    'command_not_found_handle() { cat "$2"; }; command_not_found_handle x README.md; nothing .env',
    'f() { g; }; f; g() { cat "$1"; }; g README.md',
    'f() { x=README.md; }; f; cat "$x"',
    'f() { local x=$1; g; cat "$x"; }; g() { x=.env; }; f README.md',
    "f() { trap 'cat \"$1\"' EXIT; }; f README.md",
    'f() { g() { cat "$1"; }; }; f; g .env',
]


@pytest.mark.parametrize("command", DENIED)
def test_calls_that_may_have_other_arguments_are_denied(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "deny"


def test_too_many_calls_to_follow_each_are_followed_once(decided: Policy) -> None:
    calls = "; ".join(["say x"] * 60)
    assert decided.decide("bash", {"command": f"say() {{ echo a; echo b; echo c; }}; {calls}"}).effect == "allow"
