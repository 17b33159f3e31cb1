"""What a run has proposed so far: each proposal checked as it is made, so that the model can mend it."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ci_agent.errors import ToolError
from ci_agent.json_types import JsonObject
from ci_agent.policy.proposal_bounds import ProposalBounds
from ci_agent.proposals.changes import patch_of_checkout
from ci_agent.proposals.check import HoldsSecret, problems_of, with_prefixes
from ci_agent.proposals.file import PROPOSAL, PROPOSALS_SCHEMA, Patch, Proposal
from ci_agent.proposals.private_repository import GitError, private_repository
from ci_agent.spelling import counted, listed

_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "comment": ("body",),
    "label": ("labels",),
    "issue": ("title", "body"),
    "patch": ("title", "body"),
}
"""Arguments of a call of `propose` by its kind; it takes no others."""


class ProposalsOfRun:
    """Grows by `propose`; `document` is what the file of the run's end says."""

    def __init__(
        self, bounds: ProposalBounds, workspace: Path, holds_secret: HoldsSecret, environment: Mapping[str, str]
    ) -> None:
        self.bounds = bounds
        self.proposals: tuple[Proposal, ...] = ()
        self._workspace = workspace
        self._holds_secret = holds_secret
        self._environment = environment
        self._lock = threading.Lock()

    def propose(self, arguments: JsonObject) -> tuple[str, JsonObject]:
        """Take a proposal down; ToolError says everything that is wrong with it. A second patch replaces the first."""
        kind = arguments["kind"]
        _refuse_other_arguments(kind, arguments)
        with self._lock:
            proposal, left_out = self._made(kind, arguments)
            before = [one for one in self.proposals if not (isinstance(one, Patch) and isinstance(proposal, Patch))]
            problems = problems_of(self.bounds, [*before, proposal], self._holds_secret)
            if problems:
                raise ToolError(f"This cannot be proposed: {'; '.join(problems)}.")
            self.proposals = (*before, proposal)
        note = f" Left out, as the policy's paths do not cover it: {listed(left_out, 10)}." if left_out else ""
        details = {"proposal": proposal.model_dump(), "left_out": list(left_out[:100])}
        return f"Noted: {kind}. The run proposes {counted(len(self.proposals), 'thing')} now.{note}", details

    def document(self, *, run_id: str, exit_code: int, policy: str, sha256: str, repository: str | None) -> JsonObject:
        return {
            "schema": PROPOSALS_SCHEMA,
            "run": {"id": run_id, "exit_code": exit_code},
            "policy": {"name": policy, "sha256": sha256},
            "repository": repository,
            "proposals": [proposal.model_dump() for proposal in self.proposals],
        }

    def _made(self, kind: str, arguments: JsonObject) -> tuple[Proposal, tuple[str, ...]]:
        more, left_out = self._patch() if kind == "patch" else ({}, ())
        try:
            proposal = PROPOSAL.validate_python({**arguments, **more})
            made = with_prefixes(self.bounds, proposal)
            return PROPOSAL.validate_python(made.model_dump()), left_out
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)[:5]
            problems = "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in found)
            raise ToolError(f"This cannot be proposed: {problems}.") from error

    def _patch(self) -> tuple[JsonObject, tuple[str, ...]]:
        """What the checkout has become, as the diff of a patch, and what of that is left out."""
        if self.bounds.patch is None:
            raise ToolError("The policy lets no patch be proposed.")
        try:
            with private_repository(self._workspace, self._environment) as repository:
                patch = patch_of_checkout(repository, self.bounds.patch)
        except GitError as error:
            raise ToolError(f"No patch can be made of the checkout: {error}.") from error
        if not patch.files:
            changed = f"; changed are {listed(patch.left_out, 10)}" if patch.left_out else ""
            paths = listed([glob for globs in self.bounds.patch.paths for glob in globs], 10)
            raise ToolError(f"No file is changed that a patch may have ({paths}){changed}.")
        return {"base": patch.base, "diff": patch.diff}, patch.left_out


def bounds_for_model(bounds: ProposalBounds) -> str:
    """What may be proposed, in a few words for each kind."""
    said = []
    if bounds.comment:
        said.append(f"comment: at most {bounds.comment.max_count}, {bounds.comment.max_chars} characters each")
    if bounds.label:
        said.append(f"label: at most {bounds.label.max_count} of {listed(bounds.label.names, 50)}")
    if bounds.issue:
        said.append(f"issue: at most {bounds.issue.max_count}, {bounds.issue.max_chars} characters each")
    if bounds.patch:
        globs = listed([glob for globs in bounds.patch.paths for glob in globs], 20)
        said.append(f"patch: one, of {globs}, {bounds.patch.max_bytes} bytes of diff")
    return "; ".join(said) + "."


def _refuse_other_arguments(kind: str, arguments: JsonObject) -> None:
    needed = _NEEDED[kind]
    if missing := [name for name in needed if name not in arguments]:
        raise ToolError(f"A {kind} needs {listed(missing)}.")
    if other := [name for name in arguments if name not in (*needed, "kind")]:
        raise ToolError(f"A {kind} takes no {listed(other)}; it has {listed(needed)}.")
