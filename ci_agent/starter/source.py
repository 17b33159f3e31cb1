"""Where this ci-agent was installed from, so that a workflow can take the same one: it is on no package index yet."""

import json
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from ci_agent.json_types import JsonObject
from ci_agent.starter.clone import ask_git

_ADDRESS: Final = re.compile(
    r"(?:https?://(?:[^@/\s]*@)?|(?:ssh://)?[\w.-]+@)(?P<host>[\w.-]+(?::\d+/|[:/]))(?P<path>[\w.~/-]+?)(?:\.git)?/?"
)
"""Of a repository, as git takes it; who may stand in it, a token even, is left out."""


@dataclass(frozen=True, slots=True)
class Source:
    repository: str
    """Host and path: `github.com/acme/ci-agent`."""
    commit: str

    @property
    def requirement(self) -> str:
        """What pip installs it by."""
        return f"git+https://{self.repository}@{self.commit}"

    @property
    def action(self) -> str | None:
        """What a workflow of GitHub uses it by; None: it is not there."""
        host, _, path = self.repository.partition("/")
        return f"{path}@{self.commit}" if host == "github.com" and path.count("/") == 1 else None


PLACEHOLDER: Final = Source("github.com/OWNER/ci-agent", "0123456789abcdef0123456789abcdef01234567")
"""As the pages have it; a person puts the own one in."""


def installed_source() -> Source | None:
    """None: the installation does not tell, as that of a wheel."""
    try:
        text = distribution("ci-agent").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    return read_source(json.loads(text)) if text else None


def read_source(direct_url: JsonObject) -> Source | None:
    """`direct_url` is what an installer keeps (PyPA's "Recording the Direct URL Origin"): repository and commit, or a
    folder, whose own repository is then asked."""
    address, commit = str(direct_url.get("url", "")), str(direct_url.get("vcs_info", {}).get("commit_id", ""))
    if address.startswith("file:") and "dir_info" in direct_url:
        folder = Path(unquote(urlsplit(address).path))
        if not (folder / ".git").exists():
            return None
        address, commit = ask_git(folder, "remote", "get-url", "origin"), ask_git(folder, "rev-parse", "HEAD")
    found = _ADDRESS.fullmatch(address)
    if found is None or not re.fullmatch("[0-9a-f]{40,64}", commit):
        return None
    host = found["host"] if found["host"].endswith("/") else f"{found['host'][:-1]}/"
    return Source(f"{host}{found['path']}", commit)
