"""Where people and tools keep keys in a home folder: closed to commands unless a rule of the policy spells them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

IN_HOME: Final = (
    ".aws",
    ".azure",
    ".bash_history",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".codex",
    ".config/anthropic",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".docker/config.json",
    ".docker/contexts",
    ".gem/credentials",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".ssh",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".zsh_history",
)


def secret_places(homes: Iterable[Path]) -> tuple[Path, ...]:
    """The places in these home folders, whether something is there or not."""
    return tuple(home / name for home in dict.fromkeys(homes) for name in IN_HOME)
