"""Whom a request trusts, and through whom it goes."""

import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from over_http import limits, post, refused

from ci_agent.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.conftest import Faults
    from tests.providers.conftest import Client


# Certificates


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that nobody else has signed, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl program to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "cert.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(made)]
    subprocess.run([*command, *names], check=True, capture_output=True)
    return made, key


@pytest.fixture
def tls(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(
    faults: "Faults", client: "Client", tls: ssl.SSLContext
) -> None:
    server = faults.serve(faults.answer(), tls=tls)
    outcome = client.ask(client.stream(server.url))
    assert "CERTIFICATE_VERIFY_FAILED" in outcome.error
    assert "give it with --ca-file" in outcome.error
    assert (server.requests, outcome.message.error_retryable, outcome.notices) == ([], False, [])


@pytest.mark.parametrize("scheme", ["HTTPS", "Https", " https", "\x0bhttps"])
def test_no_spelling_of_an_address_goes_around_certificates(
    faults: "Faults", client: "Client", tls: ssl.SSLContext, scheme: str
) -> None:
    server = faults.serve(faults.answer(), tls=tls)
    error = refused(client.transport(), f"{scheme}://127.0.0.1:{server.port}")
    assert (error.kind, server.requests) == ("connection", [])


def test_a_certificate_is_trusted_that_the_person_gives(
    faults: "Faults", client: "Client", tls: ssl.SSLContext, certificate: tuple[Path, Path]
) -> None:
    server = faults.serve(faults.reply(200, "safe"), tls=tls)
    assert post(client.transport(ca_file=certificate[0]), server.url) == b"safe"
    assert post(client.transport(environment={"SSL_CERT_FILE": str(certificate[0])}), server.url) == b"safe"


def test_a_silent_server_behind_tls_is_left_and_its_connection_closed(
    faults: "Faults", client: "Client", tls: ssl.SSLContext, certificate: tuple[Path, Path]
) -> None:
    server = faults.serve(["hang"], tls=tls)
    error = refused(client.transport(limits(first_byte=0.2), ca_file=certificate[0]), server.url)
    assert error.kind == "timeout"
    assert server.is_left()


def test_certificates_that_cannot_be_read_are_told_before_anything_is_sent(client: "Client", tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        client.transport(ca_file=tmp_path / "missing.pem")
    (tmp_path / "broken.pem").write_text("no certificate")
    with pytest.raises(ConfigurationError, match="the certificates to trust cannot be read"):
        client.transport(ca_file=tmp_path / "broken.pem").prepare("https://model.test")
    with pytest.raises(ConfigurationError, match="the certificates to trust cannot be read"):
        client.transport(environment={"SSL_CERT_FILE": str(tmp_path / "missing.pem")}).prepare("https://model.test")


# Proxies


def test_a_proxy_gets_the_whole_address(faults: "Faults", client: "Client") -> None:
    proxy = faults.serve(faults.reply(200, "through"))
    transport = client.transport(environment={"http_proxy": proxy.url.replace("//", "//user:word@")})
    assert post(transport, "http://model.test:81") == b"through"
    assert proxy.requests[0].target == "http://model.test:81/v1/x"
    assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")


def test_a_proxy_is_asked_for_a_tunnel_and_sees_no_key(faults: "Faults", client: "Client") -> None:
    proxy = faults.serve(faults.reply(403, "no"))
    transport = client.transport(environment={"HTTPS_PROXY": proxy.url.replace("//", "//user:word@")})
    error = refused(transport, "https://model.test")
    assert (error.kind, error.retryable) == ("connection", False)
    problem = "the connection to model.test:443 failed: 403 Said so: the proxy does not let it through"
    assert error.message == problem
    (request,) = proxy.requests
    assert (request.method, request.target) == ("CONNECT", "model.test:443")
    assert "authorization" not in request.headers
    assert "0123456789" not in repr(request)


def test_a_proxy_that_fails_may_succeed_later(faults: "Faults", client: "Client") -> None:
    proxy = faults.serve(faults.reply(503, "no"))
    error = refused(client.transport(environment={"https_proxy": proxy.url}), "https://model.test")
    assert (error.kind, error.retryable) == ("connection", True)


def test_a_proxy_that_opens_no_tunnel_is_left_while_connecting(faults: "Faults", client: "Client") -> None:
    proxy = faults.serve(["hang"])
    transport = client.transport(limits(connect=0.2), environment={"https_proxy": proxy.url})
    error = refused(transport, "https://model.test")
    assert error.message == "connecting took longer than 0.2 s"
    assert proxy.is_left()


def test_a_proxy_behind_tls_has_to_show_a_certificate_that_is_trusted(
    faults: "Faults", client: "Client", tls: ssl.SSLContext, certificate: tuple[Path, Path]
) -> None:
    proxy = faults.serve(faults.reply(200, "through"), tls=tls)
    environment = {"http_proxy": proxy.url}
    assert (
        "CERTIFICATE_VERIFY_FAILED" in refused(client.transport(environment=environment), "http://model.test").message
    )
    assert proxy.requests == []
    assert post(client.transport(environment=environment, ca_file=certificate[0]), "http://model.test") == b"through"


def test_this_machine_is_reached_without_a_proxy(faults: "Faults", client: "Client") -> None:
    proxy, server = faults.serve(faults.reply(500)), faults.serve(faults.reply(200, "direct"))
    environment = {"http_proxy": proxy.url, "all_proxy": proxy.url, "HTTP_PROXY": proxy.url}
    assert post(client.transport(environment=environment), server.url) == b"direct"
    assert proxy.connections == 0


def nothing_is_found(*_: object, **__: object) -> NoReturn:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_a_proxy_in_the_process_environment_is_not_used(
    faults: "Faults", client: "Client", monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = faults.serve(faults.reply(200))
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.setenv("ALL_PROXY", proxy.url)
    monkeypatch.setattr(socket, "getaddrinfo", nothing_is_found)  # no name server shall be asked, which may be slow
    assert refused(client.transport(), "http://no-such-host.invalid").kind == "connection"
    assert proxy.connections == 0


@pytest.mark.parametrize("proxy", ["gopher://user:word@p:1", "socks5://user:word@p:1", "http://user:word@p:x"])
def test_a_proxy_that_cannot_be_used_is_told_without_its_password(client: "Client", proxy: str) -> None:
    with pytest.raises(ConfigurationError, match=r"the proxy for model\.test:443 cannot be used") as caught:
        client.transport(environment={"https_proxy": proxy}).prepare("https://model.test")
    assert "word" not in str(caught.value)
