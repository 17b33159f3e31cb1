import time
from ipaddress import ip_address

import pytest

from ci_agent.errors import ToolError
from ci_agent.tools.web_url import WebUrl, parse_web_url


@pytest.mark.parametrize(
    ("text", "scheme", "host", "port", "target"),
    [
        ("https://example.org", "https", "example.org", 443, "/"),
        ("HTTP://Example.ORG./a/../b?c=d&e#f", "http", "example.org", 80, "/a/../b?c=d&e"),
        ("https://example.org?q", "https", "example.org", 443, "/?q"),
        ("http://localhost:8080/x", "http", "localhost", 8080, "/x"),
        ("https://[::1]:8443/", "https", "::1", 8443, "/"),
        ("https://127.0.0.1/%2e%2e/", "https", "127.0.0.1", 443, "/%2e%2e/"),
        (
            "https://a_b.example.org/gr\u00fcn \u65e5".replace(" ", "%20"),
            "https",
            "a_b.example.org",
            443,
            "/gr%C3%BCn%20%E6%97%A5",
        ),
        ("https://example.org/a@b:c", "https", "example.org", 443, "/a@b:c"),
    ],
)
def test_a_plain_url_is_taken_apart(text: str, scheme: str, host: str, *, port: int, target: str) -> None:
    address = ip_address(host) if host in ("::1", "127.0.0.1") else None
    assert parse_web_url(text) == WebUrl(text, scheme, host, port, address, target)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.org",
        "//example.org/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "https://user@example.org/",
        "https://user:password@example.org/",
        "https://example.org\\@evil.org/",
        "https://example.org/a b",
        "https://example.org/\n",
        "https://exa\u0000mple.org/",
        "https://ex\u00e4mple.org/",
        "https://example.org%2eevil.org/",
        "https:///path",
        "https:/example.org",
        "https://-example.org/",
        "https://example.org:0/",
        "https://example.org:080/",
        "https://example.org:99999/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0177.0.0.1/",
        "https://1.2.3/",
        "https://[::ffff:1.2.3.4]/",
        "ssh://example.org/",
        "https://example.org/\u200b",
        "https://example.0x1/",
        "https://[::1/",
        "https://[::1%25lo]/",
        "https://[1.2.3.4]/x",
        "https://example.org/\ud800",
        "https://example.org/" + "a" * 8192,
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(ToolError):
        parse_web_url(text)


def test_the_host_header_names_the_port_only_where_it_is_unusual() -> None:
    headers = [parse_web_url(f"{text}/").host_header for text in ("https://a.b", "http://a.b:443", "http://[::1]:80")]
    assert headers == ["a.b", "a.b:443", "[::1]"]
    assert parse_web_url("http://[::1]:81/").address == ip_address("::1")


def test_a_hostile_url_costs_little() -> None:
    started = time.process_time()
    for text in ("https://" + "a." * 4000, "https://" + "a-" * 4000, "https://a/" + "#" * 8000):
        with pytest.raises(ToolError):
            parse_web_url(text + "\x00")
    assert time.process_time() - started < 10
