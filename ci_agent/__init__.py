"""ci-agent: the agent for where nobody watches."""

__version__ = "0.1.0"
