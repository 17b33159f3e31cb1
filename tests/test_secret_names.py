"""Names that hold secrets, and names that only look like it."""

import pytest

from ci_agent.secret_names import MODEL_KEYS, may_name_a_secret, names_a_secret, password_in_url


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "DB_PASSWORD",
        "PGPASSWORD",
        "MYSQL_PWD",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "npm_config_//registry.example.org/:_authToken",
        "apiToken",
        "SSH_PRIVATE_KEY",
        "GPG_PASSPHRASE",
        "SENTRY_DSN",
        "SLACK_WEBHOOK_URL",
        "private_key",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
        "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
        "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
        "ANTHROPIC_CUSTOM_HEADERS",
    ],
)
def test_a_name_that_holds_secrets_is_recognised(name: str) -> None:
    assert names_a_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "PWD",
        "OLDPWD",
        "HOME",
        "KEYBOARD_LAYOUT",
        "MONKEY_PATCH",
        "TOKENIZERS_PARALLELISM",
        "AUTHOR",
        "PATTERN",
        "CORS_HEADERS",
    ],
)
def test_a_name_that_only_resembles_one_is_not(name: str) -> None:
    assert not names_a_secret(name)


@pytest.mark.parametrize(
    "name", [*(key.replace("*", "X_") for key in MODEL_KEYS), "ACTIONS_RUNTIME_URL", "SSHPASS", "passcode", "MY_KEYS"]
)
def test_what_may_hold_a_secret_is_seen_by_nobody_who_has_not_asked(name: str) -> None:
    assert may_name_a_secret(name)


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG", "GITHUB_SHA", "CI", "TMPDIR", "PYTHONUTF8"])
def test_what_everybody_needs_may_be_seen(name: str) -> None:
    assert not may_name_a_secret(name)


@pytest.mark.parametrize(
    ("value", "password"),
    [
        ("http://user:s3cr3t@proxy:3128", "s3cr3t"),
        ("postgres://app:p%40ss:word@db/x?y=1", "p%40ss:word"),
        ("https://x-access-token:abc@github.com/o/r.git", "abc"),
        ("https://ghp_token@github.com/o/r.git", None),
        ("http://proxy:3128", None),
        ("http://host/path:a@b", None),
        ("user:s3cr3t@host", None),
    ],
)
def test_the_password_of_an_address_is_found(value: str, password: str | None) -> None:
    assert password_in_url(value) == password
