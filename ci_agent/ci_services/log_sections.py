"""How the logs of CI services fold the lines of a run, so that its outcome stands out below them."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

_TITLE: Final = "ci-agent run"

_SECTIONS: Final[Mapping[str, tuple[str, str]]] = {
    # "Workflow commands" of GitHub Actions.
    "github": (f"::group::{_TITLE}", "::endgroup::"),
    # "Custom collapsible sections" of GitLab's job logs; {now} is the time in whole seconds.
    "gitlab": (
        f"\x1b[0Ksection_start:{{now}}:ci_agent_run[collapsed=true]\r\x1b[0K{_TITLE}",
        "\x1b[0Ksection_end:{now}:ci_agent_run\r\x1b[0K",
    ),
    # "Formatting commands" of Azure Pipelines.
    "azure": (f"##[group]{_TITLE}", "##[endgroup]"),
    # "Managing log output" of Buildkite: a group ends where the next begins, and `+++` is one that stands open.
    "buildkite": (f"--- {_TITLE}", "+++ ci-agent outcome"),
    # "Service messages" of TeamCity.
    "teamcity": (f"##teamcity[blockOpened name='{_TITLE}']", f"##teamcity[blockClosed name='{_TITLE}']"),
}
"""The lines that open and close a section, by the service's name in `run.ci`."""

FOLDING_SERVICES: Final = frozenset(_SECTIONS)

LINE_COMMANDS: Final = frozenset({"github", "buildkite"})
"""Services that take a line for a command by how it begins; what the others look for, nothing printable holds."""


@contextmanager
def folded(
    write_line: Callable[[str], None], service: str | None, clock: Callable[[], float] = time.time
) -> Iterator[None]:
    """Fold what is written meanwhile, where the service can; also when it ends in an exception."""
    lines = _SECTIONS.get(service or "")
    if lines is None:
        yield
        return
    opening, closing = lines
    write_line(_dated(opening, clock))
    try:
        yield
    finally:
        write_line(_dated(closing, clock))


def _dated(line: str, clock: Callable[[], float]) -> str:
    return line.replace("{now}", str(int(clock())))
