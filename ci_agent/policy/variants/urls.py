"""URLs that look like the one that was meant and lead elsewhere."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ci_agent.policy.urls import DEFAULT_PORTS, InvalidUrlError, Url, parse_url
from ci_agent.policy.variants.plainly import lists_host, lists_port, lists_scheme
from ci_agent.policy.variants.variant import RuleTest, never

_ADDRESSES: Final = {
    "127.0.0.1": ("127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]"),
    "::1": ("[::1]", "[0:0:0:0:0:0:0:1]"),
    "169.254.169.254": ("169.254.169.254", "0xa9fea9fe", "2852039166", "[::ffff:a9fe:a9fe]"),
}
"""Addresses that no policy for the public internet means, in the spellings that programs take."""

_SCHEMES: Final = ("http", "https", "ftp", "ws", "gopher")
_OTHER_PORT: Final = 8_022


class HostileUrl(NamedTuple):
    text: str
    says: RuleTest = never


def url_variants(text: str, canary: str) -> Iterator[HostileUrl]:
    """Nothing when the text is no URL."""
    try:
        url = parse_url(text)
    except InvalidUrlError:
        return
    host = f"[{url.host}]" if ":" in url.host else url.host
    elsewhere = f"{canary}.example"
    yield from _malformed(url, host, elsewhere)
    for name in (elsewhere, f"{elsewhere}.", f"{host}.{elsewhere}", f"{canary}{host}"):
        yield _to(url, name, lists_host(name.removesuffix(".")))
    for address, spellings in _ADDRESSES.items():
        for spelling in spellings:
            yield _to(url, spelling, lists_host(address))
    for scheme in _SCHEMES:
        if scheme != url.scheme:
            yield HostileUrl(f"{scheme}://{host}{url.rest}", lists_scheme(scheme))
    yield HostileUrl("file:///etc/passwd", lists_scheme("file"))
    yield _to(url, f"{host}:{_OTHER_PORT}", lists_port(_OTHER_PORT), with_port=False)


def _malformed(url: Url, host: str, elsewhere: str) -> Iterator[HostileUrl]:
    """Programs read these differently, so no rule can mean them."""
    authorities = (
        *(f"{host}@{elsewhere}", f"user:password@{host}", f"{elsewhere}\\@{host}", f"{host}\\.{elsewhere}"),
        *(f"{host}%2e{elsewhere}", f"{host}\t{elsewhere}", f"{host}..", f"{host}:0x1f90", f"{host}\u200b"),
    )
    yield from (HostileUrl(f"{url.scheme}://{authority}{url.rest}") for authority in authorities)
    yield HostileUrl(f"{url.scheme}:{host}{url.rest}")
    yield HostileUrl(f"{url.scheme}:///{host}{url.rest}")


def _to(url: Url, authority: str, says: RuleTest, *, with_port: bool = True) -> HostileUrl:
    is_usual = not with_port or url.port in (None, DEFAULT_PORTS.get(url.scheme))
    return HostileUrl(f"{url.scheme}://{authority}{'' if is_usual else f':{url.port}'}{url.rest}", says)
