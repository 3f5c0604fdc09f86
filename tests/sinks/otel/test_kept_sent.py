"""What sinks send of turns made at random, held against what they sent of them before."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from filled import filled
from kept import check
from sinks.making import TRACE
from sinks.otel.telemetry import Telemetry
from sinks.vendor_server import VendorServer
from sinks.vendors.makers import MAKERS, RUN
from steelyard.record import Context, Record, TraceRef
from steelyard.scores import Evaluation, Score, Verdict
from writing import write

REF = TraceRef(trace_id=TRACE.trace_id, span_id=TRACE.span_id, run_id=RUN)
TEXTS = tuple(Context(text=f"passage {rank}", rank=rank) for rank in (None, 0, 7))
MAKERS_OF: dict[Any, Any] = {
    str: lambda draw: draw.choice(["", "a word", f"word {draw.randint(1, 99)}", "half \ud800 a pair"]),
    Any: lambda draw: draw.choice([1, "more"]),
    Record: lambda draw: Record(
        id="r",
        question="What is it?",
        contexts=TEXTS[: draw.randint(0, 3)],
        metadata={"retrieval_span": draw.choice(["b7ad6b7169203332", "b7ad6b7169203332", 7])},
    ),
    TraceRef: lambda draw: REF,
}


def scored(draw: Random, number: int, contexts: tuple[Context, ...]) -> Score:
    """A score of its own id; its verdicts are often about the passages, one after the other."""
    score: Score = filled(Score, draw, MAKERS_OF)
    verdicts = tuple(
        Verdict(
            about=draw.choice([context.text, context.text, context.text, "another"]),
            kind=draw.choice(["useful", "useful", "useful", "supported"]),
            value=draw.choice([True, False, None]),
            probability=draw.choice([None, 0.25]),
            reason=draw.choice(["", "it names it"]),
        )
        for context in contexts
    )
    return replace(
        score,
        metric=f"metric {number}",
        id=draw.choice([f"id{number}", f"id{number}", ""]),
        value=round(draw.random(), 3) if score.status == "scored" else None,
        verdicts=verdicts if draw.random() < 0.8 else score.verdicts,
    )


def judged(seed: int) -> Evaluation:
    """A turn that may lack anything but a trace."""
    draw = Random(seed)
    found: Evaluation = filled(Evaluation, draw, MAKERS_OF)
    contexts = found.record.contexts if found.record is not None else TEXTS
    return replace(
        found,
        record_id=f"r{seed}",
        scores=tuple(scored(draw, number, contexts) for number in range(draw.randint(1, 3))),
        trace=REF,
        evaluated_at=draw.choice([1_700_000_000.0, 1_700_000_000.0, 1e12, -5.0]),
        retry_after=None,
    )


TURNS = [judged(seed) for seed in range(8)]


@pytest.mark.parametrize("vendor", MAKERS)
def test_a_vendor_is_sent_what_it_was_sent(vendor: str) -> None:
    with VendorServer() as server:
        for turn in TURNS:
            write(MAKERS[vendor](server.url), turn)
    sent = [[one.method, one.path, one.body] for one in server.requests if one.body is not None]
    check(f"sent_{vendor}", "\n".join(sorted(json.dumps(one, sort_keys=True) for one in sent)))


def test_opentelemetry_is_told_what_it_was_told(telemetry: Telemetry) -> None:
    for turn in TURNS:
        write(telemetry.sink(), turn)
    spans = [dict(span.attributes or {}) for span in telemetry.spans.get_finished_spans()]
    points = {
        name: sorted(
            [str(sorted((point.attributes or {}).items())), getattr(point, "value", None) or point.sum]
            for point in found
        )
        for name, found in telemetry.points().items()
    }
    told = [*spans, *telemetry.events(), points]
    check("sent_opentelemetry", "\n".join(json.dumps(one, sort_keys=True) for one in told))
