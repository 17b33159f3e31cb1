"""Every command line of ci-agent that a page, a recipe or a starter shows is one that it takes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import ci_agent
from ci_agent.cli.app import cli

ROOT = Path(ci_agent.__file__).parent.parent

PAGES = sorted(
    [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / "examples").rglob("*.yml"),
        *(ROOT / "ci_agent" / "starter").glob("*.y*ml"),
    ]
)

FENCE = re.compile(r"^ *```\w+\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

COMMAND = re.compile(r"(?:^|[\s'(`])ci-agent +(?=[a-z-])(.*)")

END = {"|", ">", ">>", "2>", "&&", "||", ";", "&", ")", "<"}


def command_lines(page: Path) -> Iterator[str]:
    """What follows `ci-agent` in blocks of code, long lines joined; in YAML, folded ones too."""
    text = page.read_text()
    for block in FENCE.findall(text) if page.suffix == ".md" else [text]:
        joined = re.sub(r" *\\\n\s*", " ", block)
        joined = re.sub(r"(>-\n\s+(?:exec )?ci-agent [^\n]*(?:\n\s+(?!- )[^\n:]*(?=\n))*)", _unfolded, joined)
        lines = (line for line in joined.splitlines() if not line.lstrip().startswith(("#", "//")))
        yield from (found[1] for line in lines if (found := COMMAND.search(line)))


def _unfolded(match: re.Match[str]) -> str:
    return re.sub(r"\s*\n\s*", " ", match[0])


def words_of(line: str) -> list[str]:
    """Up to where the shell ends the command; Jenkins and Kotlin put it into quotes of their own."""
    line = line.replace("${'$'}", "$")
    line = line.removesuffix("'") if line.count("'") % 2 else line
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in END:
            break
        words.append(word)
    return words


def shown() -> list[tuple[str, str]]:
    return [(str(page.relative_to(ROOT)), line) for page in PAGES for line in command_lines(page)]


def parse(words: list[str]) -> None:
    """Raises click's UsageError when there is no such command or option."""
    command: click.Command = cli
    context = click.Context(command, info_name="ci-agent")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, click.Context(found, parent=context)
    command.make_parser(context).parse_args(list(words))


@pytest.mark.parametrize(("page", "line"), shown())
def test_a_command_line_that_is_shown_is_taken(page: str, line: str) -> None:
    parse(words_of(line))


def test_a_wrong_command_line_would_be_found() -> None:
    assert len(shown()) > 60
    for wrong in ("rnu x", "run --polcy x", "policy chek p.yml", "run --policy"):
        with pytest.raises(click.UsageError):
            parse(words_of(wrong))
