"""Where Gemini is asked: at Google's address for developers, or at Vertex, by project and location."""

import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from ci_agent.errors import ConfigurationError

BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
"""With its version, as all addresses here."""

_PROJECT_VARIABLES = ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")
_LOCATION_VARIABLES = ("GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION", "CLOUD_ML_REGION")
_DEFAULT_LOCATION = "global"
_LOCATION = re.compile(r"[a-z0-9-]{1,40}")
_MULTI_REGIONS = ("eu", "us")


def gemini_base_url(given: str) -> str:
    """An address that a person gave; a mere server gets the version that its paths begin with."""
    return given if _has_path(given) else f"{given.rstrip('/')}/v1beta"


def vertex_base_url(environment: Mapping[str, str], given: str | None = None) -> str:
    """The address of a project's models: as given, when it has a path; else made of the project in
    GOOGLE_CLOUD_PROJECT and the location in GOOGLE_CLOUD_LOCATION (`global` when nobody says), on the server given.

    Raises ConfigurationError when no project is named, and for a location that is none.
    """
    if given is not None and _has_path(given):
        return given
    project = _first(environment, _PROJECT_VARIABLES)
    if project is None:
        raise ConfigurationError("the provider vertex needs a project: set GOOGLE_CLOUD_PROJECT, or give --base-url")
    location = _first(environment, _LOCATION_VARIABLES) or _DEFAULT_LOCATION
    if not _LOCATION.fullmatch(location):
        raise ConfigurationError(f"GOOGLE_CLOUD_LOCATION is no location of Google Cloud: {location[:100]!r}")
    server = (given or f"https://{_host(location)}").rstrip("/")
    return f"{server}/v1/projects/{quote(project, safe=':')}/locations/{location}/publishers/google"


def _host(location: str) -> str:
    if location == "global":
        return "aiplatform.googleapis.com"
    if location in _MULTI_REGIONS:
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{location}-aiplatform.googleapis.com"


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((environment[name].strip() for name in names if environment.get(name, "").strip()), None)


def _has_path(url: str) -> bool:
    return urlsplit(url).path.strip("/") != ""
