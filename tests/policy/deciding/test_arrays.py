"""Arrays whose elements are spelled, or are the lines that another command prints; names that `printf` hands on."""

import subprocess

import pytest
from policy_calls import MakePolicy, Put

from ci_agent.policy.decide import Policy
from ci_agent.workspace import Workspace

_RULES = """
- id: tools
  allow: bash
  command: ["{cat,wc,ls,touch,ln,echo,printf,test,'[','[[',sort,read,mapfile,readarray,xargs,true} **",
    "git ls-files **", "pytest -q --maxfail=1 tests", "cd *", "set **"]
  env: IFS
- {id: files, allow: write}
- {id: secrets, deny: read, path: "**/.env"}
"""


@pytest.fixture
def decided(policy: MakePolicy, put: Put, workspace: Workspace) -> Policy:
    for name in ("README.md", "VERSION", "src/a.py", "tests/test_a.py"):
        put(name)
    subprocess.run(["git", "init", "-q"], cwd=workspace.root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=workspace.root, check=True)
    put(".env")
    return policy(_RULES)


KNOWN = [
    'args=(-q --maxfail=1); pytest "${args[@]}" tests',
    'args=(-q\n  --maxfail=1\n  tests\n)\npytest "${args[@]}"',
    'files=(README.md VERSION); wc -c "${files[@]}"',
    'files=(src/*.py README.md); for f in "${files[@]}"; do [[ -f $f ]] && wc -c "$f"; done',
    'files=(src/*.py); echo "${#files[@]} files"; wc -l "${files[@]}"',
    'none=(); cat "${none[@]}" README.md',
    'cmd=(wc -l README.md); "${cmd[@]}"',
    'a=(README.md); a+=(VERSION); cat "${a[@]}"',
    'args=(); [[ "$CI" == true ]] && args+=(-q); args+=(--maxfail=1); pytest -q --maxfail=1 tests; echo "${args[@]}"',
    'a=(README.md); if [ -f VERSION ]; then a+=(VERSION src/*.py); fi; for f in "${a[@]}"; do wc "$f"; done',
    'cmd=(wc); [ -n "$X" ] && cmd+=(-l); "${cmd[@]}" README.md',
    'for f in README.md VERSION; do a=(-l); [ "$f" = VERSION ] && a+=(-c); wc "${a[@]}" "$f"; done',
    'a=(); for f in src/*.py; do test -s "$f" || a+=("$f"); done; if (( ${#a[@]} > 0 )); then echo bad; fi',
    'set -- README.md VERSION; cat "$1" "$2"',
    'set -- README.md VERSION; cat "$@"; for f in "$@"; do wc "$f"; done',
    'for a in README VERSION; do for b in .md ""; do test -f "$a$b" && cat "$a$b"; done; done',
    "mapfile -t files < <(git ls-files '*.py'); cat \"${files[@]}\"",
    'readarray -t files < <(git ls-files \'*.py\'); for f in "${files[@]}"; do wc "$f"; done',
    "readarray -t lines < VERSION; printf 'dep: %s\\n' \"${lines[@]}\"",
    'a=(); for f in src/*.py; do test -s "$f" || a+=("$f"); done; printf "%s\\n" "${a[@]}"',
    "printf '%s\\n' README.md VERSION | xargs wc -c",
    "printf '%s\\n' src/*.py | xargs -n1 cat",
    "printf '%s\\n' README.md src/a.py | while IFS= read -r f; do cat \"$f\"; done",
    "echo README.md | xargs cat",
]


@pytest.mark.parametrize("command", KNOWN)
def test_elements_that_are_known_are_judged_as_if_they_were_spelled(decided: Policy, command: str) -> None:
    assert decided.decide("bash", {"command": command}).effect == "allow"


