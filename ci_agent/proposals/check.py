"""Whether proposals keep to the policy's bounds: asked when one is made, and again before it is applied."""

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from ci_agent.policy.proposal_bounds import ProposalBounds
from ci_agent.proposals.file import Comment, Issue, Labels, Patch, Proposal
from ci_agent.proposals.inert import inert_line, inert_markdown
from ci_agent.spelling import counted, listed

HoldsSecret = Callable[[str], bool]

_BODY_JOINT = "\n\n"
_TITLE_JOINT = " "


def with_prefixes(bounds: ProposalBounds, proposal: Proposal) -> Proposal:
    """As it is written down: inert texts behind the policy's prefixes."""
    match proposal:
        case Comment():
            prefix = bounds.comment.prefix if bounds.comment else ""
            return proposal.model_copy(update={"body": _joined(prefix, _BODY_JOINT, inert_markdown(proposal.body))})
        case Issue() | Patch():
            of_kind = bounds.issue if isinstance(proposal, Issue) else bounds.patch
            title = _joined(of_kind.title_prefix if of_kind else "", _TITLE_JOINT, inert_line(proposal.title))
            return proposal.model_copy(update={"title": title, "body": inert_markdown(proposal.body)})
        case Labels():
            return proposal.model_copy(update={"labels": list(dict.fromkeys(proposal.labels))})
        case _:
            assert_never(proposal)


def problems_of(bounds: ProposalBounds, proposals: Sequence[Proposal], holds_secret: HoldsSecret) -> list[str]:
    """Every way in which all that a run proposes breaks the bounds; each names what would keep to them."""
    return [*_counts(bounds, proposals), *(one for each in proposals for one in _problems(bounds, each, holds_secret))]


def _counts(bounds: ProposalBounds, proposals: Sequence[Proposal]) -> Iterator[str]:
    for kind in dict.fromkeys(proposal.kind for proposal in proposals):
        if kind not in bounds.kinds:
            yield f"the policy lets no {kind} be proposed: {listed(bounds.kinds) if bounds.kinds else 'nothing'} may be"
    labels = [label for one in proposals if isinstance(one, Labels) for label in one.labels]
    for what, found, allowed in (
        ("comment", _count(proposals, Comment), bounds.comment.max_count if bounds.comment else 0),
        ("issue", _count(proposals, Issue), bounds.issue.max_count if bounds.issue else 0),
        ("label", len(labels), bounds.label.max_count if bounds.label else 0),
        ("patch", _count(proposals, Patch), 1),
    ):
        if 0 < allowed < found:
            yield f"a run may propose {counted(allowed, what)} at most, and this would make {found}"


def _count(proposals: Sequence[Proposal], kind: type[Comment | Issue | Patch]) -> int:
    return sum(isinstance(proposal, kind) for proposal in proposals)


def _problems(bounds: ProposalBounds, proposal: Proposal, holds_secret: HoldsSecret) -> Iterator[str]:
    match proposal:
        case Comment():
            if bounds.comment:
                yield from _body(proposal.body, bounds.comment.prefix, bounds.comment.max_chars)
        case Issue() | Patch():
            of_kind = bounds.issue if isinstance(proposal, Issue) else bounds.patch
            if of_kind:
                yield from _title(proposal.title, of_kind.title_prefix, of_kind.max_title_chars)
                yield from _body(proposal.body, "", of_kind.max_chars)
        case Labels():
            for label in proposal.labels:
                if bounds.label and label not in bounds.label.names:
                    yield f"the label {label!r} may not be proposed: the labels are {listed(bounds.label.names)}"
        case _:
            assert_never(proposal)
    if isinstance(proposal, Patch) and bounds.patch and len(proposal.diff.encode()) > bounds.patch.max_bytes:
        yield f"the patch has {len(proposal.diff.encode())} bytes, and {bounds.patch.max_bytes} are the most"
    if any(holds_secret(text) for text in _texts(proposal)):
        yield f"the {proposal.kind} holds a secret, or what looks like one: leave it out"


def _texts(proposal: Proposal) -> tuple[str, ...]:
    match proposal:
        case Comment():
            return (proposal.body,)
        case Issue():
            return (proposal.title, proposal.body)
        case Patch():
            return (proposal.title, proposal.body, proposal.diff)
        case Labels():
            return tuple(proposal.labels)
        case _:
            assert_never(proposal)


def _body(body: str, prefix: str, max_chars: int) -> Iterator[str]:
    own = body.removeprefix(f"{prefix}{_BODY_JOINT}") if prefix else body
    if prefix and own == body:
        yield f"the body does not begin with {prefix!r} and an empty line"
    elif not own or inert_markdown(own) != own:
        yield "the body is empty, or holds what GitHub would act on or not show"
    if len(body) > max_chars:
        yield f"the body has {len(body)} characters, and {max_chars} are the most"


def _title(title: str, prefix: str, max_chars: int) -> Iterator[str]:
    own = title.removeprefix(f"{prefix}{_TITLE_JOINT}") if prefix else title
    if prefix and own == title:
        yield f"the title does not begin with {prefix!r} and a blank"
    elif not own or inert_line(own) != own:
        yield "the title is empty, or holds what GitHub would act on or not show"
    if len(title) > max_chars:
        yield f"the title has {len(title)} characters, and {max_chars} are the most"


def _joined(prefix: str, joint: str, text: str) -> str:
    return f"{prefix}{joint}{text}" if prefix else text
