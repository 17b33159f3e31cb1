"""Command lines and effects in a notation that reads well in tables."""

import shlex
from collections.abc import Callable, Iterator

import pytest

from ci_agent.policy.effects import Effects, FileUse, InnerCommand
from ci_agent.policy.words import Word, literal_word

Describe = Callable[[Effects], list[str]]
ReadWords = Callable[[str], tuple[Word, ...]]


@pytest.fixture(scope="session")
def read_words() -> ReadWords:
    """Words as a shell would split them, with `«x»` for a value that nobody knows (one word; `…` behind it: any
    number), `⟨*.py⟩` for a glob, `⟨a|b⟩` for a word with several values, `⏎` for a newline in
    a word, and a quoted `<(...)` for the path of a pipe."""
    return _read_words


def _read_words(line: str) -> tuple[Word, ...]:
    return tuple(_word(text) for text in shlex.split(line.replace("⏎", "\n")))


def _word(text: str) -> Word:
    if text.startswith(("<(", ">(")):
        return Word("unknown", text, (0, 0), pipe=True)
    if "«" in text:
        splits = text.endswith("…")
        return Word("unknown", text.removesuffix("…"), (0, 0), prefix=text.partition("«")[0], splits=splits)
    if text.startswith("⟨") and "|" in text:
        choices = tuple(literal_word(choice) for choice in text.strip("⟨⟩").split("|"))
        return Word("choice", text, (0, 0), choices=choices)
    if "⟨" in text:
        return Word("glob", text.replace("⟨", "").replace("⟩", ""), (0, 0))
    return literal_word(text)


@pytest.fixture(scope="session")
def describe() -> Describe:
    """All that effects say, one fact a line."""
    return lambda effects: list(_lines(effects)) or ["nothing"]


def _lines(effects: Effects) -> Iterator[str]:
    yield from [] if effects.known else ["no profile"]
    yield from ["transparent"] if effects.transparent else []
    if effects.looked_through:
        yield "looks through " + " ".join(map(str, effects.looked_through))
    if effects.folder is not None:
        yield f"works in {effects.folder.text}"
    yield from map(_file, effects.files)
    yield from (f"{url.method} {url.url.text}" for url in effects.urls)
    yield from map(_command, effects.commands)
    yield from (f"shell {script.text}" for script in effects.scripts)
    yield from (f"hazard {at}: {why}" for at, why in effects.hazards)
    if effects.may_be_options:
        yield "may be options: " + " ".join(map(str, effects.may_be_options))
    if effects.problem is not None:
        yield f"unknown: {effects.problem}"


def _file(use: FileUse) -> str:
    beneath = " beneath" if use.recursive else ""
    return f"{use.effect} {use.path.text}{beneath}" + "".join(f" <- {word.text}" for word in use.into)


def _command(inner: InnerCommand) -> str:
    assigned = [f"{name}={value.text}" for name, value in inner.assignments]
    where = [f"(in {inner.folder.text})"] if inner.folder else []
    return " ".join(["runs", *assigned, *map(_shown, inner.words), *where])


def _shown(word: Word) -> str:
    if word.beneath:
        return f"«beneath {' '.join(folder.text for folder in word.beneath)}»"
    return word.text if word.literal is not None else f"«{word.text}»"
