"""Groups of commands, each imported when it is called: naming them all costs nothing."""

import importlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import click

from ci_agent.spelling import nearest

CommandTable: TypeAlias = Mapping[str, tuple[str, str]]
"""A command's name to `module:function` and its summary."""


class LazyGroup(click.Group):
    """A group whose commands stand in a table; its list of commands imports none of them."""

    def __init__(self, *args: Any, table: CommandTable, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in self.table:
            return None
        module, _, name = self.table[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)  # noqa: S101 - the tables are ours; a test walks them
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.table and not args[0].startswith("-"):
            if args[0] in {"help", "version"}:
                ctx.fail(f"No such command {args[0]!r}. Say {ctx.command_path} --{args[0]}.")
            meant = nearest(args[0], self.table)
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {meant!r}?" if meant else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.table.items()])
