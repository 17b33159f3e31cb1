"""ci-agent: the agent for where nobody watches."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ci_agent.cancellation import CancelToken
    from ci_agent.compose import run
    from ci_agent.errors import CIAgentError, ConfigurationError
    from ci_agent.hooks import Decision
    from ci_agent.policy.decide import Policy
    from ci_agent.policy.rules import Limits
    from ci_agent.prompts import ContextText
    from ci_agent.ready_policy import load_policy
    from ci_agent.run_settings import Observers, RunResult, RunSettings

__version__ = "0.1.0"

_HOMES = {
    "CIAgentError": "errors",
    "CancelToken": "cancellation",
    "ConfigurationError": "errors",
    "ContextText": "prompts",
    "Decision": "hooks",
    "Limits": "policy.rules",
    "Observers": "run_settings",
    "Policy": "policy.decide",
    "RunResult": "run_settings",
    "RunSettings": "run_settings",
    "load_policy": "ready_policy",
    "run": "compose",
}

__all__ = [
    "CIAgentError",
    "CancelToken",
    "ConfigurationError",
    "ContextText",
    "Decision",
    "Limits",
    "Observers",
    "Policy",
    "RunResult",
    "RunSettings",
    "__version__",
    "load_policy",
    "run",
]


def __getattr__(name: str) -> object:
    # Imported when it is asked for: `ci-agent --version` needs none of it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
