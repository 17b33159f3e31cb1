"""Proposals applied: a file that anybody may have written is checked again, whole, before anything of it is done."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar, assert_never

from ci_agent.policy.proposal_bounds import PatchBounds
from ci_agent.policy.rules import PolicySource
from ci_agent.proposals.branch import branch_name, commit, patch_problems, push
from ci_agent.proposals.check import HoldsSecret, problems_of
from ci_agent.proposals.file import Comment, Issue, Labels, Patch, Proposal, ProposalsFile
from ci_agent.proposals.github_api import GitHub, GitHubError
from ci_agent.proposals.private_repository import GitError, PrivateRepository
from ci_agent.proposals.target import Target

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one proposal."""

    what: str
    problem: str | None = None
    """Why it could not be done; None: it was."""


@dataclass(frozen=True, slots=True)
class Means:
    """What it takes to do things outside."""

    github: GitHub
    repository: PrivateRepository | None
    """None: there is no patch."""
    remote_url: str
    """Where branches are pushed to."""
    token: str = field(repr=False)


def file_problems(
    file: ProposalsFile,
    source: PolicySource,
    target: Target,
    repository: PrivateRepository | None,
    holds_secret: HoldsSecret,
) -> Iterator[str]:
    """Everything that keeps the file from being applied under this policy."""
    if file.policy.sha256 != source.sha256:
        yield f"it was made under another policy (sha256 {file.policy.sha256}, and {source.name} is {source.sha256})"
    if file.run.exit_code != 0:
        yield f"its run ended with exit code {file.run.exit_code}, and what such a run proposes is not applied"
    if file.repository not in {None, target.repository}:
        yield f"it is about the repository {file.repository}, not about {target.repository}"
    problems = problems_of(source.proposals, file.proposals, holds_secret)
    yield from problems
    for proposal in file.proposals:
        # What is too large or not allowed at all is not given to git.
        if not problems and isinstance(proposal, Patch) and repository and source.proposals.patch:
            yield from patch_problems(repository, proposal, source.proposals.patch)


def described(proposal: Proposal, file: ProposalsFile, source: PolicySource, target: Target) -> str:
    """What applying it does, in a few words of our own."""
    match proposal:
        case Comment():
            return f"comment on #{target.number} ({len(proposal.body)} characters)"
        case Labels():
            return f"label #{target.number} {', '.join(proposal.labels)}"
        case Issue():
            return f"open the issue {proposal.title!r}"
        case Patch():
            branch = branch_name(file, source.proposals.patch or PatchBounds(paths=()))
            return f"open the pull request {proposal.title!r} from {branch} into {target.into}"
        case _:
            assert_never(proposal)


def apply_proposals(file: ProposalsFile, source: PolicySource, target: Target, means: Means) -> Iterator[Applied]:
    """Do what a file proposes that has no problems. What fails does not keep the rest from being done."""
    for proposal in file.proposals:
        what = described(proposal, file, source, target)
        try:
            made = _apply(proposal, file, source, target, means)
            yield Applied(f"{what}  {made}".rstrip())
        except (GitHubError, GitError) as error:
            yield Applied(what, str(error))


def _apply(proposal: Proposal, file: ProposalsFile, source: PolicySource, target: Target, means: Means) -> str:
    match proposal:
        case Comment():
            return means.github.comment(_needed(target.number), proposal.body)
        case Labels():
            return means.github.add_labels(_needed(target.number), proposal.labels)
        case Issue():
            return means.github.open_issue(proposal.title, proposal.body)
        case Patch():
            return _apply_patch(proposal, file, source, target, means)
        case _:
            assert_never(proposal)


def _apply_patch(patch: Patch, file: ProposalsFile, source: PolicySource, target: Target, means: Means) -> str:
    repository, bounds = _needed(means.repository), _needed(source.proposals.patch)
    branch = branch_name(file, bounds)
    commit_id = commit(repository, file, patch)
    push(repository, commit_id, branch, means.remote_url, means.token)
    into = _needed(target.into)
    return means.github.open_pull_request(title=patch.title, body=patch.body, branch=branch, into=into)


def _needed(value: Value | None) -> Value:
    if value is None:
        raise AssertionError("applied without having been checked")
    return value
