"""Finding the rules worth trying, so that ten thousand rules cost a call no more than ten."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from ci_agent.hooks import OnDenied
from ci_agent.json_types import JsonObject
from ci_agent.policy.compiled.given_words import RulesByWord
from ci_agent.policy.compiled.match import CompiledRule
from ci_agent.policy.compiled.net import addresses_of, equivalents, suffixes
from ci_agent.policy.effects import FileEffect
from ci_agent.policy.facts import ExecFact, FileFact
from ci_agent.policy.matchers.command_patterns import CommandPattern
from ci_agent.policy.matchers.hosts import Network, NetworkIndex
from ci_agent.policy.matchers.open_names import may_cover
from ci_agent.policy.matchers.reach import GlobIndex, Names, fold
from ci_agent.policy.matchers.wildcard_index import WildcardIndex
from ci_agent.policy.matchers.wildcards import Wildcard
from ci_agent.policy.words import Word, literal_word
from ci_agent.urls import Url

SHARED_DENIES: Final[dict[FileEffect, tuple[str, ...]]] = {
    "read": ("read",),
    "list": (),
    "write": ("write", "edit"),
    "delete": ("write", "edit"),
}
"""A deny rule for these tools binds whatever has the effect, whoever causes it."""

_MAX_TOOLS = 256
"""Tool names whose rules are kept at hand; a model may invent any number of them."""


_STRICTNESS: Final[tuple[OnDenied, ...]] = ("stop", "fail", "record")

MAX_NEAREST = 20
"""Rules among which the nearest to a denied call is looked for."""


class RuleIndex:
    """All rules of a policy, arranged by tool."""

    def __init__(self, rules: Iterable[CompiledRule]) -> None:
        self._by_name: dict[str, list[CompiledRule]] = {}
        self._by_pattern: list[CompiledRule] = []
        self._tools: dict[str, ToolRules] = {}
        for rule in rules:
            names = [name for pattern in rule.tools for name in pattern.literals or ()]
            if any(pattern.literals is None for pattern in rule.tools):
                self._by_pattern.append(rule)
            else:
                for name in dict.fromkeys(names):
                    self._by_name.setdefault(name, []).append(rule)

    def for_tool(self, name: str) -> "ToolRules":
        """The rules about one tool, allow rules and deny rules apart."""
        found = self._tools.get(name)
        if found is None:
            found = ToolRules(list(self._about(name)))
            if len(self._tools) >= _MAX_TOOLS:
                self._tools.clear()
            self._tools[name] = found
        return found

    def _about(self, name: str) -> Iterator[CompiledRule]:
        # A deny rule may mean a name that it does not spell (`a___b`), so the patterns judge every name.
        yield from self._by_name.get(name, ())
        yield from (rule for rule in self._by_pattern if _is_about(rule, name))


class ToolRules:
    """The rules about one tool, in their canonical order."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        ordered = sorted(rules, key=canonical_order)
        self.allow = [rule for rule in ordered if rule.rule.effect == "allow"]
        self.deny = [rule for rule in ordered if rule.rule.effect == "deny"]
        self.deny_by_arguments = [rule for rule in self.deny if rule.args]
        self.testing_paths = [rule for rule in self.allow if any(test.test.path is not None for test in rule.args)]
        self.programs = ProgramIndex(self.allow)
        self.denied_words = RulesByWord(self.deny)
        by_word = set(map(id, self.denied_words.rules))
        self.denied_programs = ProgramIndex([rule for rule in self.deny if id(rule) not in by_word], denies=True)
        self.paths = GlobIndex((glob, rule) for rule in self.allow for glob in rule.reach or ())
        self.denies = FileDenies(self.deny)
        self.hosts = HostIndex(self.allow)
        self.denied_hosts = HostIndex(self.deny)
        self.arguments = ArgumentIndex(self.allow)

    @property
    def is_forbidden(self) -> bool:
        """A deny rule without any matcher is about every call."""
        return any(is_bare(rule) for rule in self.deny)


_FEW_DENIED: Final = 200
"""So many globs are looked at one by one."""


