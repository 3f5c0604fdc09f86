"""Evaluations for the tests of this folder."""

from __future__ import annotations

from typing import Any

from steelyard.record import Context, Record, TraceRef
from steelyard.scores import Evaluation, Evidence, Provenance, Score, Usage, Verdict

TRACE = TraceRef(
    trace_id="0af7651916cd43dd8448eb211c80319c", span_id="b7ad6b7169203331", framework="langchain"
)


def make_score(metric: str = "faithfulness", value: float | None = 0.75, **changes: Any) -> Score:
    verdicts = (
        Verdict(
            about="Marie Curie won two Nobel Prizes.",
            kind="supported",
            value=True,
            probability=0.9,
            evidence=(
                Evidence(context=0, start=0, end=11, text="Marie Curie", notes={"missing_numbers": ["3"]}),
            ),
        ),
        Verdict(
            about="She was born in 1967.", kind="supported", value=False, reason="The context says 1867."
        ),
    )
    details: dict[str, Any] = {
        "status": "scored",
        "explanation": "One of two claims is not supported.",
        "verdicts": verdicts,
        "standard_error": 0.05,
        "label": "pass",
        "passed": True,
        "threshold": 0.5,
        "inclusion_probability": 0.1,
        "provenance": Provenance(judge="local-lexical", prompt_version="1", metric_version="2"),
        "id": f"id-{metric}",
    }
    return Score(metric=metric, value=value, **{**details, **changes})


def failed(metric: str = "answer_relevancy", cause: str = "timeout", **changes: Any) -> Score:
    score = Score.failed(metric, cause=cause, explanation="the judge did not answer in time")
    return make_score(
        metric,
        None,
        status="failed",
        cause=score.cause,
        explanation=score.explanation,
        verdicts=(),
        standard_error=None,
        label=None,
        passed=None,
        **changes,
    )


def make_evaluation(record_id: str = "r1", *scores: Score, **changes: Any) -> Evaluation:
    record = Record(
        id=record_id,
        question="What did Marie Curie win?",
        contexts=(Context(text="Marie Curie won two Nobel Prizes.", id="doc-1", score=0.8, rank=0),),
        answer="Marie Curie won two Nobel Prizes. She was born in 1967.",
        trace=TRACE,
        tags=("demo",),
    )
    details: dict[str, Any] = {
        "usage": Usage(
            requests=2, questions=3, prompt_tokens=500, completion_tokens=40, cost=0.002, seconds=0.6
        ),
        "record": record,
        "trace": TRACE,
        "evaluated_at": 1_700_000_000.0,
        "duration": 0.7,
    }
    given = scores or (make_score(id=f"{record_id}-faithfulness"), failed(id=f"{record_id}-relevancy"))
    return Evaluation(record_id=record_id, scores=given, **{**details, **changes})
