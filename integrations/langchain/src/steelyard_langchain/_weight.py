"""What a turn keeps alive: how many bytes, and what of it nobody will read.

Prompts, histories, inputs and results are kept by reference until a Record is made of them. Their bytes count
against the queue's bound; the bytes of images and other media are let go, since no judge reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_PLAIN = frozenset((type(None), bool, int, float))
_FLAT = frozenset((str, bytes))
_LISTS = frozenset((list, tuple))
_SHORT = 200  # so short a text is counted at once: looking whether it was seen costs more
_PER_VALUE = 60  # bytes of an object without its texts
_MOST_VALUES = 5_000  # this runs on the host's thread
_MEDIUM = 2_000  # an image is larger; base64 of less is a key or a hash
_MEDIA = frozenset(("image_url", "image", "input_image", "input_audio", "audio", "video", "file", "media"))


def weigh(values: Iterable[Any]) -> tuple[int, bool]:
    """Add up the bytes that values keep alive, roughly; and whether an image or another medium is among them.

    A value that is reached twice counts once; texts by their length, everything else by a constant.

    This runs on the host's thread, a few dozen values for most turns: hence one plain loop.
    """
    size, has_media, known = 0, False, set[int]()
    waiting = list(values)
    for seen, value in enumerate(waiting):  # it grows on the way
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is str and len(value) < _SHORT:
            size += len(value)
            continue
        if id(value) in known:
            continue
        known.add(id(value))
        if kind in _FLAT:
            size += len(value)
            has_media = has_media or _is_medium(value)
            continue
        size += _PER_VALUE
        if seen > _MOST_VALUES:  # of so large a value the rest counts as what was looked at
            return size * len(waiting) // seen, has_media
        if kind is dict:
            waiting += value.values()
        elif kind in _LISTS:
            waiting += value
        else:
            waiting += _parts(value)
    return size, has_media


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, str):
        return (str(value),)  # a class of somebody's own
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    own = getattr(value, "__dict__", None)
    return own.values() if type(own) is dict else ()


def _is_medium(value: str | bytes) -> bool:
    """Whether it is long, and not words: bytes, or base64, with no blank in its first 2,000 characters."""
    if len(value) <= _MEDIUM or isinstance(value, bytes):
        return len(value) > _MEDIUM
    return value.startswith("data:") or not any(map(str.isspace, value[:_MEDIUM]))


def without_media(value: Any, depth: int = 8) -> Any:
    """The value with media left out of its messages; itself where there are none."""
    if depth <= 0 or value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return b""
    if isinstance(value, Mapping):
        return _mapping_without_media(value, depth)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return _list_without_media(value, depth)
    content = getattr(value, "content", None)
    if isinstance(content, list) and hasattr(value, "model_copy"):
        plain = without_media(content, depth - 1)
        return value if plain is content else value.model_copy(update={"content": plain})
    messages = getattr(value, "messages", None)  # a prompt value
    return without_media(messages, depth - 1) if isinstance(messages, list) else value


def _mapping_without_media(value: Mapping[Any, Any], depth: int) -> Mapping[Any, Any]:
    if value.get("type") in _MEDIA:
        return {"type": value["type"]}
    changed = {key: without_media(part, depth - 1) for key, part in value.items()}
    return changed if any(changed[key] is not part for key, part in value.items()) else value


def _list_without_media(value: list[Any] | tuple[Any, ...], depth: int) -> list[Any] | tuple[Any, ...]:
    parts = [without_media(part, depth - 1) for part in value]
    if all(new is old for new, old in zip(parts, value, strict=True)):
        return value
    return parts if isinstance(value, list) else tuple(parts)
