"""The JSON form of Evaluations."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import InvalidRecord
from steelyard.record import Context, Record, TraceRef
from steelyard.scores import (
    Evaluation,
    Evidence,
    Provenance,
    Score,
    Usage,
    Verdict,
    evaluation_from_json,
    evaluation_to_dict,
    evaluation_to_json,
)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
unit = st.floats(0, 1)
evidence = st.builds(
    Evidence,
    context=st.none() | st.integers(0, 9),
    start=st.just(0),
    end=st.just(3),
    text=texts,
    notes=st.dictionaries(texts, st.lists(texts, max_size=2), max_size=2),
)
verdicts = st.builds(
    Verdict,
    about=texts,
    kind=texts,
    value=st.none() | st.booleans() | unit | texts,
    probability=st.none() | unit,
    reason=texts,
    evidence=st.lists(evidence, max_size=2).map(tuple),
)
scored = st.builds(
    Score,
    metric=texts,
    status=st.just("scored"),
    value=unit,
    explanation=texts,
    verdicts=st.lists(verdicts, max_size=2).map(tuple),
    passed=st.none() | st.booleans(),
    threshold=st.none() | unit,
    provenance=st.none() | st.builds(Provenance, judge=texts),
    inclusion_probability=st.floats(0.01, 1),
    id=texts,
)
lacking = st.builds(Score.not_applicable, texts, cause=texts, explanation=texts)
failed = st.builds(Score.failed, texts, cause=texts, explanation=texts)
evaluations = st.builds(
    Evaluation,
    record_id=texts,
    scores=st.lists(scored | lacking | failed, max_size=3).map(tuple),
    usage=st.builds(Usage, requests=st.integers(0, 9), cost=st.none() | unit),
    record=st.none() | st.just(Record(id="r", question="q", contexts=(Context(text="c"),))),
    trace=st.none() | st.just(TraceRef(trace_id="0" * 31 + "1", sampled=False)),
    duration=unit,
)


@given(evaluation=evaluations)
def test_round_trip(evaluation: Evaluation) -> None:
    again = evaluation_from_json(evaluation_to_json(evaluation))
    assert evaluation_to_dict(again) == evaluation_to_dict(evaluation)
    assert [s.value for s in again.scores] == [s.value for s in evaluation.scores]
    assert [(s.status, s.cause or None) for s in again.scores] == [
        (s.status, s.cause or None) for s in evaluation.scores
    ]


def test_a_missing_value_is_null_and_never_zero() -> None:
    data = evaluation_to_dict(
        Evaluation(record_id="r", scores=(Score.failed("m", cause="timeout", explanation="x"),))
    )
    assert data["scores"] == [
        {
            "metric": "m",
            "status": "failed",
            "value": None,
            "cause": "timeout",
            "explanation": "x",
            "direction": "higher",
            "inclusion_probability": 1.0,
            "verdicts": [],
        }
    ]


def test_what_a_judge_sends_can_be_written() -> None:
    score = Score(metric="m", status="scored", value=1.0, explanation="half a face: \ud83d")
    evaluation_to_json(Evaluation(record_id="r", scores=(score,))).encode()


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"record_id": "r", "scores": 3}', '{"schema": 9}', '{"schema": "1"}']
)
def test_what_is_no_evaluation_is_refused(line: str) -> None:
    with pytest.raises(InvalidRecord):
        evaluation_from_json(line)


def test_an_evaluation_of_the_first_schema_is_read() -> None:
    """Version 1 called the options of a metric its reading."""
    evaluation = Evaluation(
        record_id="r", scores=(Score(metric="f", status="scored", value=1.0, options="claims=sentences"),)
    )
    data = evaluation_to_dict(evaluation)
    assert data["schema"] == 2
    old = {**data, "schema": 1}
    for score in old["scores"]:
        score["reading"] = score.pop("options")
    assert evaluation_from_json(json.dumps(old)) == evaluation
