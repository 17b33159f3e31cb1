"""The words that a program is given, arranged for deny rules that want one of them to be there (`has`)."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from ci_agent.policy.compiled.match import CompiledRule
from ci_agent.policy.matchers.command_patterns import TokenPattern
from ci_agent.policy.matchers.reach import fold
from ci_agent.policy.words import Word


class GivenWords:
    """A word is there as it stands, in a cluster of short options, as `--flag=value`, cut short; in doubt it is."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._words = words

    @cached_property
    def is_unclear(self) -> bool:
        """One of them may be anything."""
        return any(word.literal is None for word, _ in self._each)

    @cached_property
    def keys(self) -> frozenset[str]:
        """What `keys_of` a word that is there would have in common with them."""
        return frozenset(key for word, past_options in self._each for key in _keys_given(word.text, past_options))

    def has(self, token: TokenPattern) -> bool:
        if self.is_unclear or any(not self.keys.isdisjoint(keys_of(text)) for text in token.literals):
            return True
        return any(wild.longest in self._joined and any(map(wild.matches, self._texts)) for wild in token.wildcards)

    @cached_property
    def _each(self) -> list[tuple[Word, bool]]:
        """Each value that a word may have, and whether it stands behind a `--`."""
        found: list[tuple[Word, bool]] = []
        past_options = False
        for word in self._words[1:]:
            past_options = past_options or word.literal == "--"
            found += [(choice, past_options) for choice in _values(word)]
        return found

    @cached_property
    def _texts(self) -> list[str]:
        return list(dict.fromkeys(word.text for word, _ in self._each))

    @cached_property
    def _joined(self) -> str:
        return "\0".join(self._texts)


def _values(word: Word) -> Iterator[Word]:
    if word.kind != "choice":
        yield word
        return
    for choice in word.choices:
        yield from _values(choice)


def _keys_given(text: str, past_options: bool) -> Iterator[str]:
    yield f"text {text}"
    if not past_options and text.startswith("-"):
        yield f"name {text.partition('=')[0]}"
        if not text.startswith("--"):
            yield from (f"letter {letter}" for letter in text[1:])


def keys_of(flag: str) -> set[str]:
    """A word of a rule is among those given if they have one of these in common."""
    if not flag.startswith("-"):
        return {f"text {flag}"}
    if flag.startswith("--"):
        # Programs take abbreviations of long options.
        return {f"name {flag}", *(f"name {flag[:size]}" for size in range(3, len(flag)))}
    # To programs that write long options with one dash, two mean the same.
    other = f"name -{flag}" if len(flag) > 2 else f"letter {flag[1:]}"
    return {f"name {flag}", other}


class RulesByWord:
    """Deny rules that want one of certain words, by these and by the program that they name."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self.rules = [rule for rule in rules if _spells_its_words(rule)]
        self._by_key: dict[tuple[str, str], list[CompiledRule]] = {}
        for rule in self.rules:
            programs = _programs(rule)
            for key in {key for token in rule.has or () for text in token.literals for key in keys_of(text)}:
                for program in programs:
                    self._by_key.setdefault((program, key), []).append(rule)

    def candidates(self, words: Sequence[Word], given: GivenWords) -> list[CompiledRule]:
        """In any order, some of them perhaps several times."""
        if not self.rules:
            return []
        if given.is_unclear or words[0].literal is None:
            return self.rules
        names = ("", fold(words[0].text.rpartition("/")[2]))
        return [rule for name in names for key in given.keys for rule in self._by_key.get((name, key), ())]


def _spells_its_words(rule: CompiledRule) -> bool:
    return rule.has is not None and not any(token.wildcards for token in rule.has)


def _programs(rule: CompiledRule) -> set[str]:
    """By base name; an empty one stands for any program."""
    found: set[str] = set()
    for pattern in rule.commands or ():
        first = pattern.tokens[0] if pattern.tokens else None
        if first is None or first.wildcards:
            return {""}
        found |= {fold(text.rpartition("/")[2]) for text in first.literals}
    return found or {""}
