"""Secrets stay out of the record: each test is one way to smuggle one in, or one text that must stay readable."""

import base64
import json
import re
import string
import sys
import time
from collections.abc import Callable
from random import Random
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent.transcript.redact import Redactor
from ci_agent.transcript.secret_forms import squeeze

LONG = 'Zq7/Xk+9=vB2 mN&4"wE\\6\nrT8yU0iOpL'
SHORT = "h7Kd/92q="
PLAIN = "q8Zt3Lw0Xv5Rk1Np7Yb2"
SECRETS = [LONG, SHORT, PLAIN]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda secret: secret,
    "reversed": lambda secret: secret[::-1],
    "base64": lambda secret: b64(secret.encode()),
    "base64 after one byte": lambda secret: b64(b"x" + secret.encode())[2:],
    "base64 after two bytes": lambda secret: b64(b"xy" + secret.encode())[3:],
    "base64 for URLs": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
    "base64 without padding": lambda secret: b64(secret.encode()).rstrip("="),
    "hex": lambda secret: secret.encode().hex(),
    "HEX": lambda secret: secret.encode().hex().upper(),
    "hex dump": lambda secret: secret.encode().hex(" ", 2),
    "URL": quote,
    "URL, slashes too": lambda secret: quote(secret, safe=""),
    "URL, lower case": lambda secret: re.sub("%..", lambda escape: escape[0].lower(), quote(secret)),
    "URL, letters too": lambda secret: "".join(f"%{byte:02X}" for byte in secret.encode()),
    "form": quote_plus,
    "JSON": lambda secret: json.dumps(secret)[1:-1],
    "JSON with escaped slashes": lambda secret: json.dumps(secret)[1:-1].replace("/", "\\/"),
    "JSON, letters too": lambda secret: "".join(f"\\u{ord(character):04x}" for character in secret),
    "Python's escapes": lambda secret: "".join(f"\\x{byte:02x}" for byte in secret.encode()),
    "one character a line": "\n".join,
    "folded": lambda secret: "\r\n    ".join(secret[at : at + 3] for at in range(0, len(secret), 3)),
    "coloured in the middle": lambda secret: f"{secret[:3]}\x1b[1;31m{secret[3:6]}\x1b[0m{secret[6:]}",
    "every character coloured": "\x1b[m".join,
    "with marks of a terminal's title between": "\x1b]0;title\x07".join,
    "UTF-16": "\0".join,
    "with what has no width": "\u200b".join,
    "base64, folded": lambda secret: "\n".join(b64(secret.encode())[at : at + 6] for at in range(0, 60, 6)).strip(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_found_however_it_is_written(secret: str, spelling: str) -> None:
    written = SPELLINGS[spelling](secret)
    redacted = Redactor(SECRETS).text(f"before [{written}] after")
    assert redacted.startswith("before [")
    assert redacted.endswith("] after")
    left = squeeze(redacted.removeprefix("before [").removesuffix("] after").replace("[redacted]", ""))
    # What no secret alone decides may stay: the padding and the last character of base64.
    assert len(left) <= (4 if "base64" in spelling else 0), redacted


@pytest.mark.parametrize("start", range(len(PLAIN) - 8))
def test_any_eight_consecutive_characters_of_a_long_secret_are_hidden(start: int) -> None:
    redactor = Redactor(SECRETS)
    for context in ("{}", "x{}", "xyz{}xyz", "key: {}.", '"{}"'):
        text = context.format(PLAIN[start : start + 8])
        assert redactor.text(text) == context.format("[redacted]")


@pytest.mark.parametrize("trimmed", [PLAIN[1:], PLAIN[7:], PLAIN[:-5], PLAIN[4:-4]])
@pytest.mark.parametrize("spelling", ["as it is", "reversed", "base64", "hex", "one character a line"])
def test_a_trimmed_secret_is_hidden_in_every_spelling(trimmed: str, spelling: str) -> None:
    redacted = Redactor([PLAIN]).text(f"<{SPELLINGS[spelling](trimmed)}>")
    assert redacted.startswith("<[redacted]")
    assert len(redacted) <= len("<[redacted]>") + 4


def test_fewer_than_eight_characters_and_parts_of_a_short_secret_stay() -> None:
    text = f"{PLAIN[:7]} {SHORT[:8]} {SHORT[1:]}"
    assert Redactor(SECRETS).text(text) == text


@given(st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=0, max_size=30), st.integers(0, 40))
def test_a_secret_between_any_texts_never_survives(around: str, split: int) -> None:
    secret = PLAIN + SHORT
    redacted = Redactor([secret, LONG]).text(around[:split] + secret + around[split:])
    assert secret not in redacted
    assert "[redacted]" in redacted


