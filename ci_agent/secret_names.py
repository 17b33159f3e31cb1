"""Which variables and keys hold secrets, as far as names and addresses tell."""

import fnmatch
import re
from collections.abc import Iterable

MODEL_KEYS = (
    "ANTHROPIC_*KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_OPENAI_*KEY",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "LITELLM_*KEY",
    "MISTRAL_API_KEY",
    "OPENAI_*KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
)

JOB_TOKENS = ("ACTIONS_*", "GITHUB_TOKEN")
"""Of the job, and of the runner's own services."""

_SECRET = re.compile(
    r"TOKENS?(_|$)|SECRETS?(_|$)|PASSWORDS?(_|$)|PASSWD|PASSPHRASE|CREDENTIALS?(_|$)"
    r"|(^|_)(API|ACCESS|AUTH|DEPLOY|ENCRYPTION|MASTER|PRIVATE|SECRET|SERVICE|SIGNING|SSH)?KEYS?(_|$)"
    r"|(^|_)(PASS|PWD|AUTH|PAT|COOKIE|DSN|WEBHOOK|WEBHOOK_URL|CONNECTION_STRING|OTLP(_[A-Z]+)?_HEADERS|CUSTOM_HEADERS)(_|$)"
)
_MAY_BE_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|PRIVATE", re.IGNORECASE)

_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#@:\s]*:(?P<password>[^/?#@\s]+)@")

_FOLDERS_OF_THE_SHELL = {"PWD", "OLDPWD"}


def names_a_secret(name: str) -> bool:
    """Whether a variable or a key of this name usually holds a secret."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", name).upper()
    return words not in _FOLDERS_OF_THE_SHELL and _SECRET.search(words) is not None


def may_name_a_secret(name: str) -> bool:
    """Whether it should be asked for by its name, and seen by nobody until then."""
    return (
        names_a_secret(name)
        or _MAY_BE_SECRET.search(name) is not None
        or matches(name.upper(), MODEL_KEYS + JOB_TOKENS)
    )


def password_in_url(value: str) -> str | None:
    """The password in an address such as `http://user:password@proxy`, as it is spelled there."""
    found = _PASSWORD.match(value)
    return found["password"] if found else None


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns, in which `*` stands for anything, is for this name."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
