"""What the model can write in place of a call of which nobody knows what it would do."""

import re
from collections.abc import Sequence
from typing import Final

from ci_agent.policy.facts import ExecFact, Fact, UnknownFact
from ci_agent.steering_names import RUNNER_COMMAND_FILES

_RUNNER_FILE: Final = re.compile(rf"\$\{{?(?:{'|'.join(RUNNER_COMMAND_FILES)})\b")
_FILE: Final = re.compile(r"which file \S.* means is not known")
_OPTION: Final = re.compile(r"\S.* may be an option of \S+(?: \S+)*")


def advice(unknown: UnknownFact, facts: Sequence[Fact]) -> str:
    """A sentence for the reason of a denial; empty where the reason says it all."""
    why = unknown.why
    if _RUNNER_FILE.search(why):
        return "The files that steer the runner are written by no call: print the value instead"
    if not (_FILE.fullmatch(why) or _OPTION.fullmatch(why)):
        return ""
    if any(isinstance(fact, ExecFact) and fact.words[0].literal == "mktemp" for fact in facts):
        return "Name the file yourself, in a folder that the rules let you write, in place of what mktemp prints"
    return "Spell the value, or print it by a call of its own and spell it in the next"
