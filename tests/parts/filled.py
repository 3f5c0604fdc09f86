"""Values of any dataclass, made by the types of its fields: whatever may be there is there now and then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from random import Random
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Makers = Mapping[Any, Callable[[Random], Any]]
_NAMES = {
    "kind": ("supported", "contradicted", "noncommittal", "useful", "same", "rating"),
    "metric": ("faithfulness", "noise", "own"),
    "beside": ("", "", "own"),
}
_TIMES = {"at", "since", "until", "time", "first", "last", "earliest", "latest", "made_at", "started_at"}
_DAY = 86_400.0
_START = 1_759_708_800.0


def filled(kind: Any, draw: Random, makers: Makers, name: str = "") -> Any:
    """A value of this type.

    Args:
        kind: A dataclass, or the type of a field.
        draw: What makes it.
        makers: For types whose parts have to fit together, how they are made.
        name: Of the field, for numbers that are times.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if kind in makers:
        return makers[kind](draw)
    if origin is Literal:
        return draw.choice(parts)
    if origin in (Union, UnionType):
        return filled(draw.choice(parts), draw, makers, name)
    if origin is tuple and parts == (int, int):  # a place in a text
        return (start := draw.randint(0, 30), start + draw.randint(1, 20))
    if origin is tuple and parts[-1] is not Ellipsis:
        return tuple(filled(part, draw, makers, name) for part in parts)
    if origin in (tuple, list, Sequence):
        return tuple(filled(parts[0], draw, makers, name) for _ in range(draw.choice([0, 1, 2, 3, 3])))
    if origin in (dict, Mapping):
        return {
            word: filled(parts[1], draw, makers) for word in draw.sample(["a_word", "another", "more"], 2)
        }
    if is_dataclass(kind) and isinstance(kind, type):
        types = get_type_hints(kind)
        own = [field.name for field in fields(kind) if field.init]
        return kind(**{field: filled(types[field], draw, makers, field) for field in own})
    return _plain(kind, draw, name)


def _plain(kind: Any, draw: Random, name: str) -> Any:
    if kind is str and name in _NAMES:
        return draw.choice(_NAMES[name])
    if kind is float and name in _TIMES:
        return _START + draw.randint(0, 20) * _DAY + draw.choice([0, 5400])
    if kind is bool:
        return draw.random() < 0.5
    if kind is int:
        return draw.choice([0, 1, 2, 7, 29, draw.randint(30, 4000)])
    if kind is float:
        return round(draw.random(), 3)
    if kind is str:
        return draw.choice(["", *[f"word {draw.randint(1, 99)}"] * 4])
    assert kind is type(None), kind
    return None