DENIED = [
    'a=(.env); cat "${a[@]}"',
    'a=(/etc/passwd); cat "${a[@]}"',
    'a=(rm README.md); "${a[@]}"',
    'a=(eval "rm x"); "${a[@]}"',
    "a=(-v 'x[$(rm x)]'); test \"${a[@]}\"",
    "a=(-v 'x[$(rm x)]' y); printf \"${a[@]}\"",
    'a=(x); read "${a[@]}" < README.md; cat "$x"',
    'a=(README.md); a+=("$X"); cat "${a[@]}"',
    'a=(README.md); a+=(.env); cat "${a[@]}"',
    'a=(README.md); read -ra a < VERSION; cat "${a[@]}"',
    'a=(README.md); [ -n "$X" ] && a+=(.env); cat "${a[@]}"',
    'a=(README.md); [ -n "$X" ] || { a+=(.env); }; cat "${a[@]}"',
    'a=(README.md); if true; then a+=(/etc/passwd); else a+=(VERSION); fi; cat "${a[@]}"',
    'a=(wc); [ -n "$X" ] && a=(rm); a+=(README.md); "${a[@]}"',
    'a=(wc); [ -n "$X" ] && a+=(rm); xargs "${a[1]}"',
    'a=(README.md); for i in 1 2; do cat "${a[@]}"; a+=(.env); done',
    'a=(README.md); while read -r x; do a+=("$x"); done < VERSION; cat "${a[@]}"',
    'a=(README.md); f() { cat "${a[@]}"; }; a+=(.env); f',
    "a=(README.md); trap 'cat \"${a[@]}\"' EXIT; a+=(.env)",
    'f() { a=(README.md); f; cat "${a[@]}"; a+=(.env); }; f',
    'a=(README.md); f() { a+=(.env); }; f; cat "${a[@]}"',
    'a=(README.md); a+=(.env) > notes; cat "${a[@]}"',
    'a=(README.md); a+=(.env) true; cat "${a[@]}"',
    'a=(README.md); a+=([0]=.env); cat "${a[@]}"',
    'a=(README.md); a+=x; cat "${a[@]}"',
    'a=(README.md); a+=({[0]=,}.env); cat "${a[@]}"',
    'a=(src/*); cd src && a+=(*.py) && cat "${a[@]}"',
    'a=(VERSION); [ -n "$X" ] && a+=(-n); mapfile "${a[@]}" < VERSION',
    'a=(README.md); [ "$X" ] && a+=(.env); wc -l "${a[@]}" | xargs cat',
    'set -- README.md; shift; cat "$@"',
    'set -- README.md .env; cat "$@"',
    'set -- README.md; set -- .env; cat "$@"',
    'set -- README.md; f() { cat "$@"; }; f .env',
    'f() { cat "$@"; }; set -- README.md; f .env',
    "set -- README.md; trap 'cat \"$@\"' EXIT; set -- .env",
    '[ -n "$X" ] && set -- README.md; cat "$@"',
    '(set -- README.md); cat "$@"',
    'set -- README.md > notes; cat "$@"',
    'set -- src/*; cd src && cat "$@"',
    'while true; do cat "$@"; set -- README.md; done',
    'a=(README.md); f() { a=("$X"); }; f; cat "${a[@]}"',
    'a=(README.md "$X"); cat "${a[@]}"',
    'a=($(cat VERSION)); cat "${a[@]}"',
    'a=([0]=README.md); cat "${a[@]}"',
    'a=({[0]=,}README.md); cat "${a[@]}"',
    'declare -A a=(x .env); cat "${a[@]}"',
    'declare -a a=(README.md); a=("$X"); cat "${a[@]}"',
    'for i in 1 2; do cat "${a[@]}"; a=(README.md); done',
    'if true; then a=(README.md); fi; cat "${a[@]}"',
    '(a=(README.md)); cat "${a[@]}"',
    'cat "${a[@]}"; a=(README.md)',
    'a=(README.md); cat "${a[@]:1}" "${a[0]}"',
    'a=(README.md); cat "x${a[@]}"',
    'a=(README.md); cat "${a[*]}"',
    'a=(src/*); (cd src && cat "${a[@]}")',
    'a=(*.md); touch ./-x.md; cat "${a[@]}"',
    'a=(*.md); ln -s .env z.md; cat "${a[@]}"',
    'mapfile -t a < <(git ls-files -o); cat "${a[@]}"',
    'mapfile -t a < <(cat VERSION); cat "${a[@]}"',
    'mapfile a < <(git ls-files); cat "${a[@]}"',
    'mapfile -t a < <(git ls-files; echo .env); cat "${a[@]}"',
    'mapfile -t a < <(git ls-files -z); cat "${a[@]}"',
    'mapfile -t -O 1 a < <(git ls-files); cat "${a[@]}"',
    'mapfile -t a < <(git ls-files); mapfile -t a < VERSION; cat "${a[@]}"',
    'mapfile -t a < <(git ls-files) < VERSION; cat "${a[@]}"',
    'mapfile -t a 3< <(git ls-files); cat "${a[@]}"',
    'git ls-files | mapfile -t a; cat "${a[@]}"',
    'mapfile -t a < <(git ls-files); cd src && cat "${a[@]}"',
    'mapfile -t a < <(git ls-files); ln -s .env z.md; cat "${a[@]}"',
    "printf '%s\\n' .env | xargs cat",
    "printf '%s\\n' -f README.md | xargs cat",
    "printf '%s\\n' ../x | xargs cat",
    "printf '%s\\n' 'a b' | xargs cat",
    "printf '%s' README.md VERSION | xargs cat",
    "printf '%s\\n/etc/passwd' README.md | xargs cat",
    'printf "$X" README.md | xargs cat',
    'printf "${X[@]}" x',
    'printf "%s" "${X[@]}" | xargs cat',
    "printf '%s\\n' \"$X\" | xargs cat",
    "printf -- '%s\\n' README.md | xargs cat",
    "echo -e 'README.md\\n/etc/passwd' | xargs cat",
    'echo README.md "$X" | xargs cat',
    'echo s* | while read -r f; do cat "$f"; done',
]


@pytest.mark.parametrize("command", DENIED)
def test_elements_that_may_be_others_or_are_forbidden_are_denied(decided: Policy, put: Put, command: str) -> None:
    put("src/old.py")
    assert decided.decide("bash", {"command": command}).effect == "deny"


@pytest.mark.parametrize("odd", ["a b.py", "a*.py", 'a".py', "-x.py"])
def test_lines_may_hold_blanks_but_nothing_that_git_quotes(
    decided: Policy, put: Put, workspace: Workspace, odd: str
) -> None:
    put(odd)
    subprocess.run(["git", "add", "-A"], cwd=workspace.root, check=True)
    call = {"command": "mapfile -t a < <(git ls-files '*.py'); sort \"${a[@]}\""}
    assert decided.decide("bash", call).effect == ("allow" if odd in ("a b.py", "a*.py") else "deny")
