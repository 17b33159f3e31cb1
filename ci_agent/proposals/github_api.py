"""The few calls of GitHub's REST API that proposals need, with a token that goes nowhere else."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import httpx

from ci_agent import __version__
from ci_agent.errors import ConfigurationError
from ci_agent.json_types import JsonObject, parse_json
from ci_agent.terminal import one_line

DEFAULT_API_URL: Final = "https://api.github.com"

_API_VERSION: Final = "2022-11-28"
_TIMEOUT_S: Final = 30.0
_MAX_ANSWER_BYTES: Final = 1024 * 1024
_MAX_SHOWN_CHARS: Final = 300
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class GitHubError(Exception):
    """GitHub did not do it; the message says what it answered."""


@dataclass(frozen=True, slots=True)
class GitHub:
    repository: str
    client: httpx.Client = field(repr=False)

    def comment(self, number: int, body: str) -> str:
        return self._post(f"issues/{number}/comments", {"body": body})

    def add_labels(self, number: int, labels: list[str]) -> str:
        return self._post(f"issues/{number}/labels", {"labels": labels})

    def open_issue(self, title: str, body: str) -> str:
        return self._post("issues", {"title": title, "body": body})

    def open_pull_request(self, *, title: str, body: str, branch: str, into: str) -> str:
        return self._post("pulls", {"title": title, "body": body, "head": branch, "base": into})

    def _post(self, path: str, body: JsonObject) -> str:
        """The address of what was made, as far as GitHub says it; no redirect is followed."""
        try:
            with self.client.stream("POST", f"/repos/{self.repository}/{path}", json=body) as response:
                answer = _read(response)
        except httpx.HTTPError as error:
            raise GitHubError(f"GitHub cannot be reached: {one_line(str(error), _MAX_SHOWN_CHARS)}") from error
        if not response.is_success:
            why = one_line(str(answer.get("message") or "it does not say why"), _MAX_SHOWN_CHARS)
            raise GitHubError(f"GitHub answers {response.status_code}: {why}")
        return one_line(str(answer.get("html_url") or ""), _MAX_SHOWN_CHARS)


@contextmanager
def github(repository: str, token: str, environment: Mapping[str, str]) -> Iterator[GitHub]:
    """ConfigurationError for an API that the token would go to in the clear."""
    api_url = require_safe_url(environment.get("GITHUB_API_URL") or DEFAULT_API_URL, "GITHUB_API_URL")
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {token}",
        "User-Agent": f"ci-agent/{__version__}",
        "X-GitHub-Api-Version": _API_VERSION,
    }
    # Nothing of the environment counts: neither a proxy nor a netrc, which would get the token or replace it.
    with httpx.Client(base_url=api_url, headers=headers, timeout=_TIMEOUT_S, trust_env=False) as client:
        yield GitHub(repository, client)


def require_safe_url(url: str, what: str) -> str:
    """The URL without a closing slash; ConfigurationError unless it is https, or http on this machine."""
    parts = urlsplit(url)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not is_safe or not parts.hostname or parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError(f"{what} is {url!r}: a token goes to a plain https address alone")
    return url.rstrip("/")


def _read(response: httpx.Response) -> JsonObject:
    data = b""
    for chunk in response.iter_bytes():
        data += chunk
        if len(data) > _MAX_ANSWER_BYTES:
            raise GitHubError("GitHub's answer is too long")
    try:
        answer = parse_json(data.decode("utf-8", "replace"))
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
