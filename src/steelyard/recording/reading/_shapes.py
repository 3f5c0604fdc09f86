"""Values as frameworks pass them: mappings, states, objects; told by their fields, without an import."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from typing import Any

from steelyard.record import text_of
from steelyard.recording.reading._literals import read_shown
from steelyard.recording.reading._values import DOCUMENT_TEXT, is_node_mapping

_DOING = ("invoke", "format", "predict", "run", "retrieve", "query", "__next__", "__anext__")
"""What tools, models, agents, indexes, templates and streams can do; data cannot."""
_FIELDS = {"object": "properties", "array": "items"}
"""Where a JSON Schema of each kind tells what data of that kind holds."""
_DEPTH = 6
_MOST = 2_000


def attribute(value: object, name: str) -> Any:
    """An attribute; None if there is none or it cannot be read."""
    try:
        cls: Any = type(value)
        if _lacks(cls, name) and name not in (getattr(value, "__pydantic_extra__", None) or ()):
            return None
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - properties of a user's object may raise anything
        return None


@lru_cache(maxsize=2048)
def _lacks(cls: Any, name: str) -> bool:
    """Whether objects of a class of pydantic's lack an attribute: asking them takes microseconds.

    Not if the class answers for names of its own making.
    """
    names = getattr(cls, "__pydantic_fields__", None)
    if names is None or name in names or hasattr(cls, name):
        return False
    bases = (base for base in cls.__mro__ if base is not object and base.__module__ != "pydantic.main")
    return all({"__getattr__", "__getattribute__"}.isdisjoint(vars(base)) for base in bases)


def state_of(value: Any) -> Mapping[str, Any] | None:
    """A mapping, or the fields of a state object (pydantic, dataclass, named tuple); None for all else."""
    # Asking whether something is a Mapping is slow, and most values are texts, lists or plain dicts.
    if value is None or isinstance(value, (str, bytes, list, int, float)):
        return None
    if isinstance(value, (dict, Mapping)):
        return value
    if is_document(value):
        return None
    if isinstance(attribute(value, "content"), (str, list)) and isinstance(attribute(value, "type"), str):
        return None  # a message
    names = _names_of(value)
    return {name: attribute(value, name) for name in names} if names else None


def _names_of(value: Any) -> Collection[str] | None:
    """The fields of a state object; none of what does something: what it holds is the application's own."""
    if does_something(value):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return [one.name for one in fields(value)]
    names: Collection[str] | None = getattr(type(value), "model_fields", None)
    return names or getattr(type(value), "_fields", None)


def does_something(value: object) -> bool:
    """Whether an object is a part of the application (a tool, a model, a template, a stream), and no data."""
    # A field with a default is an attribute of its class, too.
    is_able = callable(value) or any(callable(getattr(type(value), name, None)) for name in _DOING)
    return is_able and not isinstance(value, str)


def is_document(value: object) -> bool:
    """Whether this is a document of LangChain or a node of LlamaIndex."""
    if attribute(value, DOCUMENT_TEXT) is not None:
        return True
    return attribute(value, "get_content") is not None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text within a value."""

    name: str
    """The name that it stands under."""
    text: str = field(repr=False)
    """What it says."""
    table: int = 0
    """Which list of mappings it stands in, from 1 on, so that the name is a column's; 0 for none."""
    row: int = 0
    """Which entry of a list it stands in beside other texts, from 1 on; 0 for none."""


def strings_in(value: Any) -> Iterator[tuple[str, str]]:
    """Every text in a value with the name it stands under, each text of a list by itself.

    Documents and messages are left out: they are read as what they are.
    """
    return ((leaf.name, leaf.text) for leaf in leaves_in(value))


def leaves_in(value: Any) -> Iterator[Leaf]:
    """The same, with the lists of mappings, and the entries of lists, that each text stands in."""
    waiting = [_Part("", value)]
    for part in waiting:  # it grows on the way
        if isinstance(part.value, str):
            yield Leaf(part.name, text_of(part.value), part.table, part.row)
        elif part.depth > 0 and len(waiting) < _MOST and not _is_pair(part.value):
            waiting += _parts(part, len(waiting))


@dataclass(slots=True, repr=False)
class _Part:
    name: str
    value: Any
    depth: int = _DEPTH
    table: int = 0
    row: int = 0


def _parts(of: _Part, number: int) -> Iterator[_Part]:
    """What a list or a mapping holds; `number` tells a list and its entries from all others."""
    value, depth = of.value, of.depth - 1
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        is_table = bool(value) and all(isinstance(one, Mapping) for one in value)
        for at, one in enumerate(value):
            row = of.row if isinstance(one, str) else number + at
            yield _Part(of.name, one, depth, number if is_table else of.table, row)
    elif (state := state_of(value)) is not None and not is_message_mapping(state):
        if is_node_mapping(state):
            state = {"text": state["text"]}
        yield from (_Part(str(key), one, depth, of.table, of.row) for key, one in state.items())


def _is_pair(value: Any) -> bool:
    """Whether a value may be a message in its short form: who speaks, and what they said."""
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    return isinstance(value[0], str) and " " not in value[0].strip()


def is_message_mapping(value: Mapping[Any, Any]) -> bool:
    """Whether a mapping is a message: somebody's role, and what they said."""
    return ("role" in value or "type" in value) and any(
        key in value for key in ("content", "parts", "data", "blocks")
    )


def is_schema(value: Any) -> bool:
    """Whether a mapping, or a text that shows one, is a JSON Schema: it tells of fields, and of no data.

    >>> is_schema('{"type": "array", "items": {"properties": {"stop": {"type": "string"}}}}')
    True
    """
    if isinstance(value, str):
        is_able = value.lstrip()[:1] == "{" and any(one in value for one in _FIELDS.values())
        value = read_shown(value.strip()) if is_able else None
    if not isinstance(value, Mapping):
        return False
    return isinstance(value.get(_FIELDS.get(str(value.get("type")), "")), Mapping)
