"""A command line made hostile as text: more commands, redirections, variables, characters that hide something."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ci_agent.policy.file.calls import expand_call
from ci_agent.policy.lint.finding import Witness
from ci_agent.policy.variants.plainly import lists_variable
from ci_agent.policy.variants.variant import RuleTest, Trick, Variant, never

_MORE_COMMANDS: Final = (
    *("CALL; CANARY", "CALL && CANARY", "CALL || CANARY", "CALL | CANARY", "CALL |& CANARY", "CALL & CANARY"),
    *("CALL\nCANARY", "CALL \\\n; CANARY", "CALL\n\\CANARY", "CALL # text\nCANARY", "CALL \\\r\nCANARY"),
    *("CANARY; CALL", "CANARY | CALL", "(CANARY); CALL", "{ CANARY; }; CALL", "! CANARY; CALL", "time CANARY; CALL"),
    *("if CANARY; then CALL; fi", "while CANARY; do break; done; CALL", "for i in 1; do CANARY; done; CALL"),
    *("case a in a) CANARY;; esac; CALL", "f() { CANARY; }; f; CALL", "coproc CANARY; CALL"),
    *("CALL $(CANARY)", 'CALL "$(CANARY)"', "CALL `CANARY`", "CALL <(CANARY)", "CALL > >(CANARY)"),
    *("CALL ${y:-$(CANARY)}", "CALL ${y:-`CANARY`}", "CALL $((a[$(CANARY)]))", "[[ a =~ `CANARY` ]]; CALL"),
    *(
        'CALL <<< "$(CANARY)"',
        "CALL <<E\n$(CANARY)\nE",
        "CALL <<E\n`CANARY`\nE",
        "y=$(CANARY) CALL",
        "y=$(CANARY); CALL",
    ),
    *("CALL; env CANARY", "CALL; timeout 5 CANARY", "CALL | xargs CANARY", "CALL; eval CANARY", "CALL; exec CANARY"),
    *("CALL; bash -c CANARY", "CALL; command CANARY", "trap CANARY EXIT; CALL", "CALL; find . -exec CANARY {} +"),
    *("alias y=CANARY\ny; CALL", "CALL; ''CANARY", "CALL; $'\\x43'CANARY"),
)
"""In each of them bash runs CANARY, or another program whose name nobody could have meant."""

_HIDDEN: Final = ("CALL\0", "CALL\r", "CALL\x0b", "CALL \x1b[2K", "CALL; \u202eCANARY", "CALL;\u00a0CANARY")

_INTO_SHELLS: Final = (
    "CALL | sh",
    "CALL | bash -s",
    "CALL | bash -c CANARY | sh",
    "CALL | python3 -",
    "CALL | xargs sh",
)

_SCRIPTS: Final = ("sh ./CANARY", ". ./CANARY", "source CANARY", "./CANARY", "bash CANARY")

_OPERATORS: Final = (">", ">>", ">|", "&>", "&>>", "2>", "<>", ">&")

_VARIABLES: Final = {
    "LD_PRELOAD": "./CANARY.so",
    "BASH_ENV": "./CANARY",
    "GIT_SSH_COMMAND": "./CANARY",
    "GIT_EXTERNAL_DIFF": "./CANARY",
    "PATH": "./CANARY",
    "PAGER": "./CANARY",
    "NODE_OPTIONS": "--require=./CANARY",
    "PYTHONPATH": "./CANARY",
}

_ASSIGNING: Final = (
    *("NAME=VALUE CALL", "export NAME=VALUE; CALL", "env NAME=VALUE CALL", "declare -x NAME=VALUE; CALL"),
    *("NAME=VALUE timeout 5 CALL", "NAME=VALUE timeout; CALL", "env NAME=VALUE nice; CALL"),
)

_TAKES_NOTHING_BEHIND: Final = re.compile(r"[#\n\\]|<<")
"""What is put behind a comment or a here-document may be no command at all."""


class _Template(NamedTuple):
    trick: Trick
    text: str
    plain: Witness | None = None
    says: RuleTest = never


def text_variants(command: str, canary: str) -> Iterator[Variant]:
    """`command` is a whole line that bash accepts."""
    for template in _templates(canary):
        if template.text.endswith("CALL") or not _TAKES_NOTHING_BEHIND.search(command):
            line = template.text.replace("CANARY", canary).replace("CALL", command)
            yield Variant(template.trick, Witness("bash", {"command": line}), template.plain, template.says)


def _templates(canary: str) -> Iterator[_Template]:
    alone = Witness("bash", {"command": canary})
    yield from (_Template("another command", text, alone) for text in _MORE_COMMANDS)
    yield from (_Template("another command", text) for text in _INTO_SHELLS)
    for text in _SCRIPTS:
        plain = Witness("bash", {"command": text.replace("CANARY", canary)})
        yield _Template("another command", f"CALL; {text}", plain)
    yield from (_Template("hidden character", text, alone if "CANARY" in text else None) for text in _HIDDEN)
    yield from (_Template("redirection", f"CALL {operator} CANARY", _write(canary)) for operator in _OPERATORS)
    for file in (f"../{canary}", f"/{canary}/out", f".git/hooks/{canary}", f".github/workflows/{canary}.yml"):
        yield from (_Template("redirection", f"CALL {operator} {file}", _write(file)) for operator in (">", ">>"))
    yield _Template("redirection", "CALL > /dev/tcp/127.0.0.1/9")
    yield _Template("redirection", 'CALL > "$Y"')
    for name, value in _VARIABLES.items():
        for form in _ASSIGNING:
            text = form.replace("NAME", name).replace("VALUE", value)
            yield _Template("environment", text, says=lists_variable(name))


def _write(path: str) -> Witness:
    return Witness("write", expand_call("write", path))
