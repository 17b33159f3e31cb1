"""What a rule lets go out of this machine: a person should think of it before pasting the rule."""

from typing import Final

from ci_agent.policy.lint.samples import command_patterns
from ci_agent.policy.matchers.command_patterns import CommandPattern
from ci_agent.policy.rules import Rule

_PUBLISHING: Final = (
    *("git push", "gh", "glab", "hub", "npm publish", "npm unpublish", "npm deprecate", "pnpm publish", "yarn publish"),
    *("bun publish", "lerna publish", "cargo publish", "gem push", "twine", "poetry publish", "uv publish"),
    *("flit publish", "hatch publish", "docker push", "podman push", "helm push", "helm upgrade", "helm install"),
    *("mvn deploy", "semantic-release", "goreleaser", "kubectl", "terraform apply", "tofu apply", "pulumi", "aws"),
    *("gcloud", "az", "heroku", "fly", "vercel", "netlify", "firebase", "ssh", "scp", "sftp", "ansible-playbook"),
)
_CAUTION: Final = "it publishes or changes something outside of this machine, which nothing here takes back"


def caution_for(rule: Rule) -> str | None:
    """None: what the rule grants stays here, as far as the names of programs and methods tell."""
    publishes = any(_begins(pattern, begin.split()) for pattern in command_patterns(rule) for begin in _PUBLISHING)
    sends = not {"GET", "HEAD", *(rule.method or ())} <= {"GET", "HEAD", "OPTIONS"}
    return _CAUTION if publishes or sends else None


def _begins(pattern: CommandPattern, words: list[str]) -> bool:
    tokens = pattern.tokens[: len(words)]
    return len(tokens) == len(words) and all(token.matches(word) for token, word in zip(tokens, words, strict=True))