class FileDenies:
    """Deny rules about files: those with globs, and those that forbid everywhere."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self.everywhere = [rule for rule in rules if is_bare(rule)]
        plain = [rule for rule in rules if rule.reach is not None and not rule.args]
        self.plain = frozenset(rule.id for rule in plain)
        """Ids of those with globs."""
        globs = [(glob, rule) for rule in plain for glob in rule.reach or ()]
        self._all = globs
        self._globs = GlobIndex(globs)
        self._few = [glob for glob, _ in globs] if len(globs) <= _FEW_DENIED else None
        self._open = GlobIndex((glob, rule) for glob, rule in globs if glob.last is None)
        lasts = [glob.last for glob, _ in globs]
        self._last_names = frozenset(last.literal for last in lasts if last is not None and last.literal is not None)
        wild = {last for last in lasts if last is not None and last.literal is None}
        self._endings = tuple(last.chunks[1] for last in wild if len(last.chunks) == 2 and not last.chunks[0])
        self._last_patterns = [(last.longest, last) for last in wild if len(last.chunks) != 2 or last.chunks[0]]

    def __bool__(self) -> bool:
        return bool(self.everywhere or self._globs)

    def about(self, fact: FileFact) -> CompiledRule | None:
        """The first rule that forbids the path itself."""
        lists = fact.is_folder and fact.effect in ("read", "list")
        found = list(self.everywhere)
        for names in fact.denied_names:
            for glob, rule in self._globs.near(names):
                if glob.covers_listing(names) if lists else glob.covers(names):
                    found.append(rule)
        return min(found, key=strictest_first, default=None)

    def about_open(self, paths: Sequence[Names], spend: Callable[[int], None]) -> CompiledRule | None:
        """The first rule that may forbid one of the paths that open ones may become; folded."""
        spend(len(paths) * len(self._all))
        found = [rule for glob, rule in self._all if any(may_cover(glob, names) for names in paths)]
        return min([*self.everywhere, *found], key=strictest_first, default=None)

    def about_names(self, names: Names) -> CompiledRule | None:
        """The first rule that forbids a folded path."""
        return min(self._globs.covering(names), key=strictest_first, default=None)

    def may_reach_into(self, folders: Iterable[Names]) -> bool:
        """Whether a rule may forbid something in or beneath one of the folders, whatever is there; folded."""
        return self._few is None or any(glob.reaches_into(names) for names in folders for glob in self._few)

    def about_any(self, folder: Names, held: Sequence[str]) -> CompiledRule | None:
        """The first rule that forbids one of the names that a folder holds; all of them folded."""
        # The empty name stands for whatever a closing wildcard covers, so that only telling names are looked up.
        telling = [name for name in held if name in self._last_names] if self._last_names else []
        if self._endings:
            telling += [name for name in held if name.endswith(self._endings)]
        if self._last_patterns:
            all_names = "/".join(held)
            likely = [last for longest, last in self._last_patterns if longest in all_names]
            telling += [name for name in held if any(last.matches(name) for last in likely)] if likely else []
        found = [rule for name in telling for rule in self._globs.covering((*folder, name))]
        found += self._open.covering((*folder, "")) if held else ()
        return min(found, key=strictest_first, default=None)


class ProgramIndex:
    """Rules by the program that their patterns name, and by the first argument after it when they spell one."""

    def __init__(self, rules: Sequence[CompiledRule], *, denies: bool = False) -> None:
        self._denies = denies
        self._by_words: dict[str, dict[str, list[CompiledRule]]] = {}
        self._named: dict[str, list[CompiledRule]] = {}
        programs: list[tuple[Wildcard | None, CompiledRule]] = []
        for rule in rules:
            if rule.commands is None and denies:
                programs.append((None, rule))
            for pattern in rule.commands or ():
                programs += self._add(pattern, rule)
        self._by_program = WildcardIndex(programs)

    def candidates(self, command: ExecFact) -> list[CompiledRule]:
        """Rules that may cover the command, by themselves or by spelling it inside an outer one."""
        return in_order(self.near(command))

    def near(self, command: ExecFact) -> list[CompiledRule]:
        """As `candidates`, in any order, some of them perhaps several times."""
        found = self._about(command)
        while command.origin is not None:
            command = command.origin.command
            found += self._about(command)
        return found

    def about_program(self, command: ExecFact) -> list[CompiledRule]:
        """Some of the rules that name the program, whatever arguments they want; for explanations."""
        return self._named.get(self._name(command.words[0].text), [])[:MAX_NEAREST]

    def _about(self, command: ExecFact) -> list[CompiledRule]:
        if command.located is None and not command.relocated:
            return self._about_spelled(self._name(command.words[0].text), command.words[1:])
        found: list[CompiledRule] = []
        for spelling in dict.fromkeys(map(self._name, command.program_spellings)):
            found += self._about_spelled(spelling, command.words[1:])
            for _, values in command.relocated:
                found += self._about_spelled(spelling, [literal_word(text) for texts in values for text in texts])
        return found

    def _about_spelled(self, program: str, words: Sequence[Word]) -> list[CompiledRule]:
        found = list(self._by_program.near(program))
        by_word = self._by_words.get(program)
        if by_word is None:
            return found
        if any(word.kind != "literal" for word in words):
            return found + self._named[program]
        for text in {word.text for word in words}:
            found += by_word.get(text, ())
        return found

    def _add(self, pattern: CommandPattern, rule: CompiledRule) -> Iterator[tuple[Wildcard | None, CompiledRule]]:
        """File the rule; what it yields is found by the program alone."""
        if not pattern.tokens:
            yield None, rule
            return
        seconds = _literals(pattern.tokens[1].alternatives) if len(pattern.tokens) > 1 else None
        for wild in pattern.tokens[0].alternatives:
            if wild.literal is None:
                yield (None if self._denies else wild), rule
                continue
            program = self._name(wild.literal)
            self._named.setdefault(program, []).append(rule)
            if seconds is None:
                yield Wildcard((program,)), rule
            for second in dict.fromkeys(seconds or ()):
                self._by_words.setdefault(program, {}).setdefault(second, []).append(rule)

    def _name(self, program: str) -> str:
        return fold(program.rpartition("/")[2]) if self._denies else program


class HostIndex:
    """Rules by the hosts that they name."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self._by_name: dict[str, list[CompiledRule]] = {}
        self._others: list[CompiledRule] = []
        networks: list[tuple[Network, CompiledRule]] = []
        for rule in rules:
            hosts = rule.net.hosts
            if hosts is None or hosts.any_public:
                self._others.append(rule)
                continue
            networks += [(network, rule) for network in hosts.networks]
            for name in hosts.names | hosts.suffixes:
                self._by_name.setdefault(name, []).append(rule)
        self._by_network = NetworkIndex(networks)

    def candidates(self, url: Url) -> list[CompiledRule]:
        found = [rule for name in (url.host, *suffixes(url.host)) for rule in self._by_name.get(name, ())]
        addresses = [each for address in addresses_of(url) for each in equivalents(address)]
        found += [rule for address in addresses for rule in self._by_network.around(address)]
        return in_order([*found, *self._others])


