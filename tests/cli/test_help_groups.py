"""The help of commands with many options: each option once, under a heading, in the order of the table."""

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from ci_agent.cli.app import cli
from ci_agent.cli.help_groups import RUN_GROUPS, GroupedCommand, long_flag
from ci_agent.cli.run import run_command

MAX_UNGROUPED = 15
CONTEXT = click.Context(cli, **cli.context_settings)


def commands(group: click.Group, *names: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name in group.list_commands(CONTEXT):
        command = group.get_command(CONTEXT, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)
        else:
            yield (*names, name), command


def shown_flags(command: click.Command) -> list[str]:
    params = command.get_params(click.Context(command, parent=CONTEXT))
    return [long_flag(each) for each in params if isinstance(each, click.Option) and not each.hidden]


COMMANDS = dict(commands(cli))
GROUPED = [names for names, command in COMMANDS.items() if isinstance(command, GroupedCommand)]


def test_commands_with_many_options_have_headings() -> None:
    many = [names for names, command in COMMANDS.items() if len(shown_flags(command)) > MAX_UNGROUPED]
    assert many == GROUPED == [("run",), ("doctor",)]


def test_every_option_of_a_run_is_in_exactly_one_group() -> None:
    grouped = [flag for flags in RUN_GROUPS.values() for flag in flags]
    assert sorted(grouped) == sorted(shown_flags(run_command))


@pytest.mark.parametrize("names", GROUPED)
def test_the_help_shows_each_option_once_in_the_order_of_its_groups(names: tuple[str, ...]) -> None:
    command = COMMANDS[names]
    assert isinstance(command, GroupedCommand)
    shown = set(shown_flags(command))
    wanted = [
        line
        for heading, flags in command.groups.items()
        if shown & set(flags)
        for line in (heading, *(flag for flag in flags if flag in shown))
    ]
    text = CliRunner().invoke(cli, [*names, "--help"]).stdout
    told = re.findall(r"^(?:(\w[\w ]*):$|  (?:-h, )?(--[a-z-]+)\b)", text, re.MULTILINE)
    assert [heading or flag for heading, flag in told] == wanted
    assert all(line == line.rstrip() for line in text.splitlines())


def test_an_option_in_no_group_is_shown_last() -> None:
    options = [click.Option(["--known"], help="One."), click.Option(["-n", "--new"], help="Two.")]
    command = GroupedCommand("c", params=[*options, click.Argument(["words"])], groups={"Known": ("--known",)})
    text = CliRunner().invoke(command, ["--help"], terminal_width=80).stdout
    at = [text.index(line) for line in ("Known:\n  --known", "More:\n  -n, --new")]
    assert at == sorted(at)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run"], ["[required without --task]"]),
        (["doctor"], []),
        (["policy", "list"], []),
        (["policy", "explain"], ["[required]"]),
    ],
)
def test_a_policy_is_required_where_no_task_says_it(words: list[str], said: list[str]) -> None:
    text = " ".join(CliRunner().invoke(cli, [*words, "--help"]).output.split())
    assert re.findall(r"\[required[^]]*\]", text) == said
