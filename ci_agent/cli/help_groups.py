"""Help of a command with many options: under headings, in the order in which a reader needs them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import click

OptionGroups: TypeAlias = Mapping[str, Sequence[str]]
"""A heading and the flags beneath it, each in the order of the help."""

RUN_GROUPS: Final[OptionGroups] = {
    "What to do": (
        *("--task", "--input", "--input-file", "--prompt-file", "--context-file", "--event-text", "--agents-md"),
        *("--system-file", "--append-system-file", "--workspace"),
    ),
    "Model": (
        *("--model", "--fallback-model", "--api-key-file", "--base-url", "--thinking", "--temperature"),
        *("--max-output-tokens", "--shrink", "--models-file"),
    ),
    "Policy and safety": (*("--policy", "--tools", "--sandbox", "--pass-env", "--secret-env", "--trust-head"),),
    "Limits": ("--max-turns", "--max-tool-calls", "--max-tokens", "--max-cost-usd", "--timeout", "--tool-timeout"),
    "Output": ("--output", "--output-schema", "--answer-file", "--proposals", "--quiet", "--verbose"),
    "Record and reports": ("--transcript", "--keep-journal", "--report", "--spill-dir", "--otel"),
    "Exit code": ("--fail-on-denied", "--fail-on-error"),
    "CI and runs that come again": (*("--publish", "--lock", "--state-dir", "--transcript-dir", "--keep-transcripts"),),
    "Replay": ("--replay-tools", "--fail-on-divergence"),
    "Connection to the model": (
        *("--attempts", "--first-byte-timeout", "--idle-timeout", "--request-timeout", "--ca-file", "--allow-http"),
    ),
    "Other": ("--config", "--help"),
}
"""Of `ci-agent run`."""

_COLUMN: Final = 30
"""Where the texts begin, the same for all groups; a longer flag has a line of its own."""


class GroupedCommand(click.Command):
    """A command whose help has a section for each group of its options; one that is in none comes last."""

    def __init__(self, *args: Any, groups: OptionGroups, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        rows = {long_flag(each): row for each in options if (row := each.get_help_record(ctx)) is not None}
        for heading, flags in self.groups.items():
            _write_section(formatter, heading, [rows.pop(flag) for flag in flags if flag in rows])
        _write_section(formatter, "More", list(rows.values()))


def long_flag(option: click.Option) -> str:
    """By which a group names an option."""
    return max(option.opts, key=len)


def _write_section(formatter: click.HelpFormatter, heading: str, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(heading):
            formatter.write_dl([(flag.ljust(_COLUMN), text) for flag, text in rows], col_max=_COLUMN)
