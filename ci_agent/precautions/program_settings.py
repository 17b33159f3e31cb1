"""The settings of git whose values it runs as programs (git-config(1)), and what can stand in their place."""

import re
from typing import Final

_INSTEAD: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), value)
    for pattern, value in (
        # Without a program git goes on as if there were none.
        (r"filter\..*\.(clean|smudge|process)", ""),
        (r"filter\..*\.required", "false"),
        (r"credential\.(.*\.)?helper", ""),
        (r"trailer\..*\.(cmd|command)", ""),
        (r"tar\..*\.command", ""),
        (r"interactive\.difffilter", ""),
        (r"diff\..*\.textconv", "cat"),
        (r"submodule\..*\.update", "checkout"),
        (r"core\.sshcommand", "ssh"),
        (r"gpg\.program|gpg\.openpgp\.program", "gpg"),
        (r"gpg\.x509\.program", "gpgsm"),
        (r"gpg\.ssh\.program", "ssh-keygen"),
        (r"lfs\.(.*\.)?standalonetransferagent", ""),
        # These cannot be taken away, only be made to fail: the command then says that it cannot run the program.
        (r"alias\..*|diff\.external|diff\..*\.command|merge\..*\.driver", ""),
        (r"remote\..*\.(vcs|uploadpack|receivepack)", ""),
        (r"lfs\.extension\..*\.(clean|smudge)|lfs\.customtransfer\..*\.path", ""),
        (r"core\.(gitproxy|alternaterefscommand)|(merge|diff)tool\..*\.(cmd|path)|guitool\..*\.cmd", ""),
        (r"(browser|man)\..*\.(cmd|path)|sendemail\..*cmd|hook\..*\.command|gpg\.ssh\.defaultkeycommand", ""),
        (r"sequence\.editor|core\.(editor|pager|askpass)|pager\..*|imap\.tunnel|web\.browser", ""),
    )
)

_WORDS: Final = re.compile(
    rb"include|filter|clean|smudge|process|required|helper|cmd|command|textconv|(?<![a-z])update|uploadpack|receivepack"
    rb"|program|alias|external|driver|vcs|gitproxy|tool|browser|\[man|editor|pager|askpass|tunnel|worktree|transfer"
    rb"|recentobjectshook",
    re.IGNORECASE,
)
"""One of them is in every file that has such a setting, or takes in another file: names of sections and keys are
written as they are, without escapes."""

_LARGE_FILES: Final = re.compile(r"git-lfs (clean|smudge( --skip)?) -- %f|git-lfs filter-process( --skip)?|true")
"""What `git lfs install --local` writes, as checkouts in CI do: a program of the machine, under a name of its own."""


def may_matter(configuration: bytes) -> bool:
    """Whether git need be asked what this text says; when not, it names no program and no working tree, and includes
    nothing."""
    return _WORDS.search(configuration) is not None


def instead_of(key: str, value: str) -> str | None:
    """What git shall read in place of this value; None: what is there is harmless. Of a key, as git lists it, only what
    a subsection is called may have capitals."""
    found = next((instead for pattern, instead in _INSTEAD if pattern.fullmatch(key)), None)
    return None if found is None or _is_harmless(key, value) else found


def key_to_set(key: str) -> str:
    """By which the value in place of this key's counts, although it is the last that git reads. Of the programs of a
    remote the first counts, so the remote is left to a program of another name, which there is not."""
    return re.sub(r"^(remote\..*)\.(uploadpack|receivepack)$", r"\1.vcs", key, flags=re.DOTALL)


def runs_regardless(key: str) -> bool:
    """Whether git runs all that a key names, so that one more value changes nothing."""
    return key == "gc.recentobjectshook"


def included_path(key: str, value: str) -> str | None:
    """The file that this setting takes in, whatever the condition; None: it is another setting."""
    return value if value and re.fullmatch(r"include\.path|includeif\..*\.path", key, re.DOTALL) else None


def _is_harmless(key: str, value: str) -> bool:
    if key.startswith("submodule."):
        return not value.startswith("!")
    if key.startswith("remote."):
        return value in ("git-upload-pack", "git-receive-pack")
    return key.startswith("filter.lfs.") and _LARGE_FILES.fullmatch(value) is not None
