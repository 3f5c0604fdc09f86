"""Parts of a turn that are read one by one, since the span above all of them has not ended."""

from __future__ import annotations

import json

from apps.otel.feeding import as_otlp
from apps.otel.general.several import planned_parts_with_a_span_each
from steelyard_opentelemetry.received import ReceivedSpans


def test_a_part_that_is_read_later_is_noted_as_one() -> None:
    spans = planned_parts_with_a_span_each.spans()
    plan, first, second = spans[:1], spans[1:4], spans[4:7]
    reader = ReceivedSpans(quiet=1.0, ttl=60.0)
    notes: list[str] = []
    for moment, part in enumerate((plan, first, second)):
        request = json.dumps(as_otlp(part)).encode()
        for piece in reader.read(request, is_json=True).pieces.values():
            reader.take(piece, 200.0 * moment)
        notes += [" ".join(record.notes) for record in reader.ready(200.0 * moment + 100)]
    assert ["question_rewritten_only" in note for note in notes] == [True, True]
