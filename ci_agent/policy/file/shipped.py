"""The policies that come with the package, by name."""

from pathlib import Path
from typing import Final

from ci_agent.errors import ConfigurationError
from ci_agent.spelling import nearest
from ci_agent.strict_yaml import quote

_FOLDER: Final = Path(__file__).parents[2] / "policies"


def shipped_policy_names() -> list[str]:
    return sorted(path.stem for path in _FOLDER.glob("*.yml"))


def shipped_policy_path(name: str) -> Path:
    """Where a shipped policy stands; ConfigurationError, with the names there are, when none is called so."""
    names = shipped_policy_names()
    if name in names:
        return _FOLDER / f"{name}.yml"
    if (Path(name) if name else _FOLDER).is_dir():
        raise ConfigurationError(f"{quote(name)} is a folder: name a policy file in it")
    close = nearest(name, names)
    hint = f"did you mean {close}? " if close else ""
    raise ConfigurationError(
        f"no shipped policy is called {quote(name)}: {hint}shipped are {', '.join(names)}; "
        f"a file is named by its path (./{name}.yml)"
    )
