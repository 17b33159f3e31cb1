"""What a server says went wrong, in any API's shape, as one kind of failure with what to do about it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from ci_agent.json_types import Json
from ci_agent.providers.wire.asked_waits import wait_of_duration, wait_of_headers, wait_of_text
from ci_agent.providers.wire.failures import ApiError, FailureKind
from ci_agent.providers.wire.overflow import is_overflow
from ci_agent.providers.wire.sse import read_json_events
from ci_agent.terminal import one_line

MAX_MESSAGE = 400

_KIND_OF_WORD: dict[str, tuple[FailureKind, int]] = {
    # OpenAI and those who speak as it does
    "context_length_exceeded": ("overflow", 400),
    "exceed_context_size_error": ("overflow", 400),
    "insufficient_quota": ("quota", 429),
    "exceeded_current_quota_error": ("quota", 429),
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
    "API_KEY_INVALID": ("auth", 400),
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

_VAGUE: frozenset[FailureKind] = frozenset({"request", "server"})
"""What servers also call what has a more exact word or status."""

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

_STATUS = re.compile(r"[1-5][0-9]{2}")
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
        said = replace(said, message=_text_of_page(body, lower.get("content-type", "")))
    amazon = lower.get("x-amzn-errortype", "").partition(":")[0]
    if amazon:
        said = replace(said, words=(amazon, *said.words))
    if 200 <= status < 300:
        return _no_api(status, said.message)
    error = _failure(said, status)
    wait_s = wait_of_headers(lower, now)
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
    wait_s = said.wait_s if said.wait_s is not None else wait_of_text(said.message)
    return ApiError(kind, message, retryable=kind in _RETRYABLE, retry_after_s=wait_s, status=status)


def _kind(said: _Said, status: int | None) -> FailureKind:
    known = [_KIND_OF_WORD[word][0] for word in said.words if word in _KIND_OF_WORD]
    exact = [kind for kind in known if kind not in _VAGUE]
    if is_overflow(said.message) or "overflow" in known:
        return "overflow"
    if "quota" in known or said.quota_is_daily:
        return "quota"
    if exact or (known and status is None):
        return [*exact, *known][0]
    if status is None:
        return "server"
    if status == 400 and said == _Said():  # Cerebras, of a request that is too long
        return "overflow"
    return _KIND_OF_STATUS.get(status, "server" if status >= 500 else "request")


# Reading


def _json_of(body: bytes) -> Json:
    """Whatever content type it says: one server sends its errors as application/octet-stream, some as events."""
    try:
        if body.lstrip().startswith((b"data:", b"event:")):
            return next((data for _, data in read_json_events(iter([body]))), None)
        return json.loads(body)
    except (ApiError, ValueError, RecursionError):
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
        words=(*_words(error), *(item["reason"] for item in details if isinstance(item.get("reason"), str))),
        status=_status(error),
        wait_s=next(filter(None, (wait_of_duration(item.get("retryDelay")) for item in details)), None),
        quota_is_daily=any(_is_daily(item) for item in details),
    )


def _message(error: dict[str, Json], body: dict[str, Json]) -> str:
    candidates = (error.get("message"), error.get("Message"), body.get("message"), _validation(body.get("detail")))
    message = next((text for text in candidates if isinstance(text, str) and text), "")
    return "".join([message, *(f" ({more})" for more in _more(error) if message and more not in message)])


def _more(error: dict[str, Json]) -> Iterator[str]:
    """What says it more exactly than the message: the field at fault; what OpenRouter's own server was told."""
    metadata = error.get("metadata")
    for text in (error.get("param"), metadata.get("raw") if isinstance(metadata, dict) else None):
        if isinstance(text, str) and text not in ("", "None"):
            yield text


def _validation(detail: Json) -> str | None:
    """FastAPI's list of what is wrong and where, or one text."""
    if isinstance(detail, list):
        return "; ".join(_problem(item) for item in detail if isinstance(item, dict)) or None
    return detail if isinstance(detail, str) else None


def _problem(item: dict[str, Json]) -> str:
    where = ".".join(str(step) for step in _list(item.get("loc"))[:10] if step != "body")
    return f"{where}: {item.get('msg')}" if where else str(item.get("msg"))


def _words(error: dict[str, Json]) -> Iterator[str]:
    for key in ("code", "type", "status", "__type"):
        word = error.get(key)
        if isinstance(word, str) and word not in ("", "error", "None") and _as_status(word) is None:
            yield word


def _status(error: dict[str, Json]) -> int | None:
    candidates = (_as_status(error.get(key)) for key in ("status_code", "code", "status"))
    return next((status for status in candidates if status is not None), None)


def _as_status(value: Json) -> int | None:
    """An HTTP status, which some servers write as a text."""
    text = str(value) if isinstance(value, int | str) else ""
    return int(text) if _STATUS.fullmatch(text) else None


def _is_daily(detail: dict[str, Json]) -> bool:
    """Whether it tells of a quota that only tomorrow brings back."""
    violations = [item for item in _list(detail.get("violations")) if isinstance(item, dict)]
    quotas = [item.get("quotaId") for item in violations]
    return any(isinstance(quota, str) and _PER_DAY.search(quota) for quota in quotas)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _text_of_page(body: bytes, content_type: str) -> str:
    text = body[:20_000].decode("utf-8", "replace").strip()
    if text and ("html" in content_type or text[0] == "<"):
        title = _TITLE.search(text)
        return f"a page called {title[1].strip()!r}" if title else "a page of HTML"
    return text[:200]
