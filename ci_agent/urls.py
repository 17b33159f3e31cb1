"""The one interpretation of a URL: refused by its characters first, then parsed, its host reduced to ASCII labels."""

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

MAX_URL_CHARACTERS = 8_192

DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ssh": 22, "git": 9418}

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(.*)", re.DOTALL)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]*\]|[^:\[\]]*)(?::([1-9][0-9]{0,4}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")


class InvalidUrlError(ValueError):
    """The text is no URL that everybody would read in the same way."""


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str
    """Lower case."""
    host: str
    """Lower-case ASCII without a trailing dot; an address in its usual spelling, IPv6 without brackets."""
    port: int | None
    """The scheme's when it is not written; None when the scheme has none."""
    address: Address | None
    """Set when the host is an address, in whatever spelling it came."""
    rest: str
    """Path, query and fragment, as they came."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        port = "" if self.port in (None, DEFAULT_PORTS.get(self.scheme)) else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.rest}"


def parse_url(text: str) -> Url:
    """Read an absolute URL; InvalidUrlError says why it is none, or why programs would read it differently.

    Refused wherever they stand: control characters, blanks, backslashes, invisible characters. Refused in the
    authority: user names, percent signs, non-ASCII, ports that are not plain numbers.
    """
    _refuse_characters(text)
    match = _URL.fullmatch(text)
    if match is None:
        raise InvalidUrlError("it does not begin with a scheme and ://")
    scheme, authority, rest = match[1].lower(), match[2], match[3]
    if "@" in authority:
        raise InvalidUrlError("it carries a user name before the host")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise InvalidUrlError("its host or port is malformed")
    host, address = parse_host(parts[1])
    return Url(scheme, host, _port(parts[2], scheme), address, rest)


def parse_host(text: str) -> tuple[str, Address | None]:
    """A host's one spelling, and the address that it is, if it is one; InvalidUrlError for what no host can be."""
    if text.startswith("["):
        return _ipv6(text)
    host = text.lower().removesuffix(".")
    labels = host.split(".")
    if not text.isascii() or len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidUrlError("its host is not made of plain ASCII labels" if host else "it has no host")
    if _NUMBER.fullmatch(labels[-1]):
        address = _ipv4(labels)
        return str(address), address
    return host, None


def _refuse_characters(text: str) -> None:
    if len(text) > MAX_URL_CHARACTERS:
        raise InvalidUrlError(f"it is longer than {MAX_URL_CHARACTERS} characters")
    for char in text:
        if char in " \\\x7f" or char < " ":
            raise InvalidUrlError(f"it contains {char!r}")
        if char > "\x7f" and unicodedata.category(char)[0] in "CZ":
            raise InvalidUrlError(f"it contains the invisible character U+{ord(char):04X}")


def _port(digits: str | None, scheme: str) -> int | None:
    if digits is None:
        return DEFAULT_PORTS.get(scheme)
    if int(digits) > 65_535:
        raise InvalidUrlError(f"{digits} is no port")
    return int(digits)


def _ipv6(text: str) -> tuple[str, Address]:
    try:
        address = IPv6Address(text[1:-1])
    except ValueError as error:
        raise InvalidUrlError("its host is no IPv6 address") from error
    plain = address.ipv4_mapped or address
    return str(plain), plain


def _ipv4(labels: list[str]) -> IPv4Address:
    """All spellings that resolvers take: decimal, octal, hexadecimal, one to four parts, the last one filling up."""
    if len(labels) > 4 or not all(_NUMBER.fullmatch(label) for label in labels):
        raise InvalidUrlError("its host ends in a number but is no address")
    *heads, tail = [_number(label) for label in labels]
    if any(head > 255 for head in heads) or tail >= 256 ** (4 - len(heads)):
        raise InvalidUrlError("its host is a number that is no address")
    value = tail + sum(head << (24 - 8 * place) for place, head in enumerate(heads))
    return IPv4Address(value)


def _number(label: str) -> int:
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    if label.startswith("0") and len(label) > 1:
        if not label.isdigit() or "8" in label or "9" in label:
            raise InvalidUrlError("its host is a number that programs read differently")
        return int(label, 8)
    return int(label)
