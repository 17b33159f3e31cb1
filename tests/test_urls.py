import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.errors import ToolError
from ci_agent.tools.web_url import parse_web_url
from ci_agent.urls import InvalidUrlError, parse_url


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("https://docs.example.com/a?b=c#d", "https://docs.example.com/a?b=c#d"),
        ("HTTPS://DOCS.Example.COM", "https://docs.example.com"),
        ("https://docs.example.com./x", "https://docs.example.com/x"),
        ("https://docs.example.com:443/x", "https://docs.example.com/x"),
        ("http://a.test:8080/", "http://a.test:8080/"),
        ("https://a.test/?u=https://evil.test/@x%20", "https://a.test/?u=https://evil.test/@x%20"),
        ("https://a.test/\u00fc", "https://a.test/\u00fc"),
        ("http://[::1]:3000/", "http://[::1]:3000/"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
        ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
    ],
)
def test_a_url_has_one_spelling(text: str, normal: str) -> None:
    assert str(parse_url(text)) == normal


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7F.1",
        "0177.0.0.1",
        "[::ffff:7f00:1]",
    ],
)
def test_every_numeric_spelling_is_the_address(host: str) -> None:
    assert str(parse_url(f"http://{host}/").address) == "127.0.0.1"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "docs.example.com",
        "//docs.example.com/a",
        "https:/docs.example.com",
        "https:docs.example.com",
        "https:///a",
        "https://",
        "https://user@docs.example.com/",
        "https://user:pw@docs.example.com/",
        "https://evil.test\\@docs.example.com/",
        "https://docs.example.com\\x",
        " https://docs.example.com/",
        "https://docs.example.com/ x",
        "https://docs.example.com\r\nHost: evil.test",
        "https://docs.example.com/\tx",
        "https://docs\uff0eexample.com/",
        "https://d\u00f6cs.example.com/",
        "https://docs%2eexample.com/",
        "https://docs.example.com/\u202e",
        "https://docs.example.com/\u200b",
        "https://docs.example.com/\u00a0",
        "https://a..b/",
        "https://-a.test/",
        "https://a.test:/",
        "https://a.test:0/",
        "https://a.test:99999/",
        "https://a.test:0443/",
        "https://a.test:+443/",
        "https://a.test:\uff1443/",
        "https://1.2.3.4.5/",
        "https://1.2.3.256/",
        "https://a.1/",
        "https://09.1.1.1/",
        "https://[::1/",
        "https://[::1%25eth0]/",
        "https://[v1.x]/",
        "javascript:alert(1)",
        "https://" + "a" * 64 + ".test/",
        "https://a.test/" + "x" * 9_000,
    ],
)
def test_a_url_that_programs_might_read_differently_is_refused(text: str) -> None:
    with pytest.raises(InvalidUrlError):
        parse_url(text)


@given(st.text(max_size=40))
def test_whatever_comes_it_is_a_url_or_an_invalid_one(text: str) -> None:
    for candidate in (text, f"https://{text}", f"https://a.test{text}"):
        try:
            url = parse_url(candidate)
        except InvalidUrlError:
            continue
        assert url.host.isascii()
        assert parse_url(str(url)).host == url.host


PIECES = [
    "a.test",
    "A.Test",
    "127.1",
    "0x7f.1",
    "[::1]",
    "[::ffff:7f00:1]",
    "@",
    ":",
    "443",
    "/",
    "?",
    "#",
    "\\",
    "%2e",
    ".",
]


@given(
    st.sampled_from(["http://", "https://"]), st.lists(st.sampled_from([*PIECES, "..", "017", "-", "x"]), max_size=6)
)
def test_fetch_goes_where_the_policy_was_asked_about(scheme: str, pieces: list[str]) -> None:
    text = scheme + "".join(pieces)
    try:
        asked, fetched = parse_url(text), parse_web_url(text)
    except (InvalidUrlError, ToolError):
        return
    address = fetched.address
    plain = getattr(address, "ipv4_mapped", None) or address
    assert (asked.scheme, asked.port, asked.address) == (fetched.scheme, fetched.port, plain)
    assert address is not None or asked.host == fetched.host
