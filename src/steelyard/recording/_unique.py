"""The same passage once, however often it came."""

from __future__ import annotations

from collections.abc import Iterable

from steelyard.record import Context


def unique(contexts: Iterable[Context]) -> tuple[Context, ...]:
    """The first of each passage, in order. The same passage has the same text; ids of stores may collide."""
    found: dict[str, Context] = {}
    for context in contexts:
        found.setdefault(context.text, context)
    return tuple(found.values())
