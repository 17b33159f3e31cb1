"""Where a server is, and through which proxy it is reached."""

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.providers.network.web_origin import check_base_url, is_loopback, origin_of, proxy_for


def test_a_base_url_loses_the_slashes_at_its_end() -> None:
    assert check_base_url("https://model.test/v1//", allow_http=False) == "https://model.test/v1"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("localhost:8080/v1", "the base URL 'localhost:8080/v1' has no scheme: put http:// before it"),
        ("127.0.0.1:8080", "the base URL '127.0.0.1:8080' has no scheme: put http:// before it"),
        ("model.test/v1", "the base URL 'model.test/v1' has no scheme: put https:// before it"),
        ("ftp://model.test", "the base URL 'ftp://model.test' is no http or https address of a server"),
    ],
)
def test_a_base_url_without_its_scheme_is_told_which(url: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_base_url(url, allow_http=False)
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("url", "same", "expected"),
    [
        ("https://A.test/x", "https://a.test:443/y", True),
        ("http://a.test", "http://a.test:80", True),
        ("http://a.test", "https://a.test", False),
        ("https://a.test", "https://a.test:444", False),
        ("https://a.test", "https://a.test.evil.test", False),
        ("https://a.test", "https://a.test@evil.test", False),
    ],
)
def test_one_server_is_scheme_host_and_port(url: str, same: str, expected: bool) -> None:
    assert (origin_of(url) == origin_of(same)) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("LocalHost", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost.evil.test", False),
        ("127.0.0.1.evil.test", False),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("", False),
    ],
)
def test_this_machine_is_told_from_others(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"https_proxy": "http://p:1"}, "http://p:1"),
        ({"HTTPS_PROXY": "p:1"}, "http://p:1"),
        ({"https_proxy": "http://small:1", "HTTPS_PROXY": "http://big:1"}, "http://small:1"),
        ({"http_proxy": "http://p:1"}, None),
        ({"ALL_PROXY": "http://all:1"}, "http://all:1"),
        ({"https_proxy": "http://p:1", "no_proxy": "*"}, None),
        ({"https_proxy": "http://p:1", "no_proxy": "other.test, model.test"}, None),
        ({"https_proxy": "http://p:1", "NO_PROXY": ".MODEL.test"}, None),
        ({"https_proxy": "http://p:1", "no_proxy": "*.test"}, None),
        ({"https_proxy": "http://p:1", "no_proxy": "el.test"}, "http://p:1"),
        ({"https_proxy": "http://p:1", "no_proxy": "model.test:443"}, None),
        ({"https_proxy": "http://p:1", "no_proxy": "model.test:80"}, "http://p:1"),
        ({"https_proxy": "http://p:1", "no_proxy": ","}, "http://p:1"),
    ],
)
def test_the_proxy_is_that_of_the_usual_variables(environment: dict[str, str], expected: str | None) -> None:
    assert proxy_for("https://api.model.test/v1", environment) == expected


@pytest.mark.parametrize(
    ("host", "no_proxy", "expected"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "10.9.9.9/8", True),
        ("10.1.2.3", "10.0.0.0/8:443", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("10.1.2.3", "10.0.0.0/99", False),
        ("model.test", "0.0.0.0/0", False),
        ("[fd00::1]", "fd00::1", True),
        ("[fd00::1]", "[fd00::1]", True),
        ("[fd00::1]", "[fd00::1]:443", True),
        ("[fd00::1]", "[fd00::1]:80", False),
        ("[fd00::1]", "fd00::/16", True),
        ("[fd00::1]", "fd01::/16", False),
        ("[fd00::1]", "0.0.0.0/0", False),
        ("model.test", "model.test:²", False),
    ],
)
def test_networks_and_addresses_may_be_exempt_too(host: str, no_proxy: str, expected: bool) -> None:
    proxy = proxy_for(f"https://{host}/v1", {"https_proxy": "http://p:1", "no_proxy": no_proxy})
    assert (proxy is None) is expected


def test_what_a_web_request_may_have_set_is_not_looked_at() -> None:
    cgi = {"REQUEST_METHOD": "GET", "HTTP_PROXY": "http://evil:1"}
    assert proxy_for("http://model.test", cgi) is None
    assert proxy_for("http://model.test", {"HTTP_PROXY": "http://p:1"}) == "http://p:1"
    assert proxy_for("http://model.test", {**cgi, "http_proxy": "http://p:1"}) == "http://p:1"


@pytest.mark.parametrize("url", ["http://localhost:1", "https://127.0.0.1", "http://[::1]:1/v1"])
def test_this_machine_has_no_proxy(url: str) -> None:
    everything = {"http_proxy": "http://p:1", "https_proxy": "http://p:1", "all_proxy": "http://p:1"}
    assert proxy_for(url, everything) is None
