"""Programs whose words say which host they talk to: databases, registries of images, name servers, connections."""

import re
from typing import Final

from ci_agent.policy.effects import UrlUse
from ci_agent.policy.programs.draft import Draft, is_url
from ci_agent.policy.programs.languages.shells import read_commands
from ci_agent.policy.programs.parsed import Found, Parsed
from ci_agent.policy.programs.profile import HAZARDS
from ci_agent.policy.programs.selections import selection_of
from ci_agent.policy.words import Word, literal_word

_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1", "[::1]", "ip6-localhost"})
_SAYS_WHERE: Final = re.compile(r"[:=/@]")
_LOCAL_URL: Final = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:[^@/?#,]*@)?(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]+)?(?:/[^?#@]*)?", re.IGNORECASE
)
_TRANSPORT: Final = re.compile(
    r"(?:containers-storage|dir|docker-archive|docker-daemon|oci|oci-archive|sif):(?P<path>[^:]*)"
)
"""Of podman and its like: not a registry, but files of this machine."""
_REGISTRY: Final = re.compile(r"(?P<host>[A-Za-z0-9.-]+)(?P<port>:[0-9]+)?/")

_SEARCHED: Final = (
    "-s",
    "--dir",
    "--coverage-files-search-root-folder",
    "--files-search-root-folder",
    "-R",
    "--rootDir",
)
_PATTERN: Final = re.compile(r"[*?\[{(]")
_SEND_NO_FILES: Final = frozenset(
    ("create-commit", "create-report", "create-report-results", "empty-upload", "get-report-results", "pr-base-picking")
)
"""Commands of `codecovcli`, which `codecov` may not know."""


def read_database(parsed: Parsed, draft: Draft) -> None:
    """A host, or an address in place of the database's name, leads elsewhere unless it is this machine."""
    if parsed.profile.instead:
        read_commands(parsed, draft)
    for found in parsed.options:
        if found.option.meaning == "reach" and _stays_here(found) and _is_alone(parsed, found):
            draft.hazards.pop(found.at, None)
    for operand in parsed.operands[: parsed.profile.name != "pg_restore"]:
        if not (_is_name(operand.word) or _is_local_url(operand.word)):
            draft.hazard(operand.at, HAZARDS["reach"])


def _is_alone(parsed: Parsed, found: Found) -> bool:
    """No other option stands in the same word."""
    return sum(other.at == found.at for other in parsed.options) == 1


def _stays_here(found: Found) -> bool:
    value = found.value
    if value is None:
        return False
    if found.option.name in ("-d", "--dbname"):
        return _is_name(value) or _is_local_url(value)
    return value.literal in _HERE or _is_local_url(value)


def _is_name(word: Word) -> bool:
    return word.literal is not None and not _SAYS_WHERE.search(word.text)


def _is_local_url(word: Word) -> bool:
    return word.literal is not None and _LOCAL_URL.fullmatch(word.text) is not None


def read_image(parsed: Parsed, draft: Draft) -> None:
    """`HOST/NAME:TAG`: the registry that the image comes from; without a host, it is the usual one."""
    logs_in = parsed.profile.name.endswith("login")
    moves = parsed.profile.name.endswith(("pull", "login"))
    for operand in parsed.operands[: 2 if moves else 1]:
        if operand.word.literal is None:
            draft.doubt(f"the registry of the image {operand.word.text} is not known")
        elif files := _TRANSPORT.match(operand.word.text):
            path = literal_word(files["path"], operand.word.span)
            draft.use("read", path, recursive=True)
            draft.use("write", path)
            draft.hazard(operand.at, "reads or writes files of this machine")
        elif registry := _registry(operand.word.text + "/" * logs_in):
            draft.urls.append(UrlUse(literal_word(f"https://{registry}", operand.word.span)))


def _registry(text: str) -> str | None:
    """The first part of an image's name is a host where it has a dot or a port."""
    found = _REGISTRY.match(text)
    is_host = found is not None and ("." in found["host"] or found["host"] == "localhost" or found["port"])
    return found[0] if found is not None and is_host else None


def read_openssl(parsed: Parsed, draft: Draft) -> None:
    """A certificate may be fetched: `-in http://HOST/PATH`."""
    for _, value in parsed.values("-in"):
        if is_url(value):
            draft.urls.append(UrlUse(value))


def read_lookup(parsed: Parsed, draft: Draft) -> None:
    """`dig @SERVER NAME`, `nslookup NAME SERVER`."""
    names = [operand for operand in parsed.operands if not operand.word.text.startswith("@")]
    servers = [operand for operand in parsed.operands if operand not in names]
    if parsed.profile.name == "nslookup":
        servers += names[1:]
    for operand in servers:
        if operand.word.text.removeprefix("@") not in _HERE:
            draft.hazard(operand.at, "asks another name server")


def read_connection(parsed: Parsed, draft: Draft) -> None:
    """`nc HOST PORT`; one that listens names no host."""
    if parsed.has("-l", "--listen"):
        return
    for operand in parsed.operands[:1]:
        if operand.word.literal not in _HERE:
            draft.hazard(operand.at, HAZARDS["reach"])


def read_coverage_upload(parsed: Parsed, draft: Draft) -> None:
    """It looks for reports beneath the folders that it is given, or where it works, and sends what it takes for one."""
    folders = [value for _, value in parsed.values(*_SEARCHED)]
    for folder in folders:
        draft.use("read", folder, recursive=True)
    if folders or parsed.surely("-h", "--help", "--version") or _sends_no_files(parsed):
        return
    files = [word for _, value in parsed.values("-f", "--file") for word in value.choices or (value,)]
    patterns = [word.text for word in files if word.kind != "unknown" and _PATTERN.search(word.text)]
    if patterns:
        globs = [None if "{" in text or "(" in text else literal_word(text) for text in patterns]
        draft.use("read", literal_word("."), recursive=True, selection=selection_of(globs))
    elif not (files or parsed.surely("--disable-search")):
        draft.use("read", literal_word("."), recursive=True)


def _sends_no_files(parsed: Parsed) -> bool:
    name = parsed.called.text.rpartition("/")[2] if parsed.called else ""
    first = parsed.operands[0] if parsed.operands else None
    asks = first is not None and first.at == parsed.start and first.word.literal in _SEND_NO_FILES
    return asks and name == "codecovcli"
