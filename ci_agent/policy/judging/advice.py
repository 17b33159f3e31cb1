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
    commands = [[word.literal for word in fact.words[:2]] for fact in facts if isinstance(fact, ExecFact)]
    if any(command[:1] == ["mktemp"] for command in commands):
        return "Name the file yourself, in a folder that the rules let you write, in place of what mktemp prints"
    if any(command in (["git", "describe"], ["git", "tag"]) for command in commands) and " of git" in why:
        return 'A tag may begin with a dash: begin the revision with refs/tags/, end with -- ("refs/tags/$t..HEAD" --)'
    return "Spell the value, or print it by a call of its own and spell it in the next"
