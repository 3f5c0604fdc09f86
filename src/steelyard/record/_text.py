"""Any object as text that every store takes."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def text_of(value: object) -> str:
    """Any object as valid Unicode without NULs; an object that cannot be shown becomes a short note."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value).decode("utf-8", errors="replace")
    elif not isinstance(value, str):
        value = "" if value is None else _shown(value)
    elif type(value) is not str:
        value = str.__str__(value)  # a subclass (LangChain's TextAccessor, an enum) may act unlike a string
    if value.isascii() and "\0" not in value:
        return value
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)


def _shown(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a user's __str__ may raise anything
        return f"<{type(value).__name__} that cannot be shown>"
