"""The URLs that fetch takes: only those that every program reads in the same way."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias
from urllib.parse import quote

from ci_agent.errors import ToolError

Address: TypeAlias = IPv4Address | IPv6Address

MAX_URL_CHARS = 8_192

_DEFAULT_PORTS = {"http": 80, "https": 443}

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f.]*:[0-9a-f:.]*\]|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?\.?)(?::(?P<port>[1-9][0-9]{0,4}))?"
    r"(?P<target>[/?][^\x00-\x20\x7f\\#]*)?(?:#[^\x00-\x20\x7f\\]*)?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
_PRINTABLE_ASCII = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True)
class WebUrl:
    text: str
    """As it was given."""
    scheme: str
    host: str
    """Lower case, without a last dot; an IPv6 address without its brackets."""
    port: int
    target: str
    """Path and query as they are sent, in ASCII."""

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def address(self) -> Address | None:
        """Set when the host is an address."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None


def parse_web_url(text: str) -> WebUrl:
    """ToolError for text that is no URL, is none of the web, or could be read in more than one way."""
    match = _URL.fullmatch(text) if len(text) <= MAX_URL_CHARS and _is_encodable(text) else None
    if match is None:
        raise ToolError(
            "the URL is not one that fetch takes: write https://host/path, at most 8,192 characters, the host in plain "
            "ASCII without user name or password, blanks and backslashes percent-encoded."
        )
    host = match["host"].lower().strip("[]").removesuffix(".")
    port = int(match["port"] or _DEFAULT_PORTS[match["scheme"].lower()])
    target = quote(match["target"] or "/", safe=_PRINTABLE_ASCII)
    url = WebUrl(text, match["scheme"].lower(), host, port, target if target.startswith("/") else f"/{target}")
    if url.address is None and (":" in host or _NUMBER.fullmatch(host.rpartition(".")[2])):
        raise ToolError(f"{host} is no address in its usual spelling; write an IPv4 address as four decimal numbers.")
    if port > 65_535:
        raise ToolError(f"{port} is no port.")
    return url


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)
