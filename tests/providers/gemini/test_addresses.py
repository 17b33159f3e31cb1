"""Where Gemini is asked."""

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.providers.gemini.addresses import gemini_base_url, vertex_base_url

PROJECT = {"GOOGLE_CLOUD_PROJECT": "my-project"}


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1beta"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1beta"),
        ("https://proxy.example/gemini/v1", "https://proxy.example/gemini/v1"),
    ],
)
def test_a_server_gets_its_version_unless_a_path_is_given(given: str, url: str) -> None:
    assert gemini_base_url(given) == url


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        (PROJECT, "https://aiplatform.googleapis.com/v1/projects/my-project/locations/global/publishers/google"),
        (
            {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "europe-west1"},
            "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/publishers/google",
        ),
        (
            {"GCLOUD_PROJECT": "example.com:p", "CLOUD_ML_REGION": " eu "},
            "https://aiplatform.eu.rep.googleapis.com/v1/projects/example.com:p/locations/eu/publishers/google",
        ),
        (
            {"GOOGLE_CLOUD_PROJECT": "a/../b"},
            "https://aiplatform.googleapis.com/v1/projects/a%2F..%2Fb/locations/global/publishers/google",
        ),
    ],
)
def test_the_address_of_vertex_is_made_of_project_and_location(environment: dict[str, str], url: str) -> None:
    assert vertex_base_url(environment) == url


def test_a_server_that_a_person_gives_gets_the_path_and_a_whole_address_stays() -> None:
    path = "/v1/projects/my-project/locations/global/publishers/google"
    assert vertex_base_url(PROJECT, "http://127.0.0.1:9/") == f"http://127.0.0.1:9{path}"
    assert vertex_base_url({}, "https://x.example/own/path") == "https://x.example/own/path"


@pytest.mark.parametrize(
    ("environment", "word"),
    [
        ({}, "GOOGLE_CLOUD_PROJECT"),
        ({"GOOGLE_CLOUD_PROJECT": "  "}, "GOOGLE_CLOUD_PROJECT"),
        (PROJECT | {"GOOGLE_CLOUD_LOCATION": "evil.example/"}, "GOOGLE_CLOUD_LOCATION"),
    ],
)
def test_what_is_missing_or_wrong_is_named(environment: dict[str, str], word: str) -> None:
    with pytest.raises(ConfigurationError, match=word):
        vertex_base_url(environment)
