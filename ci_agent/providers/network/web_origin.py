"""Where a model's server is, whether a key may travel there, and through which proxy."""

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from ci_agent.errors import ConfigurationError

_WITHOUT_SCHEME = re.compile(r"(?P<host>[A-Za-z0-9.-]+)(:[0-9]+)?(/.*)?")
_PORTS = {"http": 80, "https": 443}


def check_base_url(url: str, *, allow_http: bool) -> str:
    """The base URL without a slash at its end; ConfigurationError for one that no key should be sent to."""
    parts = _split(url)
    bare = _WITHOUT_SCHEME.fullmatch(url)
    if bare is not None:
        scheme = "http" if is_loopback(bare["host"]) else "https"
        raise ConfigurationError(f"the base URL {_shown(url)} has no scheme: put {scheme}:// before it")
    if parts is None or parts.scheme not in _PORTS or not parts.hostname:
        raise ConfigurationError(f"the base URL {_shown(url)} is no http or https address of a server")
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError("the base URL holds a user or a password: give the key in its variable or a file")
    if parts.query or parts.fragment:
        raise ConfigurationError(f"the base URL {_shown(url)} has a query or a fragment: leave it out")
    if parts.scheme == "http" and not (allow_http or is_loopback(parts.hostname)):
        raise ConfigurationError(
            f"the base URL {_shown(url)} is not encrypted: use https, or --allow-http if the network may read the key "
            "and all that is sent"
        )
    return url.rstrip("/")


def origin_of(url: str) -> tuple[str, str, int]:
    """Scheme, host and port: where two URLs agree in these, they are of one server."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def proxy_for(url: str, environment: Mapping[str, str]) -> str | None:
    """The proxy that the usual variables name for a URL; None: none. This machine is always reached without one.

    Small letters come before capitals, and `HTTP_PROXY` in capitals is not looked at where a web server may have set
    it from a request's header.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or _is_exempt(origin_of(url), _variable(environment, "no_proxy")):
        return None
    own = f"{parts.scheme}_proxy"
    in_cgi = own == "http_proxy" and "REQUEST_METHOD" in environment
    proxy = environment.get(own, "") if in_cgi else _variable(environment, own)
    proxy = proxy or _variable(environment, "all_proxy")
    if not proxy:
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_exempt(origin: tuple[str, str, int], no_proxy: str) -> bool:
    """Whether the list names this host, a domain or a network that it is in, or all; an entry may name a port."""
    _, host, port = origin
    for entry in no_proxy.lower().replace(",", " ").split():
        name, asked_port = _name_and_port(entry)
        name = name.removeprefix("*").removeprefix(".").strip("[]")
        if asked_port and int(asked_port) != port:
            continue
        if entry == "*" or (name and (host == name or host.endswith(f".{name}") or _is_in_network(host, name))):
            return True
    return False


def _name_and_port(entry: str) -> tuple[str, str]:
    """An address of IPv6 is full of colons; with a port it stands in brackets."""
    name, _, port = entry.rpartition(":")
    has_port = port.isascii() and port.isdigit() and (":" not in name or name.endswith("]"))
    return (name, port) if has_port else (entry, "")


def _is_in_network(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # read for its ValueError
    except ValueError:
        return None
    return parts


def _shown(url: str) -> str:
    """The URL without what may be a secret in it."""
    parts = _split(url)
    if parts is None or not parts.hostname:
        return repr(url[:100].rpartition("@")[2])
    return repr(f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}")
