from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.policy.compiled.net import NetRule, forbids_request, host_refusal, host_set, is_private_address
from ci_agent.policy.facts import NetFact
from ci_agent.policy.matchers.hosts import (
    Network,
    NetworkIndex,
    parse_host_pattern,
    parse_method,
    parse_port,
    parse_scheme,
)
from ci_agent.urls import parse_url


@pytest.mark.parametrize(
    ("pattern", "url", "granted"),
    [
        ("docs.example.com", "https://docs.example.com", True),
        ("DOCS.example.com.", "https://docs.example.com", True),
        ("docs.example.com", "https://docs.example.com.evil.test", False),
        ("docs.example.com", "https://evil-docs.example.com", False),
        ("*.example.com", "https://a.b.example.com", True),
        ("*.example.com", "https://example.com", False),
        ("*.example.com", "https://badexample.com", False),
        ("b\u00fccher.example", "https://xn--bcher-kva.example", True),
        ("**", "https://a.test", True),
        ("**", "https://93.184.216.34", True),
        ("**", "http://127.0.0.1", False),
        ("**", "http://localhost", False),
        ("**", "http://x.localhost", False),
        ("**", "http://10.0.0.1", False),
        ("**", "http://169.254.169.254", False),
        ("**", "http://metadata.google.internal", False),
        ("**", "http://[fd00::1]", False),
        ("**", "http://[::ffff:10.0.0.1]", False),
        ("**", "http://[64:ff9b::7f00:1]", False),
        ("**", "http://100.64.0.1", False),
        ("**", "http://0.0.0.0", False),
        ("**", "http://router", False),
        ("**", "http://kubernetes.default.svc", False),
        ("**", "http://a.svc.cluster.local", False),
        ("**", "http://host.docker.internal", False),
        ("**", "http://nas.lan", False),
        ("**", "http://local.example.com", True),
        ("router", "http://router", True),
        ("*.corp", "http://wiki.corp", True),
        ("localhost", "http://localhost", True),
        ("127.0.0.1", "http://127.0.0.1", True),
        ("127.0.0.1", "http://localhost", False),
        ("0x7f.1", "http://2130706433", True),
        ("10.0.0.0/8", "http://10.1.2.3", True),
        ("10.0.0.0/8", "http://[::ffff:10.1.2.3]", True),
        ("10.0.0.0/8", "http://11.1.2.3", False),
        ("::1", "http://[::1]", True),
        ("[::1]", "http://[0::1]", True),
    ],
)
def test_a_host_pattern_grants_what_it_names(pattern: str, url: str, granted: bool) -> None:
    hosts = host_set([parse_host_pattern(pattern)])
    assert (host_refusal(hosts, parse_url(url)) is None) is granted


@pytest.mark.parametrize(
    ("pattern", "url", "forbidden"),
    [
        ("127.0.0.0/8", "http://localhost", True),
        ("::1/128", "http://x.localhost", True),
        ("127.0.0.0/8", "http://[::ffff:7f00:1]", True),
        ("10.0.0.0/8", "http://[64:ff9b::a00:1]", True),
        ("**", "http://127.0.0.1", True),
        ("evil.test", "https://evil.test:8443", True),
        ("evil.test", "https://good.test", False),
    ],
)
def test_a_deny_is_about_every_way_to_reach_a_host(pattern: str, url: str, forbidden: bool) -> None:
    rule = NetRule(host_set([parse_host_pattern(pattern)]), None, None, None)
    assert forbids_request(rule, NetFact(parse_url(url), "GET")) is forbidden


@pytest.mark.parametrize(
    "text", ["*", "a*b.com", "*.*.com", "https://a.com", "a.com:443", "10.0.0.1/8", "*.10.0.0.1", "", "a b", "user@a"]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"host|URL|range|wildcard"):
        parse_host_pattern(text)


def test_schemes_ports_and_methods_are_normalised() -> None:
    assert (parse_scheme("HTTPS"), parse_port(443), parse_method("head")) == ("https", 443, "HEAD")


@pytest.mark.parametrize("port", [0, -1, 65_536, True])
def test_what_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(ValueError, match="port"):
        parse_port(port)


@pytest.mark.parametrize("text", ["", "ht tp", "http:", "1http"])
def test_what_is_no_scheme_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="scheme"):
        parse_scheme(text)


@pytest.mark.parametrize(
    ("address", "private"),
    [
        (IPv4Address("8.8.8.8"), False),
        (IPv4Address("224.0.0.1"), True),
        (IPv4Address("255.255.255.255"), True),
        (IPv6Address("2606:4700::1111"), False),
        (IPv6Address("fe80::1"), True),
        (IPv6Address("2002:7f00:1::"), True),
        (IPv6Address("ff02::1"), True),
        (IPv6Address("fec0::1"), True),
        (IPv6Address("64:ff9b:1::a00:1"), True),
        (IPv6Address("::ffff:0:127.0.0.1"), True),
        (IPv6Address("::10.0.0.1"), True),
        (IPv6Address("3fff::1"), True),
        (IPv4Address("192.0.0.8"), True),
    ],
)
def test_addresses_that_are_not_of_the_public_internet_are_private(
    address: IPv4Address | IPv6Address, private: bool
) -> None:
    assert is_private_address(address) is private


_NUMBERS = {4: st.integers(0, 2**32 - 1) | st.integers(0, 2**9), 6: st.integers(0, 2**128 - 1) | st.integers(0, 2**9)}


@st.composite
def networks(draw: st.DrawFn) -> Network:
    version = draw(st.sampled_from((4, 6)))
    address = (IPv4Address if version == 4 else IPv6Address)(draw(_NUMBERS[version]))
    return ip_network((address, draw(st.integers(0, address.max_prefixlen))), strict=False)


@given(st.lists(networks(), max_size=20), st.data())
def test_an_index_finds_the_ranges_that_an_address_lies_in(ranges: list[Network], data: st.DataObject) -> None:
    near = [ip_address(each[0]) for each in ranges]
    version = data.draw(st.sampled_from((4, 6)))
    address = (
        data.draw(st.sampled_from(near))
        if near
        else (IPv4Address if version == 4 else IPv6Address)(data.draw(_NUMBERS[version]))
    )
    index = NetworkIndex((each, at) for at, each in enumerate(ranges))
    assert sorted(index.around(address)) == [at for at, each in enumerate(ranges) if address in each]
