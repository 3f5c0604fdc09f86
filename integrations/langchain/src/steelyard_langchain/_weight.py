"""What a turn keeps alive: how many bytes, and what of it nobody will read.

Prompts, histories, inputs and results are kept by reference until a Record is made of them. Their bytes count
against the queue's bound; the bytes of images and other media are let go, since no judge reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_PER_VALUE = 60
_MOST_VALUES = 5_000
_MEDIUM = 2_000
_MEDIA = frozenset(("image_url", "image", "input_image", "input_audio", "audio", "video", "file", "media"))


class Scales:
    """Adds up what values keep alive; a value that is reached twice counts once."""

    def __init__(self) -> None:
        self.size = 0
        self.has_media = False
        """Whether an image or another medium was among the values."""
        self._known: set[int] = set()
        self._left = _MOST_VALUES

    def add(self, values: Iterable[Any]) -> None:
        """Weigh values: their texts by length, everything else by a constant."""
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if value is None or id(value) in self._known:
                continue
            self._known.add(id(value))
            if isinstance(value, (str, bytes, bytearray)):
                self._add_text(value)
                continue
            self.size += _PER_VALUE
            if self._left <= 0:  # so large a value is counted by its share that was looked at
                self.size += self.size * len(waiting) // _MOST_VALUES
                return
            self._left -= 1
            waiting.extend(_parts(value))

    def _add_text(self, value: str | bytes | bytearray) -> None:
        self.size += len(value) + _PER_VALUE
        if len(value) > _MEDIUM and (not isinstance(value, str) or _is_medium(value)):
            self.has_media = True


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    own = getattr(value, "__dict__", None)
    return own.values() if type(own) is dict else ()


def _is_medium(text: str) -> bool:
    """Whether a text is base64 rather than words: no blank in its first thousands of characters."""
    return text.startswith("data:") or not any(map(str.isspace, text[:_MEDIUM]))


def without_media(value: Any, depth: int = 8) -> Any:
    """The value with media left out of its messages; itself where there are none."""
    if depth <= 0 or value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return b""
    if isinstance(value, Mapping):
        if value.get("type") in _MEDIA:
            return {"type": value["type"]}
        changed = {key: without_media(part, depth - 1) for key, part in value.items()}
        return changed if any(changed[key] is not part for key, part in value.items()) else value
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        parts = [without_media(part, depth - 1) for part in value]
        same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if same else (parts if isinstance(value, list) else tuple(parts))
    content = getattr(value, "content", None)
    if isinstance(content, list) and hasattr(value, "model_copy"):
        plain = without_media(content, depth - 1)
        return value if plain is content else value.model_copy(update={"content": plain})
    messages = getattr(value, "messages", None)  # a prompt value
    return without_media(messages, depth - 1) if isinstance(messages, list) else value
