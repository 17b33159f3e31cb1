"""The file that a run leaves and another job reads: its models, and its JSON Schema."""

import json
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ci_agent.errors import ConfigurationError
from ci_agent.json_types import Json, JsonObject, parse_json
from ci_agent.policy.proposal_bounds import MAX_BODY_CHARS, MAX_PATCH_BYTES, MAX_TITLE_CHARS
from ci_agent.terminal import one_line
from ci_agent.text_files import read_text_file
from ci_agent.transcript.document import TRANSCRIPT_SCHEMA

PROPOSALS_SCHEMA: Final = "ci-agent.proposals/1"

MAX_PROPOSALS: Final = 100

MAX_FILE_BYTES: Final = 16 * 1024 * 1024

_MAX_SHOWN_PROBLEMS: Final = 5

Body: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_BODY_CHARS)]
Title: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_TITLE_CHARS, pattern=r"^[^\n\r]+$")]
Sha256: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Revision: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
RunId: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Repository: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$")]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Comment(_Closed):
    kind: Literal["comment"]
    body: Body


class Labels(_Closed):
    kind: Literal["label"]
    labels: Annotated[list[Annotated[str, Field(min_length=1, max_length=50)]], Field(min_length=1, max_length=20)]


class Issue(_Closed):
    kind: Literal["issue"]
    title: Title
    body: Body


class Patch(_Closed):
    kind: Literal["patch"]
    title: Title
    body: Body
    base: Revision
    """The commit that the diff is against."""
    diff: Annotated[str, Field(min_length=1, max_length=MAX_PATCH_BYTES)]
    """As `git diff` writes it."""


Proposal: TypeAlias = Annotated[Comment | Labels | Issue | Patch, Field(discriminator="kind")]

PROPOSAL: Final[TypeAdapter[Comment | Labels | Issue | Patch]] = TypeAdapter(Proposal)


class RunOfProposals(_Closed):
    id: RunId
    exit_code: int
    """What the run ended with; of a run that did not end well nothing is applied."""


class PolicyOfProposals(_Closed):
    name: str
    sha256: Sha256


class ProposalsFile(_Closed):
    schema_: Annotated[Literal["ci-agent.proposals/1"], Field(alias="schema")]
    run: RunOfProposals
    policy: PolicyOfProposals
    repository: Repository | None
    """As CI told; None: it did not."""
    proposals: Annotated[list[Proposal], Field(max_length=MAX_PROPOSALS)]


def proposals_schema() -> JsonObject:
    schema = ProposalsFile.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": PROPOSALS_SCHEMA}


def read_proposals(path: Path) -> ProposalsFile:
    """The file, whoever wrote it; ConfigurationError for one that does not satisfy the schema."""
    try:
        written = parse_json(read_text_file(path, "proposals", max_bytes=MAX_FILE_BYTES))
        _require_kind(written, path)
        return ProposalsFile.model_validate(written)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)[:_MAX_SHOWN_PROBLEMS]
        problems = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'file'}: {one['msg']}" for one in found)
        raise ConfigurationError(f"{str(path)!r} holds no proposals: {one_line(problems, 1_000)}") from error
    except ValueError as error:
        raise ConfigurationError(f"{str(path)!r} is no JSON: {one_line(str(error), 500)}") from error


def _require_kind(written: Json, path: Path) -> None:
    schema = written.get("schema") if isinstance(written, dict) else None
    if schema != PROPOSALS_SCHEMA:
        kind = "it is the transcript of a run" if schema == TRANSCRIPT_SCHEMA else "it is a file of another kind"
        raise ConfigurationError(
            f"{str(path)!r} holds no proposals: {kind}; give the file that `ci-agent run --proposals FILE` has written"
        )


def file_text(document: JsonObject) -> str:
    """ASCII, so that whatever a model wrote can be looked at."""
    return json.dumps(document, indent=2) + "\n"
