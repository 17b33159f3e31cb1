"""A file that a deny rule spells is closed to every program; the attacks give it another name by one call and read that
by the next."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from ci_agent.precautions.closed_files import MAX_FILES
from ci_agent.sandbox import landlock

Write: TypeAlias = Callable[[str], str]

CANARY = "canary-9b41d7"

POLICY = """
rules:
  - {id: run, allow: bash, command: ["bash attack.sh", "bash look.sh", "cat **"]}
  - {id: read, allow: read}
  - {id: closed, deny: read, path: [secret.txt, "conf/closed/**"]}
"""

pytestmark = pytest.mark.skipif(landlock.abi() == 0, reason="this kernel offers no Landlock")


@pytest.fixture
def run(ci_agent: Any, policy: Write, script: Write, workspace: Path) -> Callable[[str], Any]:
    """A run whose first command is a script that the policy allows, and whose others look everywhere."""
    (workspace / "conf" / "closed").mkdir(parents=True)
    for name in ("secret.txt", "conf/closed/token.txt"):
        (workspace / name).write_text(CANARY)
    (workspace / "look.sh").write_text("cat plain.txt new/* new/closed/*")

    def run(attack: str) -> Any:
        (workspace / "attack.sh").write_text(f"{attack}; cat plain.txt")
        commands = ["bash attack.sh", "bash look.sh", "cat plain.txt"]
        calls = [{"name": "bash", "arguments": {"command": command}} for command in commands]
        names = ("plain.txt", "new/plain.txt", "new/closed/token.txt")
        calls += [{"name": "read", "arguments": {"path": name}} for name in names]
        model = script(json.dumps({"turns": [*({"tool_calls": [call]} for call in calls), {"text": "done"}]}))
        return ci_agent("run", "--policy", policy(POLICY), "--model", model, "Go.")

    return run


OTHER_NAMES = {
    "renamed": "mv secret.txt plain.txt",
    "linked": "ln secret.txt plain.txt",
    "linked and its name deleted": "ln secret.txt plain.txt && rm secret.txt",
    "linked, with something else in its place": "ln secret.txt plain.txt && rm secret.txt && echo x > secret.txt",
    "moved into a new folder": "mkdir new && mv secret.txt new/plain.txt && ln new/plain.txt new/x",
    "its folder renamed": "mv conf new",
    "a file of a closed folder renamed": "mv conf/closed/token.txt plain.txt",
}


@pytest.mark.parametrize("attack", OTHER_NAMES.values(), ids=OTHER_NAMES)
def test_attack_read_a_closed_file_by_the_name_that_an_earlier_command_gave_it(
    run: Callable[[str], Any], attack: str
) -> None:
    done = run(attack)
    assert CANARY not in done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert [call["status"] for call in document["tool_calls"]] == ["error", "denied"]
    assert (done.returncode, document["result"]["reason"]) == (9, "tampered")


def test_attack_move_one_of_more_files_than_are_followed(run: Callable[[str], Any], workspace: Path) -> None:
    for number in range(MAX_FILES):
        (workspace / "conf" / "closed" / f"{number}").write_text(CANARY)
    last = [entry.name for entry in os.scandir(workspace / "conf" / "closed")][-1]
    done = run(f"mv conf/closed/{last} plain.txt; ln conf/closed/{last} plain.txt; mv plain.sh other.sh; mkdir new")
    assert CANARY not in done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert (done.returncode, document["result"]["reason"]) == (0, "completed")
    assert "Invalid cross-device link" in document["tool_calls"][0]["content"][0]["text"]


HARMLESS = {
    "deleted": "rm secret.txt",
    "replaced": "echo x > new.txt && mv new.txt secret.txt",
    "written to": "echo x > secret.txt && chmod 600 secret.txt && touch conf/closed/token.txt",
    "a new one beside it": "echo x > conf/closed/other.txt && echo x > plain.txt",
}


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_what_leaves_its_content_closed_does_not_end_the_run(run: Callable[[str], Any], change: str) -> None:
    done = run(change)
    document = json.loads(done.stdout)
    assert CANARY not in done.stdout
    assert (done.returncode, document["result"]["reason"], len(document["tool_calls"])) == (0, "completed", 6)
