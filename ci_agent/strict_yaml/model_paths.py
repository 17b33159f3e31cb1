"""What a model says of the place that a path leads to in a document."""

import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel


def annotations_at(model: type[BaseModel], path: Sequence[str | int]) -> list[Any]:
    """The types that the value at a path may have: models, lists, plain types. Empty where the model knows no such
    place."""
    candidates: list[Any] = [model]
    for step in path:
        candidates = [inner for candidate in candidates for inner in _step_into(candidate, step)]
    return candidates


def scalars_at(model: type[BaseModel], path: Sequence[str | int]) -> list[str | type]:
    """What a plain scalar at a path may be: words of a closed set, as they are written, and types. A list's items can
    each stand for it."""
    found = (scalar for candidate in annotations_at(model, path) for scalar in _scalars_of(candidate))
    return list(dict.fromkeys(found))


def members(annotation: Any) -> Iterator[Any]:
    """The members of a union, through annotations and type aliases."""
    if get_origin(annotation) is Annotated:
        yield from members(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from members(member)
    else:
        yield annotation


def is_model(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)


def _step_into(candidate: Any, step: str | int) -> Iterator[Any]:
    if is_model(candidate):
        for name, field in candidate.model_fields.items():
            if step in (name, field.alias):
                yield from members(field.annotation)
    else:
        for item in _items(candidate):
            yield from members(item)


def _items(candidate: Any) -> Sequence[Any]:
    """Of a list or a tuple of any length; the values of a mapping."""
    return [argument for argument in get_args(candidate) if argument is not ...][-1:]


def _scalars_of(candidate: Any) -> Iterator[str | type]:
    if get_origin(candidate) is Literal:
        yield from map(str, get_args(candidate))
    elif get_origin(candidate) in (list, tuple):
        for item in _items(candidate):
            for member in members(item):
                yield from _scalars_of(member)
    elif candidate is not types.NoneType:
        yield candidate if candidate in (str, bool, int, float) else object
