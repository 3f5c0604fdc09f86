"""A Record as text for people. Its `repr` tells what it is without what it says, since that may be logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.text import shorten

if TYPE_CHECKING:
    from steelyard.record._record import Record

_WIDTH = 200
_MOST_CONTEXTS = 10


def shown(record: Record) -> str:
    """The turn in some lines: question, answer, contexts, notes; each cut to 200 characters.

    No character of it acts as code in a terminal.
    """
    named = [
        (f"turn {record.id}", record.status + (f", {record.error}" if record.error else "")),
        ("question", record.question),
        ("stand-alone question", record.standalone_question),
        ("answer", record.answer),
        ("reference", record.reference),
        *((f"context {rank}", context.text) for rank, context in enumerate(record.contexts[:_MOST_CONTEXTS])),
        ("more contexts", max(len(record.contexts) - _MOST_CONTEXTS, 0)),
        *(("note", note) for note in record.notes),
    ]
    return "\n".join(f"{shorten(name, _WIDTH)}: {shorten(str(said), _WIDTH)}" for name, said in named if said)
