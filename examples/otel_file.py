"""Traces in a file, as a Collector writes them: score the turns, and say what is missing in the rest."""

from __future__ import annotations

import json
from typing import Any

from steelyard import evaluate
from steelyard.metrics import Faithfulness
from steelyard_opentelemetry import read_otlp, read_spans

TRACE = "0af7651916cd43dd8448eb211c80319c"


def line(trace: str, name: str, **attributes: str) -> str:
    """One export of one span."""
    keys: list[dict[str, Any]] = [
        {"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in attributes.items()
    ]
    times = {"startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000"}
    span = {"traceId": trace, "spanId": trace[:16], "name": name, "attributes": keys, **times}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})


LINES = [
    line(
        TRACE,
        "answer",
        steelyard__question="What is the capital of France?",
        steelyard__contexts=json.dumps([{"id": "d1", "text": "Paris is the capital of France."}]),
        steelyard__answer="Paris is the capital of France.",
    ),
    line(TRACE[::-1], "chat", gen_ai__operation__name="chat", gen_ai__request__model="some-model"),
]


def main() -> None:
    reading = read_spans(read_otlp(LINES).spans)
    for diagnosis in reading.diagnoses:
        print(diagnosis)
    results = evaluate(reading.records, metrics=[Faithfulness()])
    for evaluation in results.evaluations:
        print(evaluation.record_id, *(f"{score.metric}={score.value}" for score in evaluation.scores))


if __name__ == "__main__":
    main()
