"""Models that a server runs: where it is, with which key, over which API."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from ci_agent.errors import ConfigurationError, MissingKeyError
from ci_agent.provider import Model, StreamFn
from ci_agent.providers.catalog import Catalog
from ci_agent.providers.network.exchange import PhaseLimits
from ci_agent.providers.network.http import Transport, TransportSettings
from ci_agent.providers.network.web_origin import check_base_url, is_loopback
from ci_agent.providers.outside import Outside
from ci_agent.providers.retry import RetryPolicy
from ci_agent.providers.servers import SERVERS, Server, endpoint_of, key_of, key_variable
from ci_agent.providers.settings import ModelSettings
from ci_agent.providers.stream import ServerAccess, SharedMeans, create_api_stream
from ci_agent.providers.wire.api import Target


class ServedModels:
    """Opens models that share connections, certificates and the policy of retries. Nothing is sent before one is asked.

    ConfigurationError for certificates that cannot be read.
    """

    def __init__(self, settings: ModelSettings, catalog: Catalog, outside: Outside) -> None:
        self._settings = settings
        self._catalog = catalog
        self._environment = outside.environment
        self._around = SharedMeans(
            transport=Transport(_transport_settings(settings, outside.environment)),
            policy=RetryPolicy(attempts=settings.attempts),
            now=outside.now,
            random=outside.random,
        )

    def open(self, model: Model, *, base_url: str | None, api_key: str | None) -> StreamFn:
        """A stream function for one model; None: the provider's own address, the key in its usual variable.

        ConfigurationError when there is no key, or the address is none that a key may be sent to.
        """
        server = SERVERS[model.provider]
        try:
            endpoint = endpoint_of(server, model.id, base_url, self._environment)
        except ValueError:  # of the library, which would show the whole of it
            problem = "is no http or https address of a server"
            raise ConfigurationError(f"the base URL for {server.word} {problem}") from None
        url = check_base_url(endpoint.base_url, allow_http=self._settings.allow_http)
        key = _checked(api_key or key_of(server, self._environment), server)
        about_key = _about_key("--api-key-file" if api_key else key_variable(server, self._environment), server)
        target = Target(model, endpoint.api.name, self._catalog.facts_of(model))
        is_local = server.local and is_loopback(urlsplit(url).hostname or "")
        access = ServerAccess(url, key, about_key, server.word if is_local else None)
        return create_api_stream(endpoint.api, target, access, self._around)

    def close(self) -> None:
        self._around.transport.close()


def _transport_settings(settings: ModelSettings, environment: Mapping[str, str]) -> TransportSettings:
    return TransportSettings(
        environment=environment,
        ca_file=settings.ca_file,
        limits=PhaseLimits(
            connect_s=settings.connect_timeout_s,
            first_byte_s=settings.first_byte_timeout_s,
            idle_s=settings.idle_timeout_s,
            whole_s=settings.request_timeout_s,
        ),
    )


def _about_key(source: str | None, server: Server) -> str:
    if source is not None:
        return f"the key that was refused is that of {source}"
    return f"no key was sent: set {' or '.join(server.key_variables)}, or give a file with --api-key-file"


def _checked(key: str | None, server: Server) -> str | None:
    """A key that can stand in a header; what cannot would show up, whole, in an error."""
    if key is None:
        if server.needs_key:
            raise MissingKeyError(server.word, server.key_variables)
        return None
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigurationError(f"the key for {server.word} holds characters that no key has: is it whole and alone?")
    return key
