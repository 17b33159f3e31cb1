"""A proposed patch as a commit on a new branch: checked without a work tree, pushed without force."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from ci_agent.policy.proposal_bounds import PatchBounds
from ci_agent.proposals.changes import index_problems
from ci_agent.proposals.file import Patch, ProposalsFile
from ci_agent.proposals.github_api import require_safe_url
from ci_agent.proposals.private_repository import GitError, PrivateRepository

DEFAULT_SERVER_URL: Final = "https://github.com"

AUTHOR: Final = "github-actions[bot]"
AUTHOR_EMAIL: Final = "41898282+github-actions[bot]@users.noreply.github.com"
"""Whom GitHub shows for what a workflow's own token does (actions/checkout, README)."""

_IDENTITY: Final = {
    "GIT_AUTHOR_NAME": AUTHOR,
    "GIT_AUTHOR_EMAIL": AUTHOR_EMAIL,
    "GIT_COMMITTER_NAME": AUTHOR,
    "GIT_COMMITTER_EMAIL": AUTHOR_EMAIL,
}

_BINARY: Final = re.compile("^GIT binary patch", re.MULTILINE)

_SHOWN_OF_RUN_ID: Final = 13


def branch_name(file: ProposalsFile, bounds: PatchBounds) -> str:
    return f"{bounds.branch_prefix}{file.run.id[:_SHOWN_OF_RUN_ID]}"


def commit_message(file: ProposalsFile, patch: Patch) -> str:
    """Of what the model wrote the title alone: trailers in a body would speak for others."""
    return f"{patch.title}\n\nProposed by run {file.run.id} of ci-agent.\n"


def patch_problems(repository: PrivateRepository, patch: Patch, bounds: PatchBounds) -> Iterator[str]:
    """Why the patch is none that may be applied here. It is applied to an index of our own; no file is written."""
    if patch.base != repository.head:
        yield f"the patch is against {patch.base}, and {repository.head} is checked out here"
        return
    if _BINARY.search(patch.diff):  # it may unpack to a thousand times its size
        yield "the patch has binary parts, and a patch changes text alone"
        return
    try:
        repository.git("read-tree", "--reset", patch.base)
        repository.git("apply", "--cached", "--whitespace=nowarn", "-", stdin=patch.diff.encode())
        problems = list(index_problems(repository, patch.base, bounds))
        unchanged = not problems and _tree(repository) == repository.text("rev-parse", f"{patch.base}^{{tree}}")
    except GitError as error:
        yield f"the patch does not apply: {error}"
        return
    yield from problems[:5]
    if unchanged:
        yield "the patch changes nothing"


def commit(repository: PrivateRepository, file: ProposalsFile, patch: Patch) -> str:
    """The id of a commit of what `patch_problems` has put into the index."""
    message = commit_message(file, patch).encode()
    argv = ("commit-tree", _tree(repository), "-p", patch.base, "-F", "-")
    return repository.git(*argv, stdin=message, more=_IDENTITY).decode("ascii").strip()


def push(repository: PrivateRepository, commit_id: str, branch: str, url: str, token: str) -> None:
    """Create the branch; GitError when there is one of this name, or when the server refuses."""
    with _credential(token) as descriptor:
        repository.git(
            "push",
            "--quiet",
            "--no-verify",
            # The lease says that there is no such branch: the push can create it, and nothing else.
            f"--force-with-lease=refs/heads/{branch}:",
            "--",
            url,
            f"{commit_id}:refs/heads/{branch}",
            settings=(
                "credential.helper=",
                f"credential.helper=!cat /dev/fd/{descriptor}; :",
                "http.followRedirects=false",
                "protocol.allow=never",
                f"protocol.{url.partition(':')[0]}.allow=always",
            ),
            descriptors=(descriptor,),
        )


def clone_url(repository: str, environment: Mapping[str, str]) -> str:
    server = require_safe_url(environment.get("GITHUB_SERVER_URL") or DEFAULT_SERVER_URL, "GITHUB_SERVER_URL")
    return f"{server}/{repository}.git"


def _tree(repository: PrivateRepository) -> str:
    return repository.text("write-tree")


@contextmanager
def _credential(token: str) -> Iterator[int]:
    """A descriptor on which git's credential helper finds the token: neither an argument nor a variable holds it."""
    reading, writing = os.pipe()
    try:
        os.write(writing, f"username=x-access-token\npassword={token}\n".encode())
        os.close(writing)
        yield reading
    finally:
        os.close(reading)
