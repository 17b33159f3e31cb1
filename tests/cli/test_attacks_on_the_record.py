"""Without a sandbox a command may take away or exchange the record: it is whole all the same, and never a success."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent.transcript.verify import verify

if TYPE_CHECKING:
    from tests.cli.conftest import CIAgent

RULES = """
rules:
  - {id: attack, allow: bash, command: "bash attack.sh"}
  - {id: later, allow: bash, command: "echo later"}
"""

CALLS = ["bash attack.sh", "echo later"]

CHANGED = "the journal of the run was changed or taken away by somebody else while the run went on"

PUT_BACK = {
    "remove the folder": "rm -rf rec",
    "rename the folder": "mv rec old",
    "put another folder there": "mv rec old && mkdir rec",
    "put another folder there with its own journal": "mv rec old && mkdir rec && echo {} > $JOURNAL",
    "remove the journal": "rm $JOURNAL",
    "rename the journal": "mv $JOURNAL rec/x",
    "replace the journal by a copy": "cp $JOURNAL rec/x && mv rec/x $JOURNAL",
    "replace the journal by a link": "rm $JOURNAL && ln -s $PWD/precious $JOURNAL",
    "replace the journal by a pipe": "rm $JOURNAL && mkfifo $JOURNAL",
    "empty the journal": ": > $JOURNAL",
    "cut the journal": "truncate -s -10 $JOURNAL",
    "write over the journal": "printf garbage | dd of=$JOURNAL conv=notrunc 2> /dev/null",
    "append to the journal": "echo garbage >> $JOURNAL",
}

PUT_ASIDE = {
    "put a file there": "mv rec old && touch rec",
    "lead the folder to where it went": "mv rec old && ln -s old rec",
    "lead the folder elsewhere": "rm -rf rec && mkdir elsewhere && ln -s elsewhere rec",
    "lead the folder nowhere": "rm -rf rec && ln -s nowhere rec",
}


@dataclass(frozen=True)
class Ran:
    exit_code: int
    document: Any
    workspace: Path
    temporary: Path

    def statuses(self) -> list[tuple[str, str]]:
        return [(call["arguments"]["command"], call["status"]) for call in self.document["tool_calls"]]


Attack = Callable[..., Ran]


@pytest.fixture
def attack(
    ci_agent: "CIAgent",
    policy: Callable[[str], str],
    script: Callable[[str], str],
    workspace: Path,
    tmp_path: Path,
) -> Iterator[Attack]:
    """A run whose first call does something to its record, and whose second comes after."""
    (tmp_path / "tmp").mkdir()
    (workspace / "precious").write_text("precious")

    def run(command: str, *flags: str, transcript: str = "rec/t.json", journal: str = "rec/t.json.journal") -> Ran:
        (workspace / "rec").mkdir()
        (workspace / "attack.sh").write_text(f"JOURNAL={journal}\n{command}\n")
        turns = [{"tool_calls": [{"name": "bash", "arguments": {"command": call}}]} for call in CALLS]
        model = script(json.dumps({"turns": [*turns, {"text": "Done."}]}))
        where = ["--policy", policy(RULES), "--model", model, "--sandbox", "off", "--transcript", transcript]
        done = ci_agent("run", *where, *flags, "Go.", env={"TMPDIR": str(tmp_path / "tmp")})
        document = json.loads(done.stdout) if done.stdout else None
        return Ran(done.returncode, document, workspace, tmp_path / "tmp")

    yield run
    assert (workspace / "precious").read_text() == "precious"


@pytest.mark.parametrize("what", PUT_BACK)
def test_attack_take_the_record_away(attack: Attack, what: str) -> None:
    ran = attack(PUT_BACK[what])
    assert (ran.exit_code, ran.document["result"]["reason"]) == (9, "tampered")
    assert ran.document["result"]["error"] == CHANGED
    assert ran.statuses() == [(call, "ok") for call in CALLS]
    assert json.loads((ran.workspace / "rec/t.json").read_text()) == ran.document
    assert verify(ran.workspace / "rec/t.json") == []
    assert os.listdir(ran.temporary) == []


def test_attack_take_the_whole_workspace_away(attack: Attack) -> None:
    """The record is all that is there afterwards, and the call after it, which has nowhere to run, is on it."""
    ran = attack('rm -rf "$PWD"')
    (ran.workspace / "precious").write_text("precious")
    assert ran.exit_code == 9
    assert ran.statuses() == [(CALLS[0], "ok"), (CALLS[1], "error")]
    assert json.loads((ran.workspace / "rec/t.json").read_text()) == ran.document
    assert verify(ran.workspace / "rec/t.json") == []


@pytest.mark.parametrize("what", PUT_ASIDE)
def test_attack_have_the_record_written_elsewhere(attack: Attack, what: str) -> None:
    ran = attack(PUT_ASIDE[what])
    assert (ran.exit_code, ran.document["result"]["reason"]) == (9, "tampered")
    assert ran.statuses() == [(call, "ok") for call in CALLS]
    [aside] = ran.temporary.iterdir()
    assert ran.document["result"]["error"].startswith(f"{CHANGED}; ")
    assert ran.document["result"]["error"].endswith(f"; it is '{aside}/t.json'")
    assert json.loads((aside / "t.json").read_text()) == ran.document
    assert verify(aside / "t.json") == []
    for folder in ("elsewhere", "old"):
        assert not (ran.workspace / folder / "t.json").exists()


@pytest.mark.parametrize("what", PUT_BACK)
def test_attack_take_the_journal_away_that_is_the_product(attack: Attack, what: str) -> None:
    ran = attack(PUT_BACK[what], transcript="rec/t.jsonl", journal="rec/t.jsonl")
    assert ran.exit_code == 9
    assert ran.statuses() == [(call, "ok") for call in CALLS]
    assert verify(ran.workspace / "rec/t.jsonl") == []


def test_a_folder_in_the_place_of_the_document_leaves_the_journal_for_recovery(
    attack: Attack, ci_agent: "CIAgent"
) -> None:
    ran = attack("mkdir -p rec/t.json/x")
    assert (ran.exit_code, ran.document) == (3, None)
    recovered = ci_agent("transcript", "recover", "rec/t.json")
    assert recovered.returncode == 0, recovered.stderr
    document = json.loads((ran.workspace / "rec/t.json.recovered.json").read_text())
    assert [call["status"] for call in document["tool_calls"]] == ["ok", "ok"]
    assert document["integrity"]["complete"]


@pytest.mark.parametrize("command", ["mkfifo rec/t.json", "ln -s $PWD/precious rec/t.json"])
def test_what_was_put_in_the_place_of_the_document_is_replaced_by_it(attack: Attack, command: str) -> None:
    ran = attack(command)
    assert (ran.exit_code, (ran.workspace / "rec/t.json").is_symlink()) == (0, False)
    assert json.loads((ran.workspace / "rec/t.json").read_text()) == ran.document


@pytest.mark.skipif(os.geteuid() == 0, reason="root is kept out of no folder by its mode")
def test_attack_close_the_folder_of_the_record(attack: Attack) -> None:
    ran = attack("chmod 0 rec")
    (ran.workspace / "rec").chmod(0o755)
    assert ran.exit_code == 9
    [aside] = ran.temporary.iterdir()
    assert json.loads((aside / "t.json").read_text()) == ran.document


@pytest.mark.skipif(os.geteuid() == 0, reason="root is kept out of no folder by its mode")
def test_a_folder_that_takes_no_file_any_more_leaves_the_journal_for_recovery(
    attack: Attack, ci_agent: "CIAgent"
) -> None:
    ran = attack("chmod 555 rec")
    (ran.workspace / "rec").chmod(0o755)
    assert ran.exit_code == 3
    assert ci_agent("transcript", "recover", "rec/t.json").returncode == 0
    assert verify(ran.workspace / "rec/t.json") == []


@pytest.mark.parametrize("flag", ["--answer-file=out/file", "--report=text=out/file", "--report=markdown=out/file"])
@pytest.mark.parametrize("command", ["rm -rf out", "mv out other && touch out", "mkdir -p out/file/x"])
def test_a_result_whose_place_is_gone_is_no_success_and_the_record_says_so(
    attack: Attack, workspace: Path, flag: str, command: str
) -> None:
    (workspace / "out").mkdir()
    ran = attack(command, flag)
    assert ran.exit_code == 1
    assert "out/file' cannot be written" in ran.document["result"]["error"]
    assert ran.document["result"]["final_text"] == "Done."
    assert json.loads((workspace / "rec/t.json").read_text()) == ran.document


@pytest.mark.parametrize(
    "command", ["rm lock", "mv lock other", "cp lock other && mv other lock", "rm lock && ln -s other lock"]
)
def test_attack_take_the_lock_away_so_that_another_run_can_begin(attack: Attack, command: str) -> None:
    ran = attack(command, "--lock", "lock")
    assert (ran.exit_code, ran.document["result"]["reason"]) == (9, "tampered")
    expected = f"changed while the run went on, which no tool may do: {ran.workspace}/lock"
    assert ran.document["result"]["error"] == expected


def test_a_lock_that_nobody_touched_is_no_reason_for_anything(attack: Attack) -> None:
    assert attack("true", "--lock", "lock").exit_code == 0
