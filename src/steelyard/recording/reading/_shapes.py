"""Values as frameworks pass them: mappings, states, objects; told by their fields, without an import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from steelyard.record import text_of

_DEPTH = 6
_MOST = 2_000


def attribute(value: object, name: str) -> Any:
    """An attribute; None if there is none or it cannot be read."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - properties of a user's object may raise anything
        return None


def state_of(value: Any) -> Mapping[str, Any] | None:
    """A mapping, or the fields of a state object (pydantic, dataclass, named tuple); None for all else."""
    if isinstance(value, Mapping):
        return value
    if value is None or isinstance(value, (str, bytes, list, int, float)) or is_document(value):
        return None
    if isinstance(attribute(value, "content"), (str, list)) and isinstance(attribute(value, "type"), str):
        return None  # a message
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: attribute(value, field.name) for field in fields(value)}
    names = getattr(type(value), "model_fields", None) or getattr(type(value), "_fields", None)
    return {name: attribute(value, name) for name in names} if names else None


def is_document(value: object) -> bool:
    """Whether this is a document of LangChain or a node of LlamaIndex."""
    if attribute(value, "page_content") is not None:
        return True
    return attribute(value, "get_content") is not None


def strings_in(value: Any) -> Iterator[tuple[str, str]]:
    """Every text in a value with the name it stands under, each text of a list by itself.

    Documents and messages are left out: they are read as what they are.
    """
    waiting: list[tuple[str, Any, int]] = [("", value, _DEPTH)]
    for name, item, depth in waiting:  # it grows on the way
        if isinstance(item, str):
            yield name, text_of(item)
        elif depth > 0 and len(waiting) < _MOST and not _is_pair(item):
            if isinstance(item, (list, tuple)) and not hasattr(item, "_fields"):
                waiting += ((name, one, depth - 1) for one in item)
            elif (state := state_of(item)) is not None and not is_message_mapping(state):
                waiting += ((str(key), one, depth - 1) for key, one in state.items())


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
