"""Which sandbox is there, and how a command is put into it."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ci_agent.errors import ConfigurationError
from ci_agent.sandbox import landlock, seccomp
from ci_agent.sandbox.access import Access
from ci_agent.sandbox.bubblewrap import find_bubblewrap, why_unusable, wrapper_for
from ci_agent.sandbox.confinement import Confinement
from ci_agent.sandbox.ruleset import ruleset_for

Requested: TypeAlias = Literal["auto", "required", "off"]
Kind: TypeAlias = Literal["landlock", "bubblewrap", "none"]


_WITHOUT_FILTERS: Final = (
    "this system takes no filters for system calls, so commands without a grant of the network can use what is no TCP: "
    "UDP, name servers, MPTCP; and all can set limits and priorities of ci-agent"
)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What is in force for the commands of a run."""

    kind: Kind
    abi: int | None = None
    """Version of Landlock's interface."""
    program: str | None = None
    """Where bubblewrap is."""
    why_none: str | None = None
    """What was looked for when there is none."""
    gap: str | None = None
    """What this kind holds elsewhere and cannot hold here."""

    def __str__(self) -> str:
        return f"landlock (ABI {self.abi})" if self.kind == "landlock" else self.kind


def find_sandbox(requested: Requested, search_path: str, *, landlock_abi: int | None = None) -> Sandbox:
    """The best sandbox that is to be had; ConfigurationError when one is required and none is.

    `search_path` is where bubblewrap is looked for. `landlock_abi` None: what the kernel says.
    """
    if requested == "off":
        return Sandbox("none")
    abi = landlock.abi() if landlock_abi is None else landlock_abi
    if abi > 0:
        return Sandbox("landlock", abi=abi, gap=None if seccomp.is_available() else _WITHOUT_FILTERS)
    program = find_bubblewrap(search_path)
    problem = why_unusable(program) if program else "it is not on PATH"
    if program and problem is None:
        return Sandbox("bubblewrap", program=program)
    why = f"this kernel offers no Landlock (Linux 5.13 or later has it), and bubblewrap cannot be used: {problem}"
    if requested == "required":
        raise ConfigurationError(f"a sandbox is required and there is none: {why}. --sandbox auto runs without one")
    return Sandbox("none", why_none=why)


def confine(sandbox: Sandbox, access: Access) -> Confinement | None:
    """How a command with this access is started; None: unconfined, for there is no sandbox.

    Raises TooManyEntriesError when what is hidden cannot be left out.
    """
    if sandbox.abi is not None:
        return ruleset_for(access, sandbox.abi)
    if sandbox.program is not None:
        return wrapper_for(access, sandbox.program)
    return None
