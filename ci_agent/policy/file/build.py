"""A policy document becomes rules in plain data, and joins those that it extends."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Final, TypeVar

from ci_agent.hooks import Effect, OnDenied
from ci_agent.json_types import JsonObject
from ci_agent.policy.file.calls import expand_call
from ci_agent.policy.file.document import PolicyDocument, ProposalsModel, RuleModel, TestModel
from ci_agent.policy.proposal_bounds import (
    NOTHING_TO_PROPOSE,
    CommentBounds,
    IssueBounds,
    LabelBounds,
    PatchBounds,
    ProposalBounds,
    tightest_proposals,
)
from ci_agent.policy.rules import Examples, Limits, PolicySource, PolicyTest, Rule, tightest_limits
from ci_agent.strict_yaml import YamlDocument
from ci_agent.workspace import real_path, way

Value = TypeVar("Value")

_STRICTNESS: Final[Sequence[OnDenied]] = ("record", "fail", "stop")

_NOT_IN_DIGEST: Final = frozenset(("source", "examples"))
"""Fields of a rule that change no decision."""

_RULE_FIELDS: Final = tuple(field.name for field in fields(Rule) if field.name not in _NOT_IN_DIGEST)
_RULE_VALUES: Final = attrgetter(*_RULE_FIELDS)
_LIMIT_FIELDS: Final = tuple(field.name for field in fields(Limits))
_LIMIT_VALUES: Final = attrgetter(*_LIMIT_FIELDS)


@dataclass(frozen=True, slots=True)
class Base:
    """A policy that another one extends."""

    prefix: str
    """What the ids of its own rules begin with in the policy that extends it."""
    source: PolicySource


def build_policy(document: YamlDocument, model: PolicyDocument, name: str, path: Path | None) -> PolicySource:
    """The policy of this file alone; its digest is set by `extend`."""
    return PolicySource(
        name=name,
        sha256="",
        description=model.description,
        rules=tuple(_rule(rule, source) for rule, source in _with_sources(document, "rules", model.rules or [])),
        limits=Limits(**model.limits.model_dump()) if model.limits else Limits(),
        proposals=_proposals(model.proposals) if model.proposals else NOTHING_TO_PROPOSE,
        on_denied=model.on_denied or "record",
        tests=tuple(_test(test, source) for test, source in _with_sources(document, "tests", model.tests or [])),
        files=(str(real_path(path)),) if path else (),
        links=tuple(_links(path)) if path else (),
    )


def extend(source: PolicySource, bases: Sequence[Base]) -> PolicySource:
    """With the rules of all bases before its own, the tightest limits, the strictest `on_denied`, and its digest.

    ValueError for bounds of proposals that cannot all hold."""
    rules = {rule.id: rule for base in bases for rule in _inherited(base)}
    policies = [*(base.source for base in bases), source]
    extended = replace(
        source,
        rules=(*rules.values(), *source.rules),
        limits=tightest_limits(policy.limits for policy in policies),
        proposals=tightest_proposals(policy.proposals for policy in policies),
        on_denied=max((policy.on_denied for policy in policies), key=_STRICTNESS.index),
        files=tuple(dict.fromkeys(file for policy in (source, *policies) for file in policy.files)),
        links=tuple(dict.fromkeys(link for policy in (source, *policies) for link in policy.links)),
    )
    return replace(extended, sha256=_digest(extended))


def _links(path: Path) -> Iterator[str]:
    return filter(os.path.islink, way(os.getcwd(), str(path)))


def _rule(model: RuleModel, source: str) -> Rule:
    return Rule(
        id=model.id,
        effect="deny" if model.allow is None else "allow",
        tools=tuple(model.allow or model.deny or ()),
        source=source,
        command=_tuple(model.command),
        paths=_tuple(model.paths),
        env=_tuple(model.env),
        has=_tuple(model.has),
        path=_tuple(model.path),
        host=_tuple(model.host),
        scheme=_tuple(model.scheme),
        port=_tuple(model.port),
        method=_tuple(model.method),
        args=model.args,
        only=model.only,
        max_calls=model.max_calls,
        because=model.because,
        instead=model.instead,
        on_denied=model.on_denied,
        examples=_examples(model),
    )


_NO_EXAMPLES: Final = Examples()


def _examples(model: RuleModel) -> Examples:
    if model.examples is None:
        return _NO_EXAMPLES
    return Examples(_tuple(model.examples.match) or (), _tuple(model.examples.no_match) or ())


def _test(model: TestModel, source: str) -> PolicyTest:
    ((tool, written),) = (model.allow or model.deny or {}).items()
    effect: Effect = "deny" if model.allow is None else "allow"
    return PolicyTest(effect, tool, expand_call(tool, written), model.by, source)


def _proposals(model: ProposalsModel) -> ProposalBounds:
    """What is not written has its default."""
    written = model.model_dump(exclude_none=True)
    patch, label = written.get("patch"), written.get("label")
    return ProposalBounds(
        comment=CommentBounds(**written["comment"]) if model.comment else None,
        label=LabelBounds(**{**label, "names": tuple(label["names"])}) if label else None,
        issue=IssueBounds(**written["issue"]) if model.issue else None,
        patch=PatchBounds(**{**patch, "paths": (tuple(patch["paths"]),)}) if patch else None,
    )


def _tuple(values: list[Value] | None) -> tuple[Value, ...] | None:
    return None if values is None else tuple(values)


def _with_sources(document: YamlDocument, key: str, items: Sequence[Value]) -> Iterator[tuple[Value, str]]:
    """Each item of a list with the place where it is written, `file:line`."""
    for item, line in zip(items, document.item_lines((key,)), strict=True):
        yield item, f"{document.file}:{line}"


def _inherited(base: Base) -> list[Rule]:
    """A rule that the base itself inherits has its file's name already."""
    return [rule if "/" in rule.id else replace(rule, id=f"{base.prefix}/{rule.id}") for rule in base.source.rules]


def _digest(source: PolicySource) -> str:
    """SHA-256 of everything that decides, in one spelling."""
    resolved: JsonObject = {
        "policy": 1,
        "on_denied": source.on_denied,
        "limits": _written_fields(source.limits),
        "rules": [_written_fields(rule) for rule in sorted(source.rules, key=lambda rule: rule.id)],
    }
    if source.proposals.kinds:
        resolved["proposals"] = asdict(source.proposals)
    text = json.dumps(resolved, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _written_fields(value: Rule | Limits) -> JsonObject:
    if isinstance(value, Rule):
        names, values = _RULE_FIELDS, _RULE_VALUES(value)
    else:
        names, values = _LIMIT_FIELDS, _LIMIT_VALUES(value)
    return {name: written for name, written in zip(names, values, strict=True) if written is not None}
