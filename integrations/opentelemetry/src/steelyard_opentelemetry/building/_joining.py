"""Retrievals and the model calls that used them, where no link says that they belong together."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.recording.building import reaches
from steelyard.recording.provenance import find_passages
from steelyard_opentelemetry.building._evidence import evidence_of
from steelyard_opentelemetry.building._turn import Turn
from steelyard_opentelemetry.spans._tree import Node

_FEWEST_WORDS = 2


def is_before(part: Turn, piece: Turn, patience: int) -> bool:
    """Whether a retrieval came before a model call of the same process, and not too long before."""
    span, after = part.root.span, piece.root.span
    # Clocks of two machines differ by more than a turn takes.
    if span.service != after.service or not 0 <= after.end - span.start <= patience + after.end - after.start:
        return False
    return after.end >= span.end or span.trace_id == after.trace_id


def used_by(parts: Sequence[Turn], piece: Turn) -> list[Turn]:
    """The retrievals of which a model call's prompt holds a document, or where none is told, the query.

    Of several in other traces that found the same the latest counts: an earlier one may have been for a turn
    that failed.

    Args:
        parts: The retrievals, in the order in which they began.
        piece: The model call.
    """
    texts = [[context.text for context in evidence_of(part).contexts] for part in parts]
    new = _shown(list(dict.fromkeys(text for each in texts for text in each)), piece.prompts)
    prompts = " ".join(" ".join(piece.prompts).split())
    used: list[Turn] = []
    for part, each in zip(reversed(parts), reversed(texts), strict=True):
        query = " ".join(part.question.split())
        # A single word stands in prompts by chance.
        asked = len(query.split()) >= _FEWEST_WORDS and query in prompts
        if not new.isdisjoint(each) or (not each and asked):
            used.append(part)
            new.difference_update(each if _is_elsewhere(part, piece) else ())
    return used[::-1]


def _shown(texts: Sequence[str], prompts: Sequence[str]) -> set[str]:
    pairs = zip(texts, find_passages(texts, prompts), strict=True)
    return {text for text, sighting in pairs if sighting.found and reaches(text, prompts)}


def _is_elsewhere(part: Turn, piece: Turn) -> bool:
    """Whether a look-up stands in another trace; what only chose among passages was not asked anything."""
    return part.question != "" and part.root.span.trace_id != piece.root.span.trace_id


def root_of(piece: Turn, parts: Sequence[Turn]) -> Node:
    """The span that stands for a joined turn: a chain's if one has it, else the model call that answered."""
    chained = [
        h.root
        for h in parts
        if h.root.parsed and h.root.parsed.kind in ("chain", "agent") and h.root.parsed.question
    ]
    return chained[0] if chained else piece.root
