"""How GitHub's runner reads the files by which a step commands it (actions/runner, FileCommandManager.cs)."""

from collections.abc import Iterator


def read_outputs(text: str) -> dict[str, str]:
    """The values of a file of `GITHUB_OUTPUT`; ValueError where the runner marks the step as failed."""
    values: dict[str, str] = {}
    lines = iter(text.split("\n")[:-1] if text.endswith("\n") else _refuse_torn(text))
    for line in lines:
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            values[line[:equals]] = line[equals + 1 :]
        elif heredoc >= 0:
            values[line[:heredoc]] = _heredoc(lines, line[heredoc + 2 :])
        else:
            raise ValueError(f"invalid format {line!r}")
    return values


def _refuse_torn(text: str) -> list[str]:
    if text:
        raise ValueError("the last line has no end")
    return []


def _heredoc(lines: Iterator[str], delimiter: str) -> str:
    if not delimiter:
        raise ValueError("no delimiter")
    held: list[str] = []
    for line in lines:
        if line == delimiter:
            return "\n".join(held)
        held.append(line)
    raise ValueError("the delimiter does not come again")
