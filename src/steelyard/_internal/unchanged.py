"""The very object where nothing in it is changed: most that is cleaned needs none, and more than once."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

_Part = TypeVar("_Part", bound=Any)


def with_changes(part: _Part, /, **changes: object) -> _Part:
    """A dataclass with these fields."""
    same = all(value is getattr(part, name) for name, value in changes.items())
    return part if same else replace(part, **changes)


def with_items(given: object, items: Sequence[_Part]) -> tuple[_Part, ...]:
    """A tuple of these."""
    if isinstance(given, tuple) and len(given) == len(items) and all(map(operator.is_, given, items)):
        return given
    return tuple(items)
