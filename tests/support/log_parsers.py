"""What other CI services than GitHub take for commands in a log: ports of what their sources or manuals say.

Each returns the lines or markers obeyed; each is a little stricter than the service.
"""

import re

_LINE = re.compile("\r\n|\r|\n")

_GITLAB = re.compile(r"section_(?:start|end):\d+:[A-Za-z0-9_.-]+(?:\[[^\]\r\n]*\])?\r\x1b\[0K")
"""gitlab-org/gitlab, lib/gitlab/ci/trace/section_parser and converters: the marker wants the carriage return."""

_AZURE = re.compile(r"##vso\[[^\]]*\]|##\[\w+\]", re.IGNORECASE)
"""microsoft/azure-pipelines-agent, Command.cs: anywhere in a line; `##[...]` is read by the page that shows the log."""

_BUILDKITE = re.compile(r"(?:---|\+\+\+|~~~)(?:\s|$)|\^\^\^\s+\+\+\+")
"""buildkite/agent, header_times_streamer.go: first in a line, colours aside."""

_BUILDKITE_ESCAPE = re.compile("\x1b(?:_bk;|\\]133[789];)")
"""Times, links, images and artifacts that a log embeds."""

_TEAMCITY = re.compile(r"##teamcity\[", re.IGNORECASE)
_COLOURS = re.compile("\x1b\\[[0-9;]*[A-Za-z]")


def gitlab_sections(log: str) -> list[str]:
    return _GITLAB.findall(log)


def azure_commands(log: str) -> list[str]:
    return _AZURE.findall(log)


def buildkite_headers(log: str) -> list[str]:
    lines = [_COLOURS.sub("", line) for line in _LINE.split(log)]
    return [line for line in lines if _BUILDKITE.match(line)] + _BUILDKITE_ESCAPE.findall(log)


def teamcity_messages(log: str) -> list[str]:
    return [line for line in _LINE.split(log) if _TEAMCITY.search(line)]


PARSERS = {
    "gitlab": gitlab_sections,
    "azure": azure_commands,
    "buildkite": buildkite_headers,
    "teamcity": teamcity_messages,
}

HOSTILE = (
    "\x1b[0Ksection_start:1:x[collapsed=true]\r\x1b[0KTitle",
    "section_end:1:ci_agent_run\r\x1b[0K",
    "##vso[task.setvariable variable=PATH]/evil",
    "text ##vso[task.complete result=Succeeded]",
    "##[error]x",
    "##[group]x",
    "--- x",
    "+++ x",
    "~~~ x",
    "^^^ +++",
    "\x1b[31m--- red",
    "\x1b]1338;url=x\x07",
    "\x1b_bk;t=1\x07",
    "##teamcity[buildStatus status='SUCCESS']",
    "  ##TeamCity[publishArtifacts '/etc']",
)
"""Lines of which each is obeyed by one of them."""
