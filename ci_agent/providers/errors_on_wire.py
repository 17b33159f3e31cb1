"""What a server says went wrong, in any API's shape, as one kind of failure with what to do about it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ci_agent.json_types import Json
from ci_agent.providers.failures import ApiError, FailureKind
from ci_agent.providers.overflow import is_overflow
from ci_agent.terminal import one_line

MAX_MESSAGE = 400

_KIND_OF_WORD: dict[str, tuple[FailureKind, int]] = {
    # OpenAI and those who speak as it does
    "context_length_exceeded": ("overflow", 400),
    "exceed_context_size_error": ("overflow", 400),
    "insufficient_quota": ("quota", 429),
    "billing_hard_limit_reached": ("quota", 429),
    "billing_not_active": ("quota", 429),
    "rate_limit_exceeded": ("rate_limit", 429),
    "invalid_api_key": ("auth", 401),
    "tool_use_failed": ("bad_call", 400),
    "content_filter": ("refused", 400),
    "content_policy_violation": ("refused", 400),
    "server_error": ("server", 500),
    "server_is_overloaded": ("overloaded", 503),
    "slow_down": ("overloaded", 503),
    # Anthropic
    "invalid_request_error": ("request", 400),
    "authentication_error": ("auth", 401),
    "billing_error": ("quota", 402),
    "permission_error": ("auth", 403),
    "not_found_error": ("request", 404),
    "request_too_large": ("overflow", 413),
    "rate_limit_error": ("rate_limit", 429),
    "api_error": ("server", 500),
    "timeout_error": ("timeout", 504),
    "overloaded_error": ("overloaded", 529),
    # Google
    "INVALID_ARGUMENT": ("request", 400),
    "FAILED_PRECONDITION": ("request", 400),
    "UNAUTHENTICATED": ("auth", 401),
    "PERMISSION_DENIED": ("auth", 403),
    "NOT_FOUND": ("request", 404),
    "RESOURCE_EXHAUSTED": ("rate_limit", 429),
    "INTERNAL": ("server", 500),
    "UNAVAILABLE": ("overloaded", 503),
    "DEADLINE_EXCEEDED": ("timeout", 504),
    # Bedrock
    "ValidationException": ("request", 400),
    "AccessDeniedException": ("auth", 403),
    "ResourceNotFoundException": ("request", 404),
    "ModelTimeoutException": ("timeout", 408),
    "ModelErrorException": ("server", 424),
    "ModelStreamErrorException": ("server", 424),
    "ThrottlingException": ("rate_limit", 429),
    "ModelNotReadyException": ("overloaded", 429),
    "InternalServerException": ("server", 500),
    "ServiceUnavailableException": ("overloaded", 503),
}
"""Codes and types on the wire; exact words, for their texts mislead."""

_KIND_OF_STATUS: dict[int, FailureKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "timeout",
    409: "server",
    413: "overflow",
    424: "server",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}

_RETRYABLE: frozenset[FailureKind] = frozenset(
    {"bad_call", "connection", "empty", "malformed", "overloaded", "rate_limit", "server", "timeout", "truncated"}
)

_WAIT_IN_TEXT = re.compile(
    r"(?:retry|try again) (?:after|in) (\d+(?:\.\d+)?) ?(ms|milliseconds|s|seconds?)\b", re.IGNORECASE
)
_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.IGNORECASE)
_PER_DAY = re.compile(r"per_?day|daily", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Said:
    """What an error object holds, whatever its shape."""

    message: str = ""
    words: tuple[str, ...] = ()
    """Codes and types, the most exact first."""
    status: int | None = None
    wait_s: float | None = None
    quota_is_daily: bool = False


def error_from_object(body: Json, *, status: int | None) -> ApiError:
    """The failure that an error object means, out of a body or of a stream; `status` None: it came in a stream."""
    return _failure(_read(body), status)


def error_from_response(status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> ApiError:
    """The failure that a response means whose status is none of 2xx, or whose content is nothing that an API sends."""
    lower = {name.lower(): value for name, value in headers.items()}
    said = _read(_json_of(body))
    if not said.message:
        said = _Said(_text_of_page(body, lower.get("content-type", "")), said.words)
    amazon = lower.get("x-amzn-errortype", "").partition(":")[0]
    if amazon:
        said = _Said(said.message, (amazon, *said.words), said.status, said.wait_s)
    if 200 <= status < 300:
        return _no_api(status, said.message)
    error = _failure(said, status)
    wait_s = _wait_of_headers(lower, now)
    error.retry_after_s = wait_s if wait_s is not None else error.retry_after_s
    asked = lower.get("x-should-retry")
    if asked in ("true", "false") and error.kind not in ("overflow", "quota"):
        error.retryable = asked == "true"
    return error


def _no_api(status: int, said: str) -> ApiError:
    what = f"the server answered HTTP {status} with something that no model API sends ({said or 'nothing'})"
    text = f"{what}: is the base URL right?"
    return ApiError("malformed", one_line(text, MAX_MESSAGE), retryable=False, status=status)


def _failure(said: _Said, http_status: int | None) -> ApiError:
    status = http_status if http_status is not None else said.status
    kind = _kind(said, status)
    if status is None:
        status = next((_KIND_OF_WORD[word][1] for word in said.words if word in _KIND_OF_WORD), None)
    label = f"HTTP {status}" if http_status is not None else "an error in the stream"
    words = f" {said.words[0]}" if said.words else ""
    message = one_line(f"{label}{words}: {said.message or 'the server said nothing more'}", MAX_MESSAGE)
    wait_s = said.wait_s if said.wait_s is not None else _wait_of_text(said.message)
    return ApiError(kind, message, retryable=kind in _RETRYABLE, retry_after_s=wait_s, status=status)


def _kind(said: _Said, status: int | None) -> FailureKind:
    known = [_KIND_OF_WORD[word][0] for word in said.words if word in _KIND_OF_WORD]
    if is_overflow(said.message) or "overflow" in known:
        return "overflow"
    if "quota" in known or said.quota_is_daily:
        return "quota"
    if known and not (known[0] == "request" and status not in (None, 400)):
        return known[0]
    if status is None:
        return "server"
    return _KIND_OF_STATUS.get(status, "server" if status >= 500 else "request")


# Reading


def _json_of(body: bytes) -> Json:
    """Whatever content type it says: one server sends its errors as application/octet-stream."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _read(body: Json) -> _Said:
    if isinstance(body, list) and body:  # Google's other endpoint wraps the error so
        body = body[0]
    if isinstance(body, str):
        return _Said(body)
    if not isinstance(body, dict):
        return _Said()
    inner = body.get("error")
    if isinstance(inner, str):
        return _Said(inner, tuple(_words(body)))
    error = inner if isinstance(inner, dict) else body
    details = [item for item in _list(error.get("details")) if isinstance(item, dict)]
    return _Said(
        message=_message(error, body),
        words=tuple(_words(error)),
        status=_status(error),
        wait_s=next(filter(None, (_duration(item.get("retryDelay")) for item in details)), None),
        quota_is_daily=any(_is_daily(item) for item in details),
    )


