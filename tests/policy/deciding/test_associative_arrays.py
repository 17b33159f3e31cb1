"""Associative arrays whose keys and values are spelled; of other arrays bash evaluates what stands in the brackets."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent.policy.decide import Policy

MakePolicy = Callable[..., Policy]
Put = Callable[..., Path]

_RULES = """
- id: tools
  allow: bash
  command: ["{cat,wc,echo,printf,test,'[','[[',read,declare,local,true,unset,export,rm} **", "cd *"]
- {id: secrets, deny: read, path: "**/.env"}
- {id: kept, deny: write, path: "**"}
"""


@pytest.fixture
def decided(policy: MakePolicy, put: Put) -> Policy:
    for name in ("README.md", "VERSION", ".env"):
        put(name)
    return policy(_RULES)


KNOWN = [
    'declare -A m\nm[a]=README.md\nm[b]=VERSION\nfor k in "${!m[@]}"; do echo "$k is ${m[$k]}"; done',
    'declare -A m=([a]=README.md [b]=VERSION); for k in "${!m[@]}"; do wc -l ./"${m[$k]}"; done',
    'declare -A m=(["a b"]=README.md\n  [c]=VERSION\n)\ncat "./${m[c]}"',
    'declare -A m=(); for k in web api; do m[$k]=1; m["$k"]=2; done; echo "${#m[@]} ${m[*]}"',
    'declare -A m; m[x.y/z:1-2]="$X"; echo "${m[x.y/z:1-2]}"',
    'f() { local -A m=([a]=README.md); cat "./${m[a]}"; }; f',
    'declare -A m=([README]=md); for k in "${!m[@]}"; do test -f "$k.${m[$k]}"; done',
    "f() { m[a]=1; }; declare -A m; f",
    'declare -A m=([a]=1); echo "${m[b]:-none} ${m[a]:+yes}"',
]


@pytest.mark.parametrize("command", KNOWN)
def test_what_is_spelled_is_known(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "allow"


DENIED = [
    'declare -A m=([a]=.env); cat "./${m[a]}"',
    'declare -A m=([a]=.env [b]=VERSION); for k in "${!m[@]}"; do cat "./${m[$k]}"; done',
    'declare -A m=([.env]=1); for k in "${!m[@]}"; do cat "./$k"; done',
    'declare -A m; m[a]=.env; cat "./${m[a]}"',
    'declare -A m=([a]=VERSION); m[a]=.env; cat "./${m[a]}"',
    'declare -A m=([a]=VERSION); f() { m[a]=.env; }; f; cat "./${m[a]}"',
    'declare -A m=([a]="$X"); cat "./${m[a]}"',
    'declare -A m=([a]=VERSION); m[b]=$X; cat "./${m[b]}"',
    # The environment may have a value for m, which it then has under 0.
    'declare -A m; m[a]=VERSION; cat "./${m[0]}"',
    'declare -A m; m[a]=VERSION; for k in "${!m[@]}"; do cat "./${m[$k]}"; done',
    'declare -A m=([a]=VERSION); cat "./${m[@]}"',
    # Nothing makes the array an associative one, or something may make it another.
    "m[a]=1",
    "m[$X]=1",
    'echo "${m[$X]}"',
    'echo "${m[x]}"',
    "m=(); m[a]=1",
    "declare -a m; m[a]=1",
    "declare +A m; m[a]=1",
    "declare -Ar m; m[a]=1",
    "true && declare -A m; m[a]=1",
    "(declare -A m); m[a]=1",
    "declare -A m > notes; m[a]=1",
    "local -A m; m[a]=1",
    "f() { declare -A m; }; f; m[a]=1",
    "f() { m[a]=1; }; f; declare -A m; f",
    "declare -A m; unset m; m[a]=1",
    "declare -A m; f() { local m; m[a]=1; }; f",
    "declare -A m; m=x; m[a]=1",
    "declare -A m; read -r m < VERSION; m[a]=1",
    "declare -A m; : ${m:=x}; m[a]=1",
    "declare -A m; m+=(x); m[a]=1",
    'declare -A m; eval "$X"; m[a]=1',
    "declare -A DIRSTACK; DIRSTACK[a]=1",
    "declare -A PIPESTATUS; PIPESTATUS[a]=1",
    "declare -A BASH_ALIASES; BASH_ALIASES[ls]=rm",
    "declare -A BASH_CMDS; BASH_CMDS[ls]=./x",
    # At an empty key bash drops the rest of the line.
    "declare -A m=(); m[$X]=1",
    'declare -A m=(); for k in a ""; do m[$k]=1; done',
    'declare -A m=(); echo "${m[$X]}"',
    "declare -A m=(); m[$(cat VERSION)]=1",
    'declare -A m=(); m["$X$Y"]=1',
    "declare -A m=([$X]=1); echo x",
    # Values of these are evaluated.
    "declare -A m=([a]=1); (( m[a]++ ))",
    "declare -A m=([a]=1); echo $((m[a] + 1))",
    "declare -A m=([a]=1); echo $((${m[a]} + 1))",
    "declare -A m=([a]=1); unset 'm[$X]'",
    "declare -A m=([a]=1); [[ -v m[$X] ]]",
    "declare -A m=([a]=1); read -r 'm[$X]' < VERSION",
    "declare -A m=([a]=1); printf -v 'm[$X]' x",
    "x=$(declare -A m; m[a]=1)",
]


@pytest.mark.parametrize("command", DENIED)
def test_what_may_be_something_else_or_be_evaluated_is_denied(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "deny"
