"""One turn in lines: what was taken for question, passages and answer, and what would settle each doubt."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard._internal.text import shorten
from steelyard.record import Record
from steelyard.recording.explaining import Part, explain

_WIDTH = 100
_PASSAGES = 12


def lines_of(record: Record, number: int) -> Iterator[str]:
    """The page of one turn."""
    found = explain(record)
    trace = record.trace
    of = [trace.framework or "" if trace else "", trace.trace_id or "" if trace else "", record.status]
    yield f"turn {number}  {shorten('  '.join(filter(None, of)), _WIDTH)}"
    yield _line("question", found.question)
    for at, part in enumerate(found.passages[:_PASSAGES], 1):
        yield _line(f"passage {at}", part)
    if not found.passages:
        yield "  passages    none"
    elif len(found.passages) > _PASSAGES:
        yield f"  and {len(found.passages) - _PASSAGES} more passages"
    yield _line("answer", found.answer)
    for doubt in found.doubts:
        yield f"  note        {shorten(doubt.note, 400)}"
        if doubt.option:
            yield f"  settled by  {doubt.option}"


def _line(name: str, part: Part) -> str:
    if not part.text:
        return f"  {name:<11} not found"
    return f"  {name:<11} {shorten(part.how, 160)}\n              {shorten(part.text, _WIDTH)}"
