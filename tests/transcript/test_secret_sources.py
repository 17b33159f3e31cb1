"""Which values count as secrets, and which constants of a pipeline must not shred the record."""

import pytest

from ci_agent.errors import ConfigurationError
from ci_agent.transcript.secret_sources import collect_secrets, is_worth_hiding


@pytest.mark.parametrize(
    "value",
    [
        "",
        "true",
        "short12",
        "production",
        "postgres",
        "PRODUCTION",
        "Anonymous",
        "1735689600",
        "/home/runner/srv/site/gha-creds-1a2b3c.json",
        "/tmp/ssh-XXXXabc123/agent.4242",
        "~/.ssh/id_ed25519",
        "./config/key.pem",
    ],
)
def test_words_numbers_and_paths_are_not_worth_hiding(value: str) -> None:
    assert not is_worth_hiding(value)


@pytest.mark.parametrize(
    "value",
    ["hunter2x", "s3cr3t-value", "correct horse battery", "/9j4AAQSkZJRg+abc/def=", "qwertyuiopasdfgh", "abcd1234"],
)
def test_anything_else_of_eight_characters_is(value: str) -> None:
    assert is_worth_hiding(value)


def test_secrets_come_from_names_keys_and_the_look_of_the_environment_each_once() -> None:
    environment = {
        "GITHUB_TOKEN": "ghs-value-1",
        "COPY_TOKEN": "ghs-value-1",
        "POSTGRES_PASSWORD": "postgres",
        "HOME": "/home/someone-else",
        "MY_PIN": "forty-two-forty-two",
        "CITY": "Reykjavik",
        "EMPTY": "",
    }
    named = ["CITY", "MY_PIN", "EMPTY", "NOT_SET"]
    assert collect_secrets(environment, named=named, keys=["EMPTY", "sk-1234567890"]) == (
        "Reykjavik",
        "forty-two-forty-two",
        "sk-1234567890",
        "ghs-value-1",
    )


@pytest.mark.parametrize("value", ["1234", "aaaaaaaaaaaa"])
def test_a_named_secret_that_cannot_be_hidden_is_refused_without_being_shown(value: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        collect_secrets({"PIN": value}, named=["PIN"])
    assert str(error.value) == (
        "the value of PIN cannot be kept out of the record: it has fewer than 8 characters, or repeats one"
    )


def test_a_password_in_an_address_is_a_secret_whatever_the_variable_is_called() -> None:
    environment = {
        "HTTPS_PROXY": "http://me:canary%2Fpassword@proxy:3128",
        "DATABASE": "postgres://app:second-1234@db/x",
        "HOMEPAGE": "https://example.org/a:b@c",
        "LOCAL": "postgres://postgres:postgres@localhost/x",
    }
    assert collect_secrets(environment) == ("canary%2Fpassword", "canary/password", "second-1234")
