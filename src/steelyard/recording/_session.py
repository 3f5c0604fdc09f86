"""Which conversation a turn belongs to, by what frameworks already say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.record import text_of

_NAMES = ("session_id", "thread_id", "conversation_id", "chat_id")


def session_of(about: Mapping[Any, Any] | None) -> str | None:
    """The conversation that metadata, or a configuration, names; None if none does.

    >>> session_of({"thread_id": 7, "user": "ada"})
    '7'
    """
    for name in _NAMES if about else ():
        value = about.get(name) if about else None
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip():
            return text_of(str(value))
    return None
