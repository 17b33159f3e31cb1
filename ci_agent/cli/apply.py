"""`ci-agent apply`: what a run has proposed, checked again, and printed as commands or done."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from ci_agent.cli.options import OnceOption, given_environment
from ci_agent.errors import EXIT_NEGATIVE, ConfigurationError
from ci_agent.policy.file.load import load_policy_source
from ci_agent.policy.rules import PolicySource
from ci_agent.proposals.apply import Means, apply_proposals, described, file_problems
from ci_agent.proposals.branch import clone_url
from ci_agent.proposals.commands import command_lines
from ci_agent.proposals.file import Patch, ProposalsFile, proposals_schema, read_proposals
from ci_agent.proposals.github_api import github
from ci_agent.proposals.private_repository import GitError, PrivateRepository, private_repository
from ci_agent.proposals.target import Target, find_target
from ci_agent.terminal import printable
from ci_agent.transcript.redact import Redactor
from ci_agent.transcript.secret_sources import collect_secrets

EPILOG = """\b
Examples:
  ci-agent apply proposals.json --policy policies/triage.yml
  ci-agent apply proposals.json --policy policies/triage.yml --token-env GITHUB_TOKEN
"""


def _print_schema(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        click.echo(json.dumps(proposals_schema(), indent=2))
        ctx.exit(0)


@click.command("apply", epilog=EPILOG)
@click.argument("proposals", type=click.Path(path_type=Path))
@click.option(
    "--policy", cls=OnceOption, metavar="NAME|FILE", required=True, help="The policy that the run was made under."
)
@click.option("--dry-run", is_flag=True, help="Check everything, say what would be done, and do nothing.")
@click.option("--token-env", metavar="NAME", help="Do it, with the token in this variable. [default: print commands]")
@click.option("--repo", metavar="OWNER/NAME", help="The repository. [default: the variable GITHUB_REPOSITORY]")
@click.option(
    "--number", type=click.IntRange(min=1), metavar="N", help="The issue or pull request. [default: the event's]"
)
@click.option("--into", metavar="BRANCH", help="The branch that a patch is for. [default: the job's]")
@click.option("--checkout", metavar="DIR", default=".", show_default=True, help="A checkout of what a patch is for.")
@click.option(
    "--schema", is_flag=True, is_eager=True, expose_value=False, callback=_print_schema, help="Print the JSON Schema."
)
def apply_command(  # noqa: PLR0913 - one for each option
    *,
    proposals: Path,
    policy: str,
    dry_run: bool,
    token_env: str | None,
    repo: str | None,
    number: int | None,
    into: str | None,
    checkout: str,
) -> int:
    """Apply PROPOSALS, the file that `ci-agent run --proposals` has written.

    No model is asked, and of the checkout only git's objects are looked at, for a patch. The file is taken for hostile:
    it is held against the policy again, and unless all of it keeps to the bounds nothing is done (exit 3). Exit 1 when
    something could not be done.
    """
    environment = given_environment()
    token = _token(token_env, environment)
    source = load_policy_source(policy)
    file = read_proposals(proposals)
    target = find_target(file, environment, repository=repo, number=number, into=into)
    with ExitStack() as stack:
        repository = _repository(stack, file, Path(checkout), environment)
        redactor = Redactor(collect_secrets(environment))
        problems = list(file_problems(file, source, target, repository, redactor.holds_secret))
        _refuse(proposals, problems, redactor)
        if dry_run:
            for proposal in file.proposals:
                click.echo(printable(f"would {described(proposal, file, source, target)}"))
            return 0
        if token is None:
            click.echo("\n".join(command_lines(file, source.proposals, target)))
            return 0
        remote_url = clone_url(target.repository, environment)
        api = stack.enter_context(github(target.repository, token, environment))
        means = Means(api, repository, remote_url, token)
        return _apply(file, source, target, means)


def _apply(file: ProposalsFile, source: PolicySource, target: Target, means: Means) -> int:
    failed = False
    for applied in apply_proposals(file, source, target, means):
        failed = failed or applied.problem is not None
        click.echo(printable(f"done: {applied.what}" if applied.problem is None else f"not done: {applied.what}"))
        if applied.problem is not None:
            click.echo(printable(f"  {applied.problem}"), err=True)
    if not file.proposals:
        click.echo("nothing is proposed")
    return EXIT_NEGATIVE if failed else 0


def _refuse(path: Path, problems: Sequence[str], redactor: Redactor) -> None:
    if problems:
        told = redactor.text(printable("; ".join(problems[:10])))
        raise ConfigurationError(f"nothing of {str(path)!r} is applied: {told}")


def _repository(
    stack: ExitStack, file: ProposalsFile, checkout: Path, environment: Mapping[str, str]
) -> PrivateRepository | None:
    if not any(isinstance(one, Patch) for one in file.proposals):
        return None
    try:
        return stack.enter_context(private_repository(checkout, environment))
    except GitError as error:
        raise ConfigurationError(f"a patch needs a checkout of what it is for: {printable(str(error))}") from error


def _token(name: str | None, environment: Mapping[str, str]) -> str | None:
    if name is None:
        return None
    token = environment.get(name, "").strip()
    if not token:
        raise ConfigurationError(f"--token-env {name}: no such variable is set, or it is empty")
    if not (token.isascii() and token.isprintable()):
        raise ConfigurationError(f"--token-env {name}: the variable holds characters that no token has")
    return token
