"""What one selector picks, arranged so that a test is not held against each value by itself.

A call may hold a thousand values, and a policy a thousand tests of them.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from ci_agent.json_types import Json
from ci_agent.policy.compiled.match import CompiledTest
from ci_agent.policy.compiled.net import HostSet, addresses_of, equivalents, suffixes
from ci_agent.policy.matchers.argument_tests import Mismatch, Missing, type_name
from ci_agent.urls import Address, Url

Selected: TypeAlias = Sequence[Json | Missing | Mismatch]


class ManyValues:
    """Values of JSON; those that a selector cannot pick are left out."""

    def __init__(self, values: Selected, urls: Iterable[Url | None]) -> None:
        """`urls`: what the texts among the values mean as addresses, made when they are asked for."""
        self._values = [value for value in values if not isinstance(value, Missing | Mismatch)]
        self._urls = urls

    def any_may_pass(self, test: CompiledTest) -> bool | None:
        """Whether one passes or cannot be judged; None: the test has to be held against each."""
        kind = _kind_of_test(test)
        if kind == "enum":
            return self._any_in(test.test.enum or ())
        if kind == "bounds":
            return self._any_between(test.test.min, test.test.max)
        if kind == "types":
            names = test.test.types or ()
            return any(name in names or (name == "integer" and "number" in names) for name in self._type_names)
        if kind == "host" and test.hosts is not None:
            return test.hosts.any_public or self._hosts.any_of(test.hosts)
        return None

    def _any_in(self, options: Sequence[Json]) -> bool:
        kinds = {_kind(option) for option in options}
        return not (self._kinds <= kinds and self._keys.isdisjoint(map(_key, options)))

    def _any_between(self, least: float | None, most: float | None) -> bool:
        if not self._kinds <= {"number"}:
            return True
        numbers = self._numbers
        at = 0 if least is None else bisect_left(numbers, least)
        return at < len(numbers) and (most is None or numbers[at] <= most)

    @cached_property
    def _kinds(self) -> frozenset[str]:
        return frozenset(map(_kind, self._values))

    @cached_property
    def _type_names(self) -> frozenset[str]:
        return frozenset(map(type_name, self._values))

    @cached_property
    def _keys(self) -> frozenset[Hashable]:
        return frozenset(map(_key, self._values))

    @cached_property
    def _numbers(self) -> list[float]:
        return sorted(value for value in self._values if _kind(value) == "number")

    @cached_property
    def _hosts(self) -> "_Hosts":
        is_address = [isinstance(value, str) for value in self._values]
        return _hosts_of(list(self._urls), all(is_address))


@dataclass(frozen=True, slots=True)
class _Hosts:
    names: frozenset[str]
    endings: frozenset[str]
    addresses: dict[int, list[int]]
    """Sorted numbers, by the version."""
    is_unclear: bool
    """A value is no address."""

    def any_of(self, hosts: HostSet) -> bool:
        return (
            self.is_unclear
            or not hosts.names.isdisjoint(self.names)
            or not hosts.suffixes.isdisjoint(self.endings)
            or any(
                self._any_within(network.version, int(network.network_address), int(network.broadcast_address))
                for network in hosts.networks
            )
        )

    def _any_within(self, version: int, first: int, last: int) -> bool:
        numbers = self.addresses.get(version, [])
        at = bisect_left(numbers, first)
        return at < len(numbers) and numbers[at] <= last


def _hosts_of(urls: Sequence[Url | None], all_texts: bool) -> _Hosts:
    known = [url for url in urls if url is not None]
    named = {url.host for url in known if url.address is None}
    addresses: set[Address] = {each for url in known for one in addresses_of(url) for each in equivalents(one)}
    return _Hosts(
        frozenset(named),
        frozenset(ending for host in named for ending in suffixes(host)),
        {version: sorted(int(each) for each in addresses if each.version == version) for version in (4, 6)},
        is_unclear=not all_texts or len(known) < len(urls),
    )


def _kind_of_test(test: CompiledTest) -> str | None:
    """What the test asks, if it asks nothing else."""
    written = test.test
    asked = [
        kind
        for kind, is_asked in (
            ("enum", written.enum is not None),
            ("bounds", written.min is not None or written.max is not None),
            ("types", written.types is not None),
            ("host", written.host is not None),
            ("more", any(part is not None for part in (written.regex, written.path, written.command))),
        )
        if is_asked
    ]
    return asked[0] if len(asked) == 1 else None


def _kind(value: Json) -> str:
    name = type_name(value)
    return "number" if name == "integer" else name


def _key(value: Json) -> Hashable:
    """Equal for what is equal as JSON: 1 and 1.0 are one number, 1 and true are not."""
    if isinstance(value, list):
        return ("array", tuple(map(_key, value)))
    if isinstance(value, dict):
        return ("object", frozenset((name, _key(each)) for name, each in value.items()))
    return (_kind(value), value)
