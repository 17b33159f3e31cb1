"""The URLs that fetch takes: of the web, in their usual spelling."""

from dataclasses import dataclass
from ipaddress import IPv4Address
from urllib.parse import quote

from ci_agent.errors import ToolError
from ci_agent.urls import DEFAULT_PORTS, Address, InvalidUrlError, Url, parse_url

_PRINTABLE_ASCII = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True)
class WebUrl:
    text: str
    """As it was given."""
    scheme: str
    host: str
    """Lower case, without a last dot; an IPv6 address without its brackets."""
    port: int
    address: Address | None
    """Set when the host is an address."""
    target: str
    """Path and query as they are sent, in ASCII."""

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def parse_web_url(text: str) -> WebUrl:
    """ToolError for text that is no URL, is none of the web, or could be read in more than one way."""
    try:
        url = parse_url(text)
    except InvalidUrlError as error:
        raise ToolError(
            f"the URL is not one that fetch takes: {error}. Write https://host/path, the host in plain ASCII without "
            "user name or password, blanks and backslashes percent-encoded."
        ) from error
    if url.scheme not in ("http", "https") or url.port is None:
        raise ToolError(f"fetch takes https:// and http:// alone, and this is {url.scheme}://.")
    if isinstance(url.address, IPv4Address) and not _is_spelled_out(url, text):
        raise ToolError(f"write the address in its usual spelling, {url.host}.")
    return WebUrl(text, url.scheme, url.host, url.port, url.address, _target(url.rest))


def _is_spelled_out(url: Url, text: str) -> bool:
    return text.partition("://")[2].startswith(url.host)


def _target(rest: str) -> str:
    target = quote(rest.partition("#")[0], safe=_PRINTABLE_ASCII)
    return target if target.startswith("/") else f"/{target}"
