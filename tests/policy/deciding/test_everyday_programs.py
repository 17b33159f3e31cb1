"""Lines that people type in CI, under a rule for each of their programs and a rule that keeps secrets unread."""

from pathlib import Path

from policy_calls import MakePolicy, Put

_LINES = (Path(__file__).parent / "everyday_programs.txt").read_text(encoding="utf-8").splitlines()
_PROGRAMS = sorted({line.split()[0] for line in _LINES})
_INNER = ("wc", "grep", "xargs", "pytest", "tsc")


def test_everyday_lines_pass_when_their_programs_are_granted(policy: MakePolicy, put: Put) -> None:
    for name in ("src/a.py", "dir/b.txt", "a.txt", "chart/values.yml", "tests/test_a.py", "requirements.txt", ".env"):
        put(name)
    commands = [f"{program} **" for program in (*_PROGRAMS, *_INNER)]
    decided = policy(
        f"""
        - {{id: tools, allow: bash, command: {[*commands, "python -m {pytest,mypy} **"]}}}
        - {{id: secrets, deny: read, path: "**/.env"}}
        """
    )
    refused = [line for line in _LINES if decided.decide("bash", {"command": line}).effect == "deny"]
    print(f"{len(_LINES) - len(refused)} of {len(_LINES)} everyday lines are allowed")
    assert refused == ["docker build -t app:latest ."]  # the secret would be sent along


_SCRIPTS = (Path(__file__).parent / "everyday_scripts.txt").read_text(encoding="utf-8").splitlines()
_GRANTED = """
- id: programs
  allow: bash
  command: ["git {show,diff,log,ls-files,rev-parse,rev-list,merge-base} **", "git commit -m *",
    "{cat,head,tail,wc,ls,grep} **",
    "{echo,printf,date,test,'[',set,read,export,tee,nproc,make,awk,pytest} **", "cd *", "npm test", "xargs wc -l",
    "xargs -r ruff check **", python -, "tar czf out.tgz dist", "find . -name '*.pyc' -delete"]
  env: IFS
  paths: [".", "**"]
- {id: files, allow: write, path: "**"}
"""
_ADVISED = {
    "git diff --name-only origin/main... | grep '\\.py$' | xargs -r ruff check": "--diff-filter=d",
    "base=$(git merge-base a b); wc $base": "$base",
    "sha=$(git rev-parse HEAD); git log $sha--output=x": "may be an option",
    "head -n $(nproc) a.txt": "in double quotes it is one",
    "git log $(date +-%F)": "may be an option",
    "git log $(date +%F%n--output=x)": "in double quotes it is one",
    'cat "$(date +%F)"': "begin the name with something",
    "n=$(wc -l a.txt); echo $((n+1))": "not known to be a number",
    "n=$(wc -l < a.txt; cat a.txt); echo $((n+1))": "not known to be a number",
    "n=$(wc -l < a.txt)x; echo $((n+1))": "not known to be a number",
    "n=$(wc -l < a.txt); n=$x; echo $((n+1))": "not known to be a number",
    "wc() { cat a.txt; }; n=$(wc -l < a.txt); echo $((n+1))": "not known to be a number",
    "n=$(cat a.txt | wc -l 2>&1); echo $((n+1))": "not known to be a number",
    "n=$(date +%F); echo $((n+1))": "not known to be a number",
    'for s in $(git rev-list --boundary A..B); do git show "$s"; done': "may be an option",
    'for s in $(git rev-list --objects HEAD); do git show "$s"; done': "may be an option",
    'git() { echo -x; }; for s in $(git rev-list HEAD); do make "$s"; done': "may be an option",
    'for s in $(git rev-list HEAD); do s=--output=x; git show "$s"; done': "may be an option",
    "git diff -- $(git rev-parse HEAD)": "which file",
    "git show $(git rev-parse HEAD):/etc/passwd": "/etc/passwd",
}


def test_everyday_scripts_pass_when_their_commands_are_granted(policy: MakePolicy, put: Put) -> None:
    for name in ("src/a.py", "a.txt", "README.md", "sub/package.json", "dist/x", "notes/log"):
        put(name)
    decided = policy(_GRANTED)
    calls = [{"command": line.replace("\\n", "\n") if "<<" in line else line} for line in _SCRIPTS]
    refused = [call["command"] for call in calls if decided.decide("bash", call).effect == "deny"]
    print(f"{len(_SCRIPTS) - len(refused)} of {len(_SCRIPTS)} everyday scripts are allowed")
    assert refused == []


def test_what_may_be_an_option_or_a_file_stays_denied(policy: MakePolicy, put: Put) -> None:
    put("a.txt")
    decided = policy(_GRANTED)
    decisions = {command: decided.decide("bash", {"command": command}) for command in _ADVISED}
    assert {command for command, decision in decisions.items() if decision.effect == "allow"} == set()
    assert [why for command, why in _ADVISED.items() if why not in str(decisions[command])] == []
