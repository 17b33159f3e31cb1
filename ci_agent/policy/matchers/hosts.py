"""Patterns for hosts: names, names with wildcards, addresses and ranges of addresses."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Generic, TypeAlias, TypeVar

from ci_agent.urls import Address, InvalidUrlError, parse_host

Network: TypeAlias = IPv4Network | IPv6Network

Payload = TypeVar("Payload")

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_METHOD = re.compile(r"[A-Z]+")


@dataclass(frozen=True, slots=True)
class HostPattern:
    """Exactly one of `name`, `suffix` and `network` is set, or none of them: any public host."""

    text: str
    name: str | None = None
    """A host, exactly."""
    suffix: str | None = None
    """`.x`: any host with one or more labels before it."""
    network: Network | None = None
    """An address is a range of one."""


class NetworkIndex(Generic[Payload]):
    """Finds what belongs to the ranges that an address lies in, without trying all of them."""

    def __init__(self, entries: Iterable[tuple[Network, Payload]]) -> None:
        self._by_size: dict[tuple[int, int], dict[int, list[Payload]]] = {}
        for network, payload in entries:
            free_bits = network.max_prefixlen - network.prefixlen
            alike = self._by_size.setdefault((network.version, free_bits), {})
            alike.setdefault(int(network.network_address) >> free_bits, []).append(payload)

    def around(self, address: Address) -> Iterator[Payload]:
        for (version, free_bits), alike in self._by_size.items():
            if version == address.version:
                yield from alike.get(int(address) >> free_bits, ())


@lru_cache(maxsize=16_384)
def parse_host_pattern(text: str) -> HostPattern:
    """`docs.python.org`, `*.example.com`, `**`, `127.0.0.1`, `10.0.0.0/8`, `[::1]`; ValueError for anything else.

    Each is asked for twice: when the file is checked, and when its rules are compiled.
    """
    if text == "**":
        return HostPattern(text)
    if text == "*":
        raise ValueError("`*` alone is no host; write `**` for any public host or `*.example.com` for its subdomains")
    if "://" in text:
        raise ValueError(f"{text!r} is a URL; a host is written without scheme and path")
    if "/" in text:
        return HostPattern(text, network=_network(text))
    if text.count(":") > 1 and not text.startswith("["):
        return _host(f"[{text}]")
    if text.startswith("*."):
        return HostPattern(text, suffix="." + _name(text[2:], text))
    return _host(text)


def parse_scheme(text: str) -> str:
    """A URL scheme in lower case, such as `https`; ValueError for what no scheme can be."""
    if not _SCHEME.fullmatch(text.lower()):
        raise ValueError(f"{text!r} is no URL scheme; write https or http")
    return text.lower()


def parse_port(number: int) -> int:
    if isinstance(number, bool) or not 1 <= number <= 65_535:
        raise ValueError(f"{number!r} is no port; ports are 1 to 65535")
    return number


def parse_method(text: str) -> str:
    """An HTTP method in upper case; ValueError for what no method can be."""
    if not _METHOD.fullmatch(text.upper()):
        raise ValueError(f"{text!r} is no HTTP method; write GET, HEAD, POST and the like")
    return text.upper()


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no range of addresses: {error}") from error


def _host(text: str) -> HostPattern:
    try:
        name, address = parse_host(_to_ascii(text))
    except InvalidUrlError as error:
        raise ValueError(_explain(text, str(error))) from error
    if address is not None:
        return HostPattern(text, network=_network(str(address)))
    return HostPattern(text, name=name)


def _name(text: str, pattern: str) -> str:
    try:
        name, address = parse_host(_to_ascii(text))
    except InvalidUrlError as error:
        raise ValueError(_explain(pattern, str(error))) from error
    if address is not None:
        raise ValueError(f"{pattern!r} mixes a wildcard and an address; write a range such as 10.0.0.0/8")
    return name


def _to_ascii(text: str) -> str:
    if text.isascii():
        return text
    try:
        return text.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise ValueError(f"{text!r} is no host name: {error}") from error


def _explain(text: str, problem: str) -> str:
    hint = "; a `*` may only stand before the first dot (*.example.com)" if "*" in text else ""
    return f"{text!r} is no host: {problem}{hint}"
