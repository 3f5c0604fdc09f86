"""Passages from several places, without those that tell the same text again in another cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.record import Context
from steelyard.recording.provenance import find_passages

_MOSTLY = 0.5


def without_overlap(others: Iterable[Context], known: Sequence[str]) -> tuple[Context, ...]:
    """Those of some passages whose words do not mostly stand in the known ones."""
    seen = set(known)
    left = [context for context in others if context.text not in seen]
    sightings = find_passages([context.text for context in left], known) if known else ()
    if not sightings:
        return tuple(left)
    return tuple(
        context for context, sighting in zip(left, sightings, strict=True) if sighting.seen < _MOSTLY
    )