def test_what_stands_in_an_escape_sequence_is_looked_at_too() -> None:
    text = Redactor(SECRETS).text(f"\x1b]8;;http://host/{PLAIN}\x07text\x1b]8;;\x07 and \x1b]0;{PLAIN}")
    assert text == "\x1b]8;;http://host/[redacted]\x07text\x1b]8;;\x07 and \x1b]0;[redacted]"


def test_colours_around_a_secret_stay() -> None:
    assert Redactor(SECRETS).text(f"\x1b[31m{PLAIN}\x1b[0m x") == "\x1b[31m[redacted]\x1b[0m x"


def test_pieces_that_touch_become_one_and_the_count_is_of_places() -> None:
    redactor = Redactor(SECRETS)
    assert redactor.text(f"{PLAIN}{PLAIN[::-1]} and {SHORT}") == "[redacted] and [redacted]"
    assert redactor.count == 2
    assert redactor.replace(PLAIN) == ("[redacted]", 1)
    assert redactor.count == 2


def test_text_without_secrets_comes_back_unchanged() -> None:
    text = "nothing \t here\r\n  to see: " * 50
    assert Redactor(SECRETS).replace(text) == (text, 0)
    assert Redactor().replace(text) == (text, 0)


def test_keys_values_and_numbers_of_json_are_redacted_at_any_depth() -> None:
    value = {PLAIN: [{"a": (f"x {SHORT}", 1, None, 7_406_182_935)}], "b": {SHORT: True, PLAIN: 2}}
    redactor = Redactor([*SECRETS, "7406182935"])
    assert redactor.value(value) == {
        "[redacted]": [{"a": ["x [redacted]", 1, None, "[redacted]"]}],
        "b": {"[redacted]": True, "[redacted] (2)": 2},
    }
    assert redactor.count == 5


def test_white_space_of_every_script_is_looked_through() -> None:
    # Both ways of finding white space must agree, or spans would be put in the wrong place.
    spaces = "".join(char for char in map(chr, range(sys.maxunicode + 1)) if char.isspace())
    assert len(spaces) > 20
    text = f"a{spaces}" + spaces.join(PLAIN) + f"{spaces}b"
    assert Redactor([PLAIN]).text(text) == f"a{spaces}[redacted]{spaces}b"


SERVICE_ACCOUNT = json.dumps(
    {
        "type": "service_account",
        "project_id": "acme-production",
        "private_key_id": "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
        "private_key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nQ8zk3nT5xW1bYp7R\n-----END PRIVATE KEY-----\n",
        "client_email": "ci@acme-production.iam.gserviceaccount.com",
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
    },
    indent=2,
)


def test_of_a_json_secret_the_keys_are_hidden_and_the_rest_of_the_world_is_not() -> None:
    redact = Redactor([SERVICE_ACCOUNT]).text
    assert redact(SERVICE_ACCOUNT) == "[redacted]"
    assert redact("id 9f8e7d6c5b4a39281706f5e4 line Q8zk3nT5xW1bYp") == "id [redacted] line [redacted]"
    harmless = '{"type": "service_account", "project_id": "acme-production"} https://accounts.google.com/ -----BEGIN'
    assert redact(harmless) == harmless


def test_of_a_url_secret_the_password_and_the_path_are_hidden_and_the_host_is_not() -> None:
    redact = Redactor(
        [
            "postgres://app:s3cr3tP4ssw0rd99@db.example.org:5432/main",
            "https://hooks.example.org/services/T024BE7LH/q1w2e3r4?api-version=1",
        ]
    ).text
    assert redact("password s3cr3tP4ssw0rd99!") == "password [redacted]!"
    assert redact("see q1w2e3r4 and T024BE7LH") == "see [redacted] and [redacted]"
    harmless = "https://hooks.example.org/services/ postgres://app@db.example.org:5432/main api-version"
    assert redact(harmless) == harmless


def test_of_a_secret_made_of_words_no_single_word_is_hidden() -> None:
    redact = Redactor(["integration-testing-database"]).text
    harmless = "the integration tests of the database are for testing"
    assert redact(harmless) == harmless
    assert redact("<integration-testing-database>") == "<[redacted]>"
    assert redact("<-testing-database>") == "<[redacted]>"
    assert redact(f"<{b64(b'tion-testing-database')}>") == "<[redacted]>"


TOKENS = [
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "gho_16C7e42F292c6912E7710c838347Ae178B4a",
    "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0abcdefghijkl_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTU",
    "sk-proj-abcdefghijklmnopqrstuvwxyz",
    "sk-ant-api03-R2D2c3poBB8kyloREN_leia-LUKE",
    "xoxb-123456789012-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "glpat-abcdefghij0123456789",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "eC1hY2Nlc3MtdG9rZW46Z2hzXzE2QzdlNDJGMjky",
]


