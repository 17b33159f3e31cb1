"""The formats of `ci-agent report`: each a pure function from a transcript to text, loaded when it is asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, TypeAlias

from ci_agent.json_types import JsonObject

Render: TypeAlias = Callable[[JsonObject], str]

FORMATS: Final[Mapping[str, tuple[str, str]]] = {
    "text": ("ci_agent.reports.text", "render_text"),
    "markdown": ("ci_agent.reports.markdown", "render_markdown"),
    "github": ("ci_agent.reports.github", "render_github"),
    "junit": ("ci_agent.reports.junit", "render_junit"),
    "sarif": ("ci_agent.reports.sarif", "render_sarif"),
    "codequality": ("ci_agent.reports.codequality", "render_codequality"),
    "html": ("ci_agent.reports.html", "render_html"),
}
"""A format's name to the module and the function that render it."""


def renderer(name: str) -> Render:
    """The function of a format in `FORMATS`."""
    module, function = FORMATS[name]
    render: Render = getattr(import_module(module), function)
    return render
