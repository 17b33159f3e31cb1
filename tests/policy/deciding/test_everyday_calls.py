"""Calls of the shell as coding agents and CI steps make them, in a repository, under rules that a user would write."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from policy_calls import MakePolicy, Put

_HERE = Path(__file__).parent
_FILES = (_HERE / "everyday_files.txt").read_text(encoding="utf-8").splitlines()
_GROUPS = [
    group
    for name in ("everyday_calls.txt", "everyday_jobs.txt", "everyday_workflows.txt")
    for group in (_HERE / name).read_text(encoding="utf-8").split("\n=== ")[1:]
]


def _calls(text: str) -> Iterator[tuple[str, str]]:
    """Each call with `+` or `-`: whether it is allowed."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    starts = [at for at, line in enumerate(lines) if line[:2] in ("+ ", "- ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start][0], "\n".join(line[2:] for line in lines[start:end])


def test_the_list_is_long() -> None:
    assert sum(len(list(_calls(group.partition("\n---\n")[2]))) for group in _GROUPS) > 1650


@pytest.mark.parametrize("group", _GROUPS, ids=lambda group: group.partition("\n")[0])
def test_everyday_calls_get_the_answer_that_stands_before_them(policy: MakePolicy, put: Put, group: str) -> None:
    for name in _FILES:
        file = put(name)
    root = next(folder for folder in file.parents if (folder / ".env").exists())
    (root / "VERSION").write_text("1.2.3\n")
    (root / "package.json").write_text('{"name": "app", "version": "1.2.3"}\n')
    (root / ".gitignore").write_text("node_modules/\nbuild/\n.env\n")
    subprocess.run(["git", "-c", "init.defaultBranch=main", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    rules, _, calls = group.partition("\n")[2].partition("\n---\n")
    decided = policy(f'{rules}\n- {{id: secrets, deny: read, path: "**/.env"}}\n')
    answers = [
        (answer, call, decided.decide("bash", {"command": call}).effect == "allow") for answer, call in _calls(calls)
    ]
    print(f"{sum(allowed for _, _, allowed in answers)} of {len(answers)} everyday calls are allowed")
    assert [call for answer, call, allowed in answers if allowed != (answer == "+")] == []