def _message(error: dict[str, Json], body: dict[str, Json]) -> str:
    candidates = (error.get("message"), error.get("Message"), body.get("message"), _validation(body.get("detail")))
    message = next((text for text in candidates if isinstance(text, str) and text), "")
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None  # OpenRouter: what its own server was told
    return f"{message} ({raw})" if isinstance(raw, str) and raw else message


def _validation(detail: Json) -> str | None:
    """FastAPI's list of what is wrong, or one text."""
    if isinstance(detail, list):
        problems = [item.get("msg") for item in detail if isinstance(item, dict)]
        return "; ".join(problem for problem in problems if isinstance(problem, str)) or None
    return detail if isinstance(detail, str) else None


def _words(error: dict[str, Json]) -> Iterator[str]:
    for key in ("code", "type", "status", "__type"):
        word = error.get(key)
        if isinstance(word, str) and word not in ("", "error"):
            yield word


def _status(error: dict[str, Json]) -> int | None:
    for key in ("status_code", "code", "status"):
        status = error.get(key)
        if isinstance(status, int) and not isinstance(status, bool) and 100 <= status < 600:
            return status
    return None


def _is_daily(detail: dict[str, Json]) -> bool:
    """Whether it tells of a quota that only tomorrow brings back."""
    violations = [item for item in _list(detail.get("violations")) if isinstance(item, dict)]
    quotas = [item.get("quotaId") for item in violations]
    return any(isinstance(quota, str) and _PER_DAY.search(quota) for quota in quotas)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _text_of_page(body: bytes, content_type: str) -> str:
    text = body[:20_000].decode("utf-8", "replace")
    if "html" in content_type or text.lstrip()[:1] == "<":
        title = _TITLE.search(text)
        return f"a page called {title[1].strip()!r}" if title else "a page of HTML"
    return text.strip()[:200]


# Waiting


def _wait_of_headers(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds; header names in small letters. The more exact one wins."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    seconds = _number(asked)
    if seconds is not None or asked is None:
        return seconds
    try:
        moment = parsedate_to_datetime(asked)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - now).total_seconds(), 0.0)


def _wait_of_text(message: str) -> float | None:
    match = _WAIT_IN_TEXT.search(message)
    if match is None:
        return None
    return float(match[1]) / (1000 if match[2].lower().startswith("m") else 1)


def _duration(text: Json) -> float | None:
    """Google's form, `45.837906927s`."""
    return _number(text[:-1]) if isinstance(text, str) and text.endswith("s") else None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None
