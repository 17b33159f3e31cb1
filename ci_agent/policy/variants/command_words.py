"""A simple command made hostile word by word: its files, its URLs."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ci_agent.policy.effects import Effects, FileEffect
from ci_agent.policy.gathering.site import Site
from ci_agent.policy.lint.finding import Witness
from ci_agent.policy.shell.program import BoundExceededError, UnparsableError
from ci_agent.policy.variants.plainly import lists_scheme, reaches
from ci_agent.policy.variants.urls import url_variants
from ci_agent.policy.variants.variant import RuleTest, Variant, never
from ci_agent.policy.words import literal_word

HIDDEN: Final = ("\u202e", "\u200b", "\u2028")
"""Characters that reorder text, have no width, or end a line."""


def simple_commands(site: Site, command: str) -> list[tuple[str, ...]]:
    """The commands of a line that run where it starts and whose words are all known; empty when it has none."""
    try:
        commands = site.analyse(command, site.environment, "bash").commands
    except (UnparsableError, BoundExceededError):
        return []
    known = [[word.literal for word in each.words] for each in commands if not each.folder]
    whole = [tuple(text for text in texts if text is not None) for texts in known]
    return [words for words, texts in zip(whole, known, strict=True) if words and len(words) == len(texts)]


def word_variants(site: Site, words: Sequence[str], canary: str) -> Iterator[Variant]:
    """Other files and other URLs in the place of those that it names, and a file more."""
    for at in range(1, len(words) + 1):
        if at == len(words) or not words[at].startswith("-"):
            yield from _file_variants(site, words, at, canary)
    yield from _input_variants(site, words, canary)
    effects = _effects(site, words)
    for at, word in enumerate(words):
        if any(use.url.literal == word for use in effects.urls):
            for url in url_variants(word, canary):
                yield Variant("URL", _call(words, at, shlex.quote(url.text)), says=_also_file(url.text, url.says))


def file_effects(site: Site, words: Sequence[str], at: int, path: str) -> set[FileEffect]:
    """What the command would do to a path that takes the place of a word, or comes behind the last one."""
    changed = [*words[:at], path, *words[at + 1 :]]
    return {use.effect for use in _effects(site, changed).files if use.path.literal == path}


def with_word(words: Sequence[str], at: int, text: str) -> str:
    """The command line with shell text in place of a word, or behind the last one."""
    return " ".join([*map(shlex.quote, words[:at]), text, *map(shlex.quote, words[at + 1 :])])


def _input_variants(site: Site, words: Sequence[str], canary: str) -> Iterator[Variant]:
    command = shlex.join(words)
    for text, says in _outside(site, canary):
        for line in (f"{command} < {text}", f"< {text} {command}", f"timeout 5 {command} < {text}"):
            yield Variant("path", Witness("bash", {"command": line}), says=says)


def _file_variants(site: Site, words: Sequence[str], at: int, canary: str) -> Iterator[Variant]:
    if not file_effects(site, words, at, f"../{canary}"):
        return
    for text, says in _outside(site, canary):
        yield Variant("path", _call(words, at, text), says=says)
    word = words[at] if at < len(words) else canary
    for char in HIDDEN:
        if file_effects(site, words, at, word + char):
            yield Variant("hidden character", _call(words, at, shlex.quote(word + char)))


def _outside(site: Site, canary: str) -> Iterator[tuple[str, RuleTest]]:
    """Paths out of the workspace, as shell text."""
    root, home = site.workspace.root, site.around.home
    above, absolute = reaches(site, root.parent / canary), reaches(site, Path(f"/{canary}/y"))
    at_home = never if home is None else reaches(site, home / canary)
    yield from ((text, above) for text in (f"../{canary}", f"{canary}/../../{canary}", f'"$PWD/../{canary}"'))
    yield from ((text, absolute) for text in (f"/{canary}/y", f"//{canary}/./y"))
    yield from ((text, at_home) for text in (f"~/{canary}", f'"$HOME"/{canary}'))
    yield from ((text, never) for text in ("/proc/self/environ", "/dev/../proc/self/mem", f'"$Y"/{canary}'))


def _also_file(text: str, says: RuleTest) -> RuleTest:
    """A rule may take `file:` URLs for files."""
    return lists_scheme("file") if text.startswith("file:") else says


def _effects(site: Site, words: Sequence[str]) -> Effects:
    return site.interpret(tuple(map(literal_word, words)))


def _call(words: Sequence[str], at: int, text: str) -> Witness:
    return Witness("bash", {"command": with_word(words, at, text)})
