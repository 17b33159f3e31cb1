"""The policy file as pydantic models: its keys and what each of them means; also its JSON Schema."""

from typing import Annotated, Final, TypeAlias

from pydantic import ConfigDict, Field, field_validator

from ci_agent.hooks import OnDenied
from ci_agent.json_types import Json, JsonObject
from ci_agent.policy.file.file_values import (
    BranchPrefix,
    Call,
    CommandWords,
    EnvPattern,
    Example,
    HasToken,
    HostPatternText,
    LabelName,
    Line,
    Method,
    OneOrMany,
    PathGlobText,
    Port,
    RuleId,
    Scheme,
    SelectorText,
    TestOfArgument,
    ToolPattern,
    Version,
    WorkspaceGlobText,
)
from ci_agent.policy.proposal_bounds import MAX_BODY_CHARS, MAX_PATCH_BYTES, MAX_TITLE_CHARS
from ci_agent.strict_yaml import FileModel
from ci_agent.strict_yaml.editor_schema import editor_schema


class _PolicyModel(FileModel):
    """The docstring of a key is what an editor shows for it."""

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_nothing(cls, value: Json) -> Json:
        if value is None:
            raise ValueError("nothing, or null, is written after this key: write a value, or delete the key")
        return value


class LimitsModel(_PolicyModel):
    """Bounds of a run. A command-line flag may tighten them, never loosen them."""

    max_turns: Annotated[int, Field(ge=1)] | None = None
    """Assistant messages."""
    max_tool_calls: Annotated[int, Field(ge=1)] | None = None
    """Tool calls, denied ones included."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Input and output tokens of the whole run."""
    max_cost_usd: Annotated[float, Field(gt=0)] | None = None
    """What the model may cost, in US dollars. Needs a model whose price is known."""
    timeout_s: Annotated[float, Field(gt=0)] | None = None
    """Wall clock of the whole run, in seconds."""


_ALLOW_OR_DENY: Final[JsonObject] = {"oneOf": [{"required": ["allow"]}, {"required": ["deny"]}]}
_NAMES_BASH: Final[JsonObject] = {"type": "string", "pattern": r"(^|[{,])bash($|[,}])|^\*$"}
"""As far as an editor can tell; `policy check` finds the other patterns that cover it."""
_NEEDS_COMMAND: Final[JsonObject] = {
    "if": {
        "required": ["allow"],
        "properties": {
            "allow": {
                "description": "bash among them.",
                "anyOf": [_NAMES_BASH, {"type": "array", "contains": _NAMES_BASH}],
            }
        },
    },
    "then": {"required": ["command"]},
    "dependentRequired": {matcher: ["command"] for matcher in ("paths", "env", "has")},
}


class ExamplesModel(_PolicyModel):
    """Calls that this rule alone is tried with by `policy check`."""

    match: OneOrMany[Example] | None = None
    """Calls that the rule grants, or forbids: `git log --oneline`, or a mapping of arguments."""
    no_match: OneOrMany[Example] | None = None
    """Calls that the rule leaves alone."""


class RuleModel(_PolicyModel):
    """One rule: allows or denies calls of the tools named, as far as every matcher fits."""

    model_config = ConfigDict(json_schema_extra={**_ALLOW_OR_DENY, **_NEEDS_COMMAND})

    id: RuleId
    """A name of your choice, unique in the file; decisions and tests refer to it."""
    allow: OneOrMany[ToolPattern] | None = None
    """Tools whose calls this rule grants: `read`, `[write, edit]`, `github__*`, `github__{search,get}`."""
    deny: OneOrMany[ToolPattern] | None = None
    """Tools whose calls this rule forbids. A deny wins over every allow, whatever the order."""
    command: OneOrMany[CommandWords] | None = None
    """For bash: patterns of one simple command, word by word. `*` in a word stands for any characters, `{a,b}` for
    alternatives, a closing `**` for any further words. Every command of a line must be covered by some rule."""
    paths: OneOrMany[PathGlobText] | None = None
    """For bash: globs that every file named by the command must match. Without it an allow rule reaches the
    workspace only."""
    env: OneOrMany[EnvPattern] | None = None
    """For bash, in an allow rule: variables that may be set before the command (`CI=1 npm test`)."""
    has: OneOrMany[HasToken] | None = None
    """For bash, in a deny rule: the rule applies only to commands with one of these options or words."""
    path: OneOrMany[PathGlobText] | None = None
    """For read, write, edit, grep, find, ls: globs for the path, relative to the workspace; `**` crosses folders.
    Without it an allow rule reaches the workspace only."""
    host: OneOrMany[HostPatternText] | None = None
    """For fetch, and for URLs in bash commands: hosts, `*.example.com`, addresses, ranges such as 10.0.0.0/8."""
    scheme: OneOrMany[Scheme] | None = None
    """For fetch, and for URLs in bash commands: schemes; https alone without it."""
    port: OneOrMany[Port] | None = None
    """For fetch, and for URLs in bash commands: ports; the scheme's own without it."""
    method: OneOrMany[Method] | None = None
    """For fetch, and for URLs in bash commands: HTTP methods; GET alone without it."""
    args: Annotated[dict[SelectorText, TestOfArgument], Field(min_length=1)] | None = None
    """For any tool: tests of its arguments by name: `{repo: {enum: [acme/site]}, "labels[]": {regex: "[a-z]+"}}`."""
    only: bool = False
    """In an allow rule: the call may carry no argument that the rule does not name."""
    max_calls: Annotated[int, Field(ge=1)] | None = None
    """In an allow rule: how many calls of a run it grants."""
    because: Line | None = None
    """Why, in one line; the model is told when the rule denies."""
    instead: Line | None = None
    """What to do instead, in one line; the model is told when the rule denies."""
    on_denied: OnDenied | None = None
    """What a denial by this rule does to the run; the file's own `on_denied` without it."""
    examples: ExamplesModel | None = None
    """Calls that the rule must and must not match; `policy check` tries them."""


