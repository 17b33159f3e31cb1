"""The ways in which a secret is written: as it is, encoded, reversed, and how much of it gives it away."""

import base64
import json
import re
import string
from collections.abc import Iterator
from typing import NamedTuple

from ci_agent.json_types import Json, parse_json
from ci_agent.secret_names import names_a_secret
from ci_agent.transcript.plain_json import well_formed
from ci_agent.transcript.secret_sources import MIN_SECRET_CHARS, is_worth_hiding

MIN_CHARS_FOR_PIECES = 16
"""Of a value as long as this, consecutive characters are hidden too; of a shorter one they are most of it."""

_CHARS_OF_A_PIECE = 8
_CHARS_OF_A_PIECE_OF_WORDS = 16

_WORDS = re.compile(r"[A-Z]*[a-z]*(?:[ ._-][A-Z]*[a-z]*)+")
"""`integration-testing`: eight characters of it are a part of somebody's ordinary word, sixteen are not."""

_UNRESERVED = string.ascii_letters + string.digits + "-._~"
_URL_SAFE = (_UNRESERVED, _UNRESERVED + "/", _UNRESERVED + "!*'()")

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:(?P<user>[^/?#@]*)@)?[^/?#]*(?P<rest>.*)", re.DOTALL)
_BETWEEN_LINES = re.compile(r"\n|\\n|-----(?:BEGIN|END)[^-]*-----")


class SecretForm(NamedTuple):
    text: str
    """Without white space."""
    shortest: int
    """So many consecutive characters of it are a match."""


def forms_of(secret: str) -> list[SecretForm]:
    """Every form of a secret that is looked for, each once.

    Of a JSON object or a URL only what is secret in it counts in pieces, and of several lines each for itself:
    `"type": "service_account"`, `https://` and `-----BEGIN` are in everybody's files.
    """
    forms: dict[str, int] = {}
    for part, piece_chars in _parts(well_formed(secret)[0]):
        for text, shortest in _spellings(part, piece_chars or len(part)):
            squeezed = squeeze(text)
            whole = len(squeezed)
            forms[squeezed] = min(shortest if piece_chars else whole, whole, forms.get(squeezed, whole))
    return [SecretForm(text, shortest) for text, shortest in forms.items() if shortest >= MIN_SECRET_CHARS]


def squeeze(text: str) -> str:
    """The text without its white space."""
    return "".join(text.split())


UNSEEN = re.compile(
    r"(?:\s"
    r"|\x1b\[[0-?]*[ -/]*(?:[@-~]|\Z)"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|\Z)"
    r"|[\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff])+"
)
"""What a terminal shows nothing of, or only a colour: white space, escape sequences, other controls, no width."""


def visible(text: str) -> str:
    """The text without what cannot be seen: colours amid a word, the NULs of UTF-16."""
    squeezed = squeeze(text)
    return squeezed if squeezed.isprintable() else UNSEEN.sub("", text)


def _parts(secret: str) -> Iterator[tuple[str, int | None]]:
    """What is secret in it, each with how many consecutive characters give it away; None: only the whole does."""
    inner = next((parts for split in (_json_parts, _url_parts, _lines) if (parts := split(secret)) is not None), None)
    if inner is None:
        yield secret, _piece_chars(secret)
        return
    yield secret, None
    for part in inner:
        if is_worth_hiding(part):
            yield from _parts(part)


def _piece_chars(secret: str) -> int | None:
    if len(secret) < MIN_CHARS_FOR_PIECES:
        return None
    return _CHARS_OF_A_PIECE_OF_WORDS if _WORDS.fullmatch(secret) else _CHARS_OF_A_PIECE


def _json_parts(secret: str) -> list[str] | None:
    if not secret.lstrip().startswith("{"):
        return None
    try:
        return list(_texts_of_secret_keys(parse_json(secret)))
    except ValueError:
        return None


def _texts_of_secret_keys(value: Json) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _texts_of_secret_keys(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str) and names_a_secret(key):
                yield item
            yield from _texts_of_secret_keys(item)


def _url_parts(secret: str) -> list[str] | None:
    url = _URL.fullmatch(secret)
    if url is None:
        return None
    password = (url["user"] or "").rpartition(":")[2]
    return [password, *(part for part in re.split(r"[/?#&=:@,;]+", url["rest"]) if re.search("[0-9]", part))]


def _lines(secret: str) -> list[str] | None:
    lines = [line.strip() for line in _BETWEEN_LINES.split(secret)]
    return lines if len(lines) > 1 else None


def _spellings(text: str, piece_chars: int) -> Iterator[tuple[str, int]]:
    """Each with how many of its characters are sure to stand there for so many of the text's."""
    data = text.encode()
    for plain in (text, text[::-1], *_json_spellings(text), *_url_spellings(data)):
        yield plain, piece_chars
    for encoded in _base64_spellings(data):
        yield encoded, piece_chars * 8 // 6 - 1
    for each_byte in ("{:02x}", "{:02X}", "%{:02x}", "%{:02X}", "\\x{:02x}", "\\u{:04x}", "\\u{:04X}"):
        width = len(each_byte.format(0))
        yield "".join(map(each_byte.format, data)), piece_chars * width


def _json_spellings(text: str) -> Iterator[str]:
    for ascii_only in (True, False):
        inside = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield from (inside, inside.replace("/", "\\/"))


def _url_spellings(data: bytes) -> Iterator[str]:
    for safe in _URL_SAFE:
        for escape in ("%{:02X}", "%{:02x}"):
            quoted = "".join(chr(byte) if chr(byte) in safe else escape.format(byte) for byte in data)
            yield from (quoted, quoted.replace("%20", "+"))


def _base64_spellings(data: bytes) -> Iterator[str]:
    """What is sure to be in the base64 of any text around the data, for each of the three ways it can fall."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        first_own = (before * 8 + 5) // 6
        last_shared = (before + len(data)) * 8 % 6 != 0
        sure = encoded[first_own : len(encoded) - last_shared]
        yield from (sure, sure.replace("+", "-").replace("/", "_"))
