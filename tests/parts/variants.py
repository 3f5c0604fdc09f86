"""Every copy of a value that differs from it in one field, however deep the field lies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
_hints: Callable[[type], dict[str, Any]] = cache(get_type_hints)


def variants(value: _T, *, without: Collection[str] = ()) -> Iterator[tuple[str, _T]]:
    """Pairs of the changed field's path and the changed copy.

    Args:
        value: A frozen dataclass.
        without: Paths of fields that stay as they are.
    """
    assert is_dataclass(value) and not isinstance(value, type)
    for field in fields(value):
        if field.init and field.name not in without:
            for path, other in _others(_hints(type(value))[field.name], getattr(value, field.name)):
                named = f"{field.name}{path}"
                if named not in without:
                    yield named, replace(value, **{field.name: other})


def full(kind: type[_T], **given: Any) -> _T:
    """One with a value in every field that nothing else is given for."""
    hints = _hints(kind)
    made = {one.name: _some(hints[one.name]) for one in fields(kind) if one.init and one.name not in given}  # type: ignore[arg-type]
    return kind(**made, **given)


def _some(hint: Any) -> Any:
    """A value of a type that is not its default."""
    options = get_args(hint)
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _some(next(one for one in options if one is not NoneType))
    if origin is Literal:
        return options[-1]
    if origin is tuple:
        return (_some(options[0]),) if options[-1] is ... else tuple(map(_some, options))
    if origin is frozenset:
        return frozenset({_some(options[0])})
    if origin is not None and issubclass(origin, Mapping):
        return {"key": _some(options[1])}
    if hint is Any:
        return "any"
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return full(hint)
    return {bool: True, int: 3, float: 0.25, str: "text"}[hint]


def _others(hint: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """Other values of a type, by what is changed of this one."""
    if value is None:
        yield "", _some(hint)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((f".{path}", other) for path, other in variants(value))
    elif isinstance(value, tuple):
        yield from _other_tuples(get_args(hint), value)
    elif isinstance(value, frozenset):
        yield " emptied", frozenset()
    elif isinstance(value, Mapping):
        yield " emptied", {}
        for key, one in value.items():
            yield f"[{key!r}] renamed", {f"{key}!": one}
            for path, other in _others(type(one), one):
                yield f"[{key!r}]{path}", {**value, key: other}
    else:
        yield "", _other(hint, value)


def _other_tuples(options: Sequence[Any], value: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    if options[-1:] == (...,):
        yield " shortened", value[:-1]
    for place, one in enumerate(value):
        hint = options[place] if place < len(options) and ... not in options else [*options, type(one)][0]
        for path, other in _others(hint, one):
            yield f"[{place}]{path}", (*value[:place], other, *value[place + 1 :])


def _other(hint: Any, value: Any) -> Any:
    for literal in (hint, *get_args(hint)):
        if get_origin(literal) is Literal:
            return next(one for one in get_args(literal) if one != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 2
    return (value / 2 or 0.5) if isinstance(value, float) else f"{value}!"
