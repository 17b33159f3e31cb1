"""`reasoning_details`, the list in which OpenRouter and others carry thinking of any model, readable or sealed."""

from collections.abc import Sequence

from ci_agent.json_types import Json, JsonObject
from ci_agent.providers.wire.untrusted_json import text_at

_TEXTS = ("text", "summary", "data")
"""Fields that come in pieces."""


def text_of_details(details: Sequence[JsonObject]) -> str:
    """What can be read of them."""
    return "".join(text_at(detail, "text") or text_at(detail, "summary") for detail in details)


def merged_details(pieces: Sequence[JsonObject]) -> list[JsonObject]:
    """The details put together from those of all chunks: pieces that follow each other, of one type and index, are
    one. What came whole stays as it was."""
    groups: list[list[JsonObject]] = []
    for piece in pieces:
        if groups and _continues(groups[-1][0], piece):
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return [_joined(group) for group in groups]


def _continues(first: JsonObject, piece: JsonObject) -> bool:
    index = piece.get("index")
    same = first.get("type") == piece.get("type") and first.get("index") == index
    return same and index is not None and piece.get("id") in (None, first.get("id"))


def _joined(group: list[JsonObject]) -> JsonObject:
    if len(group) == 1:
        return group[0]
    merged: JsonObject = {}
    for piece in group:
        merged.update({name: value for name, value in piece.items() if value is not None or name not in merged})
    texts: dict[str, Json] = {}
    for name in _TEXTS:
        values = [piece[name] for piece in group if isinstance(piece.get(name), str)]
        if values:
            texts[name] = "".join(values)
    return merged | texts
