"""URLs that look like the one that was meant and lead elsewhere."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ci_agent.policy.variants.plainly import lists_host, lists_port, lists_scheme
from ci_agent.policy.variants.variant import RuleTest, never
from ci_agent.urls import DEFAULT_PORTS, InvalidUrlError, Url, parse_url

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
    port = "" if url.port in (None, DEFAULT_PORTS.get(url.scheme)) else f":{url.port}"
    elsewhere = f"{canary}.example"
    yield from map(HostileUrl, _malformed(url, host, port, elsewhere))
    for name in (elsewhere, f"{elsewhere}.", f"{host}.{elsewhere}", f"{canary}{host}"):
        yield HostileUrl(f"{url.scheme}://{name}{port}{url.rest}", lists_host(name.removesuffix(".")))
    for address, spellings in _ADDRESSES.items():
        for spelling in spellings:
            yield HostileUrl(f"{url.scheme}://{spelling}{port}{url.rest}", lists_host(address))
    for scheme in _SCHEMES:
        if scheme != url.scheme:
            yield HostileUrl(f"{scheme}://{host}{port}{url.rest}", lists_scheme(scheme))
    yield HostileUrl("file:///etc/passwd", lists_scheme("file"))
    yield HostileUrl(f"{url.scheme}://{host}:{_OTHER_PORT}{url.rest}", lists_port(_OTHER_PORT))


def _malformed(url: Url, host: str, port: str, elsewhere: str) -> Iterator[str]:
    """Programs read these differently, so no rule can mean them."""
    for authority in (
        *(f"{host}@{elsewhere}", f"user:password@{host}", f"{elsewhere}\\@{host}", f"{host}\\.{elsewhere}"),
        *(f"{host}%2e{elsewhere}", f"{host}\t.{elsewhere}", f"{host}..", f"{host}\u200b"),
    ):
        yield f"{url.scheme}://{authority}{port}{url.rest}"
    yield f"{url.scheme}://{host}:0x1bb{url.rest}"
    yield f"{url.scheme}:{host}{port}{url.rest}"
    yield f"{url.scheme}:///{host}{port}{url.rest}"
