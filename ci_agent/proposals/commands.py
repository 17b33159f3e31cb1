"""Proposals as commands for bash, git and gh: to be read by a person, or run by a shell that may."""

import shlex
from collections.abc import Iterator
from typing import assert_never

from ci_agent.policy.proposal_bounds import PatchBounds, ProposalBounds
from ci_agent.proposals.branch import AUTHOR, AUTHOR_EMAIL, branch_name, commit_message
from ci_agent.proposals.file import Comment, Issue, Labels, Patch, ProposalsFile
from ci_agent.proposals.target import Target
from ci_agent.terminal import printable


def command_lines(file: ProposalsFile, bounds: ProposalBounds, target: Target) -> Iterator[str]:
    """A script for bash. No line of it begins with what a model wrote, and none holds a command to a CI runner."""
    yield "set -euo pipefail"
    for proposal in file.proposals:
        match proposal:
            case Comment():
                yield f"{_fed(proposal.body)} gh issue comment {target.number} --repo {target.repository} --body-file -"
            case Labels():
                flags = " ".join(f"--add-label={quoted(label)}" for label in proposal.labels)
                yield f"gh issue edit {target.number} --repo {target.repository} {flags}"
            case Issue():
                title = quoted(proposal.title)
                yield f"{_fed(proposal.body)} gh issue create --repo {target.repository} --title={title} --body-file -"
            case Patch():
                if bounds.patch:
                    yield from _patch_lines(file, proposal, bounds.patch, target)
            case _:
                assert_never(proposal)


def _patch_lines(file: ProposalsFile, patch: Patch, bounds: PatchBounds, target: Target) -> Iterator[str]:
    branch, into = branch_name(file, bounds), shlex.quote(target.into or "")
    identity = " ".join(
        f"GIT_{who}_NAME={quoted(AUTHOR)} GIT_{who}_EMAIL={quoted(AUTHOR_EMAIL)}" for who in ("AUTHOR", "COMMITTER")
    )
    yield 'GIT_INDEX_FILE="$(mktemp -d)/index"; export GIT_INDEX_FILE'
    yield f"git read-tree {patch.base}"
    yield f"{_fed(patch.diff)} git apply --cached --whitespace=nowarn -"
    yield (
        f"commit=$({_fed(commit_message(file, patch))} "
        f'env {identity} git commit-tree "$(git write-tree)" -p {patch.base} -F -)'
    )
    yield f'git push --no-verify --force-with-lease=refs/heads/{branch}: origin "$commit:refs/heads/{branch}"'
    yield (
        f"{_fed(patch.body)} gh pr create --repo {target.repository} --head {branch} --base {into} "
        f"--title={quoted(patch.title)} --body-file -"
    )


def quoted(text: str) -> str:
    """The text as one word of bash, on one line, with whatever is invisible spelled as bytes."""
    if text.isascii() and text.isprintable() and "##[" not in text:
        return shlex.quote(text)
    escaped = "".join(map(_escaped, text)).replace("##[", r"#\x23[")
    return f"$'{escaped}'"


def _fed(text: str) -> str:
    return f"printf %s {quoted(text)} |"


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if char == "\n":
        return "\\n"
    if printable(char) == char:
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode())