class ArgumentIndex:
    """Rules by a text that they want an argument to be, where they list such texts."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self._by_value: dict[tuple[str, str], list[CompiledRule]] = {}
        self._others: list[CompiledRule] = []
        for rule in rules:
            keys = _listed_texts(rule)
            if keys is None:
                self._others.append(rule)
            for key in keys or ():
                self._by_value.setdefault(key, []).append(rule)

    def candidates(self, arguments: JsonObject) -> list[CompiledRule]:
        texts = [(name, value) for name, value in arguments.items() if isinstance(value, str)]
        found = [rule for key in texts for rule in self._by_value.get(key, ())]
        return in_order([*found, *self._others])


def in_order(rules: list[CompiledRule]) -> list[CompiledRule]:
    """Each of the rules once, in their canonical order."""
    if len(rules) < 2:
        return rules
    found = {rule.id: rule for rule in rules}
    return sorted(found.values(), key=canonical_order) if len(found) > 1 else list(found.values())


def canonical_order(rule: CompiledRule) -> tuple[bool, str]:
    """Rules that count their calls come last; otherwise by id, so that the order of a file never matters."""
    return (rule.rule.max_calls is not None, rule.id)


def strictest_first(rule: CompiledRule) -> tuple[int, str]:
    """Of several rules that forbid the same, the one whose denial does most to the run decides."""
    return (_STRICTNESS.index(rule.on_denied), rule.id)


def is_bare(rule: CompiledRule) -> bool:
    """Without any matcher."""
    return rule.commands is None and rule.reach is None and not rule.args and not rule.net.is_written


def _is_about(rule: CompiledRule, tool: str) -> bool:
    if rule.rule.effect == "allow":
        return any(pattern.covers(tool) for pattern in rule.tools)
    return any(pattern.may_mean(tool) for pattern in rule.tools)


def _listed_texts(rule: CompiledRule) -> list[tuple[str, str]] | None:
    """An argument of the call with each text that the rule lets it be; None when it wants no such thing."""
    for test in rule.args:
        texts = test.test.enum
        if len(test.selector.steps) == 1 and texts is not None and all(isinstance(text, str) for text in texts):
            return [(test.selector.argument, text) for text in dict.fromkeys(texts)]
    return None


def _literals(alternatives: Sequence[Wildcard]) -> list[str] | None:
    texts = [wild.literal for wild in alternatives]
    known = [text for text in texts if text is not None]
    return known if len(known) == len(texts) else None