@pytest.mark.parametrize("token", TOKENS)
def test_a_well_known_token_is_caught_without_being_known(token: str) -> None:
    redact = Redactor().text
    assert redact(f"token={token}\n") == "token=[redacted]\n"
    assert redact(f'{{"token": "{token}"}}') == '{"token": "[redacted]"}'
    assert redact(f"\x1b[31m{token}\x1b[0m") == "\x1b[31m[redacted]\x1b[0m"


KEY = """-----BEGIN RSA PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-128-CBC,0123456789ABCDEF

MIIEpAIBAAKCAQEA1234567890abcdefghijklmnopqrstuvwxyz+/ABCDEFGHIJ
KLMNOPQRSTUVWXYZ0987654321abcdefghijklmnopqrstuvwxyz+/ABCDEFGHIJ
a1b2c3==
-----END RSA PRIVATE KEY-----"""


@pytest.mark.parametrize(
    "shown",
    [
        KEY,
        KEY.replace("\n", "\\n"),
        KEY.replace("\n", "\r\n"),
        "\n".join(f"{number:6}\t{line}" for number, line in enumerate(KEY.split("\n"), 1)).lstrip(" 1\t"),
        KEY.replace("\n", "\n+"),
        KEY.replace("\n", "\n  | "),
        '",\n"'.join(KEY.split("\n")),
        KEY.partition("a1b2c3")[0].rstrip(),
    ],
    ids=["whole", "escaped", "crlf", "numbered", "diff", "quoted block", "list", "cut off"],
)
def test_a_private_key_is_caught_however_it_is_shown(shown: str) -> None:
    assert Redactor().text(f"key: {shown} after") == "key: [redacted] after"


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "ask-for-a-disk-usage-report-of-the-whole-fleet task-0123456789abcdef01234567",
        "sk-folding-cube sk-cube-grid-with-a-long-name",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----",
        "right_ghost ghp_short npm_config_user_agent eyJhbGciOiJIUzI1NiJ9 alone",
        "id: 7c9e6679-7425-40de-944b-e07fc1f90ae7",
    ],
)
def test_what_only_resembles_a_token_stays(text: str) -> None:
    assert Redactor(SECRETS).text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "-" * 50_000,
        "=-" * 25_000,
        "A" * 50_000,
        "eyJ" * 16_000,
        "0meyJ" * 10_000,
        "-----BEGIN PRIVATE KEY-----" * 1_800,
        "-----BEGIN PRIVATE KEY-----" + "A: b\n" * 10_000,
        ("-----BEGIN PRIVATE KEY-----" + " +" * 100) * 200,
        "-----BEGIN PRIVATE KEY-----" + " " * 50_000,
        "a1B2" * 12_500,
        " x" * 25_000,
        "0123456789abcdef" * 3_000,
        "\x1b[" * 25_000,
        "\x1b]" * 25_000,
        "\x1b[" + "1" * 50_000,
        "a\0" * 25_000,
    ],
    ids=lambda text: text[:12],
)
def test_no_text_of_fifty_kilobytes_takes_long(text: str) -> None:
    redactor = Redactor(
        [*SECRETS, "-" * 20 + "x1y2z3" + "A" * 30, "0123456789abcdefghij", *(f"{n}{PLAIN}" for n in range(10))]
    )
    started = time.process_time()
    redactor.text(text)
    assert time.process_time() - started < 10  # what is not linear takes minutes


@pytest.mark.parametrize(
    "alphabet", ["0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"]
)
def test_a_thousand_secrets_do_not_make_text_that_resembles_their_spellings_slow(alphabet: str) -> None:
    random = Random(1)
    secrets = ["".join(random.choices(string.ascii_letters + string.digits, k=40)) for _ in range(1000)]
    redactor = Redactor(secrets)
    text = "".join(random.choices(alphabet, k=300_000))
    hidden = secrets[500].encode().hex()
    started = time.process_time()
    assert redactor.text(f"{text}{hidden}{text}") == f"{text}[redacted]{text}"
    assert time.process_time() - started < 3  # by single hexadecimal digits it took longer than that for the tenth


def test_values_that_overlap_and_hold_characters_of_patterns_are_hidden_as_a_whole() -> None:
    inner, outer = "a.*(b|c)[d]+", "xx-a.*(b|c)[d]+-yy\\g<0>$&"
    redactor = Redactor([inner, outer, inner[4:] + "-zzzzzzz"])
    assert redactor.text(f"1 {outer} 2 {inner} 3 {inner}-zzzzzzz 4") == "1 [redacted] 2 [redacted] 3 [redacted] 4"
    assert redactor.text("aXYZb") == "aXYZb"