class TestModel(_PolicyModel):
    """One call and the answer that you expect; `policy check` tries it against the whole policy."""

    __test__ = False  # not a test class of pytest
    model_config = ConfigDict(json_schema_extra=_ALLOW_OR_DENY)

    allow: Call | None = None
    """A call that must be allowed: `{bash: "git log | head"}`, `{read: README.md}`, `{read: {path: a, limit: 5}}`."""
    deny: Call | None = None
    """A call that must be denied."""
    by: str | None = None
    """Which rule must have decided, by id, or one of: default, hazard, unparsable, limit."""


BodyChars: TypeAlias = Annotated[int, Field(ge=1, le=MAX_BODY_CHARS)]
TitleChars: TypeAlias = Annotated[int, Field(ge=1, le=MAX_TITLE_CHARS)]


class CommentModel(_PolicyModel):
    """Comments on the issue or pull request that the workflow is about."""

    max_count: Annotated[int, Field(ge=1, le=20)] | None = None
    """How many a run may propose; 1 without it."""
    max_chars: BodyChars | None = None
    """Characters of each; 10,000 without it."""
    prefix: Line | None = None
    """What each begins with; added for the model."""


class LabelModel(_PolicyModel):
    """Labels to be added to the issue or pull request that the workflow is about."""

    names: OneOrMany[LabelName]
    """The labels that may be proposed."""
    max_count: Annotated[int, Field(ge=1, le=20)] | None = None
    """How many of them a run may propose; 3 without it."""


class IssueModel(_PolicyModel):
    """New issues."""

    max_count: Annotated[int, Field(ge=1, le=20)] | None = None
    """How many a run may propose; 1 without it."""
    max_chars: BodyChars | None = None
    """Characters of each body; 10,000 without it."""
    max_title_chars: TitleChars | None = None
    """Characters of each title; 120 without it."""
    title_prefix: Line | None = None
    """What each title begins with; added for the model."""


class PatchModel(_PolicyModel):
    """What the run has changed in the checkout, as a new branch and a pull request. One for each run."""

    paths: OneOrMany[WorkspaceGlobText]
    """Globs for the files that may be in it, relative to the repository's top. Workflows and `.git` never are."""
    max_bytes: Annotated[int, Field(ge=1, le=MAX_PATCH_BYTES)] | None = None
    """Bytes of the patch; 100,000 without it."""
    branch_prefix: BranchPrefix | None = None
    """What the branch's name begins with; `ci-agent/` without it. The rest is the run's id."""
    max_chars: BodyChars | None = None
    """Characters of the pull request's body; 10,000 without it."""
    max_title_chars: TitleChars | None = None
    """Characters of its title; 120 without it."""
    title_prefix: Line | None = None
    """What its title begins with; added for the model."""


class ProposalsModel(_PolicyModel):
    """What the tool `propose` may propose to have done outside, by `ci-agent apply` in another job."""

    comment: CommentModel | None = None
    """Comments on the issue or pull request that the workflow is about."""
    label: LabelModel | None = None
    """Labels to be added to it."""
    issue: IssueModel | None = None
    """New issues."""
    patch: PatchModel | None = None
    """What the run has changed in the checkout, as a new branch and a pull request."""


PROPOSAL_MODELS = (CommentModel, LabelModel, IssueModel, PatchModel, ProposalsModel)


class PolicyDocument(_PolicyModel):
    """A policy of ci-agent: what the tools of an unattended agent may do. What no rule allows is denied."""

    policy: Version
    """Version of the format: 1."""
    description: Line | None = None
    """What the policy is for, in one line."""
    extends: OneOrMany[str] | None = None
    """Policies whose rules are added: shipped ones by name (`read-only`), files by a path relative to this one
    (`./team.yml`). `read-only@sha256:...` accepts this very version alone."""
    on_denied: OnDenied | None = None
    """What a denial does to the run: `record` it and go on (the default), `fail` at the end, or `stop` at once."""
    limits: LimitsModel | None = None
    """Bounds of the run."""
    proposals: ProposalsModel | None = None
    """What may be proposed with `--proposals`, within which bounds. A rule must allow the tool `propose`, too."""
    rules: Annotated[list[RuleModel], Field(min_length=1)] | None = None
    """The rules, in any order: each effect of a call must be allowed by some rule and denied by none."""
    tests: Annotated[list[TestModel], Field(min_length=1)] | None = None
    """Calls and the answers that you expect; `policy check` tries them."""


def policy_schema() -> JsonObject:
    """The JSON Schema (2020-12) of a policy file, for editors."""
    parts = (RuleModel, TestModel, ExamplesModel, LimitsModel, *PROPOSAL_MODELS)
    return editor_schema(PolicyDocument, parts, title="ci-agent policy")
