"""Where servers are whose addresses come in more than one form."""

from collections.abc import Mapping
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

from ci_agent.errors import ConfigurationError


def ollama_url(host: str) -> str:
    """OLLAMA_HOST is also what Ollama listens at: it may lack scheme and port, and name every address."""
    parts = urlsplit(host if "://" in host else f"http://{host}")
    name = parts.hostname or "localhost"
    name = "localhost" if name in ("0.0.0.0", "::") else name  # noqa: S104  read here, not bound to
    name = f"[{name}]" if ":" in name else name
    has_port = parts.netloc.rpartition("]")[2].partition(":")[2]
    port = f":{has_port}" if has_port else (":11434" if parts.scheme == "http" else "")
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{name}{port}{path if path.endswith('/v1') else f'{path}/v1'}"


def azure_address(url: str, deployment: str, environment: Mapping[str, str]) -> tuple[str, str | None]:
    """Base URL and `api-version`. Azure has two kinds of addresses: `/openai/v1`, which needs no version, and one for
    each deployment, which does.

    Raises ConfigurationError when it is missing.
    """
    parts = urlsplit(url)
    version = next(iter(parse_qs(parts.query).get("api-version", [])), None) or _azure_version(environment)
    path = parts.path.rstrip("/")
    if path in ("", "/openai"):
        path = f"/openai/deployments/{quote(deployment, safe='')}" if version else "/openai/v1"
    base_url = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    if "/deployments/" not in path:
        return base_url, None
    if not version:
        problem = "an address of Azure with /deployments/ needs a version: add ?api-version=… or set"
        raise ConfigurationError(f"{problem} AZURE_OPENAI_API_VERSION")
    return base_url, version


def _azure_version(environment: Mapping[str, str]) -> str | None:
    return environment.get("AZURE_OPENAI_API_VERSION") or environment.get("OPENAI_API_VERSION") or None
