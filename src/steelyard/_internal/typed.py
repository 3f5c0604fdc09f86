"""Dataclasses: to plain values and back, by their types, and changed only where something in them changes.

Pydantic, which comes with openai, reads and writes; it is imported with the first value.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from steelyard._internal.forks import ForkLock
from steelyard._internal.json_pieces import json_value
from steelyard.errors import InvalidRecord

if TYPE_CHECKING:
    from pydantic import TypeAdapter


_Value = TypeVar("_Value")
_making = ForkLock()
_Part = TypeVar("_Part", bound=Any)


@cache
def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """What reads and writes a dataclass; made once."""
    # Pydantic and its part in Rust have locks of their own at first use, which a forked child cannot free.
    with _making:
        from pydantic import TypeAdapter

        return TypeAdapter(kind)


def loads(line: str | bytes) -> Any:
    """What a line of JSON holds.

    Raises:
        InvalidRecord: If it is not JSON.
    """
    try:
        return json_value(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"not JSON: {error}") from None


def read(kind: type[_Value], data: object, *, where: str = "", what: str = "record") -> _Value:
    """Read a dataclass; fields that it does not know are passed over.

    Args:
        kind: The class.
        data: Plain values.
        where: The path of the value in a larger one, for the message.
        what: What it is called where no path can be named.

    Raises:
        InvalidRecord: Naming the field, never its content.
    """
    reader = adapter(kind)  # type: ignore[arg-type]  # a class is hashable
    from pydantic import ValidationError

    try:
        found: _Value = reader.validate_python(data)
        return found
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = ".".join(map(str, [*filter(None, [where]), *first["loc"]])) or what
        wrong = first["msg"].removeprefix("Input should be")
        said = f" must be{wrong}" if wrong != first["msg"] else f": {wrong.lower()}"
        raise InvalidRecord(f"{path!r}{said}") from None
    except RecursionError:
        raise InvalidRecord(f"the {what} is nested too deeply") from None


def with_changes(part: _Part, /, **changes: object) -> _Part:
    """A dataclass with these fields."""
    same = all(value is getattr(part, name) for name, value in changes.items())
    return part if same else replace(part, **changes)


def with_items(given: object, items: Sequence[_Part]) -> tuple[_Part, ...]:
    """A tuple of these."""
    if isinstance(given, tuple) and len(given) == len(items) and all(map(operator.is_, given, items)):
        return given
    return tuple(items)
