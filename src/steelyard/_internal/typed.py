"""Dataclasses to plain values and back by their types, and JSON without keeping other threads waiting.

Pydantic reads and writes dataclasses; it is imported with the first value. The json package reads or writes a
document in one call of a C function, and no other thread of the application runs before it returns: for a
turn of some million characters that is longer than a request of the application may be held up. Here a long
document is many short calls.
"""

from __future__ import annotations

import codecs
import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from json.decoder import JSONArray, JSONObject  # type: ignore[attr-defined]  # typeshed leaves them out
from typing import TYPE_CHECKING, Any, TypeVar

from steelyard._internal.forks import ForkLock
from steelyard.errors import InvalidRecord

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_SHORT = 50_000
"""Characters up to which one call is quick, whatever they are."""
_WINDOWS = (500, 16_000)
"""Characters in which a list or an object is looked for as a whole: first few, then more."""
# A decoder's single call takes less than a millisecond for so many bytes.
_PIECE = 250_000
_WEIGHT = 8
"""Characters that a value other than text stands for."""


def json_value(text: str | bytes) -> Any:
    """What `json.loads` returns; bytes have to be UTF-8.

    Raises:
        ValueError: If it is not JSON.
        RecursionError: If it is nested too deeply.
    """
    if len(text) <= _SHORT:
        return json.loads(text)
    return PiecewiseDecoder().decode(_decoded(text) if isinstance(text, bytes) else text)


def json_pieces(value: object) -> Iterable[str]:
    """The pieces of a value as JSON without spaces; each is about as long as one text in it at most.

    Raises:
        RecursionError: If the value is nested too deeply, or holds itself.
        ValueError: If a number is one that JSON does not have; while the pieces are taken.
        TypeError: If JSON has no form for something, likewise.
    """
    encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if _room_left(value, _SHORT) >= 0:
        return (encoder.encode(value),)
    return encoder.iterencode(value)


def _decoded(text: bytes) -> str:
    # Byte order marks and lone surrogates are read, as `json.loads` reads them.
    decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogatepass")
    starts = range(0, len(text), _PIECE)
    return "".join(decoder.decode(text[at : at + _PIECE], at + _PIECE >= len(text)) for at in starts)


class PiecewiseDecoder(json.JSONDecoder):
    """Looks for each list and object in short windows, and goes through those that are longer itself.

    Args:
        parse_constant: As for the class that it extends.
        object_pairs_hook: Likewise.
    """

    scan_once: Callable[[str, int], tuple[Any, int]]

    def __init__(
        self,
        *,
        parse_constant: Callable[[str], Any] | None = None,
        object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
    ) -> None:
        super().__init__(parse_constant=parse_constant, object_pairs_hook=object_pairs_hook)
        self._whole = self.scan_once
        self.scan_once = self._value

    def _value(self, text: str, at: int) -> tuple[Any, int]:
        opening = text[at : at + 1]
        if opening not in ("{", "["):
            return self._whole(text, at)
        for window in _WINDOWS:
            try:
                value, length = self._whole(text[at : at + window], 0)
            except (ValueError, StopIteration):
                continue  # it is longer, or wrong, which is found out below
            return value, at + length
        if opening == "[":
            return JSONArray((text, at + 1), self._value)  # type: ignore[no-any-return]
        return JSONObject((text, at + 1), self.strict, self._value, None, self.object_pairs_hook)  # type: ignore[no-any-return]


def _room_left(value: object, room: int) -> int:
    """The characters that are left when a value is written; below 0 as soon as it is known to be longer."""
    if isinstance(value, str):
        return room - len(value)
    if isinstance(value, Mapping):
        parts: Iterable[object] = value.values()
    elif isinstance(value, list | tuple):
        parts = value
    else:
        return room - _WEIGHT
    for part in parts:
        if (room := _room_left(part, room - _WEIGHT)) < 0:
            break
    return room


_Value = TypeVar("_Value")
_making = ForkLock()
_Part = TypeVar("_Part", bound=Any)


class Adapter:
    """What reads and writes a dataclass.

    Pydantic and its part in Rust have locks of their own at first use, which a forked child cannot free: a
    fork waits until that is over.
    """

    def __init__(self, made: TypeAdapter[Any]) -> None:
        self._made = made
        self._used: set[str] = set()

    def dump_python(self, value: object, **options: Any) -> Any:
        """Its fields as plain values, as pydantic's own method has it."""
        return self._use(self._made.dump_python, value, options)

    def validate_python(self, data: object) -> Any:
        """Read from plain values, as pydantic's own method has it."""
        return self._use(self._made.validate_python, data, {})

    def _use(self, call: Callable[..., Any], value: object, options: Mapping[str, Any]) -> Any:
        if call.__name__ in self._used:
            return call(value, **options)
        with _making:
            found = call(value, **options)
        self._used.add(call.__name__)
        return found


@cache
def adapter(kind: type[Any]) -> Adapter:
    """What reads and writes a dataclass; made once."""
    with _making:
        from pydantic import TypeAdapter

        return Adapter(TypeAdapter(kind))


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
