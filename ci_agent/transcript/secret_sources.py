"""Which values are secrets: what is named as one, and what looks like one in the environment."""

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

from ci_agent.errors import ConfigurationError
from ci_agent.secret_names import names_a_secret, password_in_url

MIN_SECRET_CHARS = 8
"""Hiding shorter values would shred the record, and whoever knows a record's gaps could guess them."""

_PLAIN_WORD = re.compile(r"[A-Z]?[a-z]{1,14}|[A-Z]{1,15}|[0-9]{1,15}")
"""`production`, `postgres`, `1735689600`: constants of a pipeline. Who means them as secrets names the variable."""

_PATH = re.compile(
    r"(?:~|\.{1,2}|/(?:__w|builds|data|etc|github|home|mnt|opt|private|root|run|runner|srv|tmp|usr|var|work|workspace"
    r"|Users))/[^\0\n]*"
)
"""Where a credential lies (GOOGLE_APPLICATION_CREDENTIALS, SSH_AUTH_SOCK), not the credential."""


def collect_secrets(
    environment: Mapping[str, str], *, named: Iterable[str] = (), keys: Iterable[str] = ()
) -> tuple[str, ...]:
    """The values to hide, each once.

    `named` are variables that a person called secret: their values count as they are; ConfigurationError for one
    that cannot be hidden. `keys` (API keys that were read), the variables whose names look secret, and passwords in
    addresses (`HTTPS_PROXY=http://me:password@proxy`) count when `is_worth_hiding` says so.
    """
    likely = [*keys, *(value for name, value in environment.items() if names_a_secret(name))]
    likely += [password for value in environment.values() for password in _passwords_in(value)]
    return tuple(dict.fromkeys([*_named_values(environment, named), *filter(is_worth_hiding, likely)]))


def _passwords_in(value: str) -> tuple[str, ...]:
    """As it is spelled in the address, and as it is typed."""
    password = password_in_url(value)
    return () if password is None else (password, unquote(password))


def is_worth_hiding(value: str) -> bool:
    """False for what is too short, or says nothing: a plain word, a number, the path of a file."""
    return len(value) >= MIN_SECRET_CHARS and _PLAIN_WORD.fullmatch(value) is None and _PATH.fullmatch(value) is None


def _named_values(environment: Mapping[str, str], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        value = environment.get(name, "")
        if value and (len(value) < MIN_SECRET_CHARS or len(set(value)) == 1):
            raise ConfigurationError(
                f"the value of {name} cannot be kept out of the record: "
                f"it has fewer than {MIN_SECRET_CHARS} characters, or repeats one"
            )
        if value:
            yield value
