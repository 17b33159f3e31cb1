"""Which requests a rule grants or forbids: hosts, addresses, schemes, ports, methods."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

from ci_agent.policy.facts import NetFact
from ci_agent.policy.matchers.hosts import (
    HostPattern,
    Network,
    NetworkIndex,
    parse_host_pattern,
    parse_method,
    parse_port,
    parse_scheme,
)
from ci_agent.policy.rules import Rule
from ci_agent.urls import DEFAULT_PORTS, Address, Url

_LOCAL_NAMES: Final = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
_METADATA_NAMES: Final = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})
_LOOPBACK: Final[tuple[Address, ...]] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
_PRIVATE_ENDINGS: Final = tuple(
    f".{name}"
    for name in "local internal localdomain home.arpa lan intranet corp home private svc".split()  # noqa: SIM905  # shorter
)
"""Names that the public internet does not have: they are set aside for networks of one's own, or used so."""
_HOLDS_IPV4: Final = tuple(map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96")))
"""Addresses that stand for the IPv4 address in their last bits."""
_NOT_GLOBAL: Final[tuple[Network, ...]] = (
    *map(IPv6Network, ("fec0::/10", "5f00::/16", "3fff::/20")),
    IPv4Network("192.0.0.0/24"),
)
"""What Python does not tell apart, or only from some version on."""


@dataclass(frozen=True, slots=True)
class HostSet:
    """The hosts of one rule, arranged so that a look-up does not try them all."""

    names: frozenset[str]
    suffixes: frozenset[str]
    networks: tuple[Network, ...]
    any_public: bool
    ranges: NetworkIndex[Network] = field(compare=False, repr=False)
    """The networks once more."""

    def has_name(self, host: str) -> bool:
        return host in self.names or any(suffix in self.suffixes for suffix in suffixes(host))

    def has_address(self, address: Address) -> bool:
        return bool(self.networks) and any(True for each in equivalents(address) for _ in self.ranges.around(each))


@dataclass(frozen=True, slots=True)
class NetRule:
    """The matchers of one rule for requests; None: not written."""

    hosts: HostSet | None
    schemes: frozenset[str] | None
    ports: frozenset[int] | None
    methods: frozenset[str] | None

    @property
    def is_written(self) -> bool:
        return any(part is not None for part in (self.hosts, self.schemes, self.ports, self.methods))


_NOTHING: Final = NetRule(hosts=None, schemes=None, ports=None, methods=None)


def compile_net(rule: Rule) -> NetRule:
    """ValueError for a host, scheme, port or method that is none."""
    if (rule.host, rule.scheme, rule.port, rule.method) == (None, None, None, None):
        return _NOTHING
    return NetRule(
        hosts=None if rule.host is None else host_set([parse_host_pattern(text) for text in rule.host]),
        schemes=None if rule.scheme is None else frozenset(map(parse_scheme, rule.scheme)),
        ports=None if rule.port is None else frozenset(map(parse_port, rule.port)),
        methods=None if rule.method is None else frozenset(map(parse_method, rule.method)),
    )


def host_set(patterns: Sequence[HostPattern]) -> HostSet:
    networks = tuple(pattern.network for pattern in patterns if pattern.network is not None)
    return HostSet(
        names=frozenset(pattern.name for pattern in patterns if pattern.name is not None),
        suffixes=frozenset(pattern.suffix for pattern in patterns if pattern.suffix is not None),
        networks=networks,
        any_public=any(pattern.text == "**" for pattern in patterns),
        ranges=NetworkIndex((network, network) for network in networks),
    )


def request_refusal(rule: NetRule, request: NetFact) -> str | None:
    """Why an allow rule does not grant the request; None: it does."""
    url = request.url
    if url.scheme not in (rule.schemes or {"https"}):
        return f"the scheme {url.scheme} is not listed"
    if url.port not in (rule.ports or {DEFAULT_PORTS.get(url.scheme)}):
        return f"port {url.port} is not listed"
    if request.method not in (rule.methods or {"GET"}):
        return f"the method {request.method} is not listed"
    return host_refusal(rule.hosts, url)


def host_refusal(hosts: HostSet | None, url: Url) -> str | None:
    """None for hosts: the rule does not say; that is any public host."""
    named = hosts is not None and (hosts.has_name(url.host) if url.address is None else hosts.has_address(url.address))
    if named:
        return None
    if is_private(url):
        return f"{url.host} is private or local, and must be named"
    return None if hosts is None or hosts.any_public else f"the host {url.host} is not listed"


def forbids_request(rule: NetRule, request: NetFact) -> bool:
    """Whether a deny rule's matchers, as far as they are written, are about the request."""
    url = request.url
    return (
        (rule.hosts is None or may_be_host(rule.hosts, url))
        and (rule.schemes is None or url.scheme in rule.schemes)
        and (rule.ports is None or url.port in rule.ports)
        and (rule.methods is None or request.method in rule.methods)
    )


def is_private(url: Url) -> bool:
    """Loopback, link-local, private or otherwise not of the public internet, as an address or as a known name."""
    if url.address is not None:
        return is_private_address(url.address)
    host = url.host
    return "." not in host or _is_local_name(host) or host in _METADATA_NAMES or host.endswith(_PRIVATE_ENDINGS)


def is_private_address(address: Address) -> bool:
    return any(map(_is_of_ones_own, equivalents(address)))


def _is_of_ones_own(address: Address) -> bool:
    return not address.is_global or address.is_multicast or any(address in network for network in _NOT_GLOBAL)


def equivalents(address: Address) -> Iterator[Address]:
    """The address, and the IPv4 addresses that it may reach by translation."""
    yield address
    if not isinstance(address, IPv6Address):
        return
    inner = [address.ipv4_mapped, address.sixtofour]
    if address.teredo is not None:
        inner.append(address.teredo[1])
    if any(address in network for network in _HOLDS_IPV4):
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    yield from (each for each in inner if each is not None)


def may_be_host(hosts: HostSet, url: Url) -> bool:
    """Whether a deny rule's hosts are about the host: in doubt they are."""
    if hosts.any_public:
        return True
    return (url.address is None and hosts.has_name(url.host)) or any(map(hosts.has_address, addresses_of(url)))


def addresses_of(url: Url) -> tuple[Address, ...]:
    """As far as they are known without asking for the host."""
    if url.address is not None:
        return (url.address,)
    return _LOOPBACK if _is_local_name(url.host) else ()


def _is_local_name(host: str) -> bool:
    return host in _LOCAL_NAMES or host.endswith(".localhost")


def suffixes(host: str) -> Iterator[str]:
    """Every `.x` that the host ends in."""
    at = host.find(".")
    while at >= 0:
        yield host[at:]
        at = host.find(".", at + 1)
