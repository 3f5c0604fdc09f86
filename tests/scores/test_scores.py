"""Records and evaluations for people: as text, and in a notebook."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard import evaluate
from steelyard.errors import InvalidRecord
from steelyard.record import Context, Record, TraceRef
from steelyard.scores import (
    Evaluation,
    Evidence,
    Provenance,
    Score,
    Usage,
    Verdict,
    clean_score,
    clean_usage,
    evaluation_from_dict,
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


@given(parts=st.lists(st.builds(Usage, requests=st.integers(0, 9), cost=st.none() | unit), max_size=4))
def test_a_cost_that_nobody_knows_is_not_taken_for_nothing(parts: list[Usage]) -> None:
    total = sum(parts, Usage())
    known = [part.cost for part in parts if part.cost is not None]
    assert total.cost == (pytest.approx(sum(known)) if known else None)
    assert total.requests == sum(part.requests for part in parts)


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


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError("no")


odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just(2**70),
    st.just(np.float32(0.5)),
    st.just(np.int64(3)),
    st.just(np.bool_(True)),
    st.just(np.array([1.0, 2.0])),
    st.builds(Unshowable),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.floats(), max_size=2),
)


def oddly(kind: type[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kind, **{field.name: odd for field in fields(kind) if field.name != "provenance"})


@given(
    score=oddly(Score),
    verdict=oddly(Verdict),
    evidence=oddly(Evidence),
    usage=oddly(Usage),
    evaluated_at=odd,
)
def test_odd_values_of_somebodys_own_are_repaired(
    score: Score, verdict: Verdict, evidence: Evidence, usage: Usage, evaluated_at: Any
) -> None:
    whole = replace(verdict, evidence=(evidence,))
    odd_one = replace(score, verdicts=(whole,))
    good = Score(metric="good", status="scored", value=0.5)
    line = evaluation_to_json(
        Evaluation(
            record_id="r",
            scores=(odd_one, good),
            usage=usage,
            evaluated_at=evaluated_at,
            duration=evaluated_at,
        )
    )
    json.dumps(json.loads(line), allow_nan=False)
    line.encode()
    read = evaluation_from_json(line)
    assert read.scores[1] == good
    assert clean_score(odd_one) == read.scores[0]
    assert read.scores[0].status != "scored" or isinstance(read.scores[0].value, float)
    assert len(read.scores[0].verdicts[0].evidence) == 1


def test_what_nobody_could_use_of_a_score_is_left_out() -> None:
    spans: tuple[Any, ...] = ((2, 9), (9, 9), (9, 2), (2,))
    verdicts = tuple(Verdict(about="", kind="", value=True, span=span) for span in spans)
    score = clean_score(Score(metric="m", status="scored", value=1.0, verdicts=verdicts))
    assert [verdict.span for verdict in score.verdicts] == [(2, 9), None, None, None]
    scores = (Score(metric="m", status="scored", value=1.0, inclusion_probability=p) for p in (0.5, 0, 2))
    assert [clean_score(score).inclusion_probability for score in scores] == [0.5, 1.0, 1.0]
    assert clean_usage(Usage(cost=-1.0, seconds=-1.0)) == Usage(cost=0.0)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, np.float32("nan"), np.array([]), "0.5"])
def test_a_score_without_a_finite_value_has_failed(value: Any) -> None:
    score = clean_score(Score(metric="own", status="scored", value=value))
    assert (score.status, score.value, score.cause) == ("failed", None, "metric_error")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"scores": [{"metric": "m", "status": "won"}]}, r"scores.0.status"),
        ({"scores": [{"metric": "m", "status": "scored", "verdicts": 5}]}, r"scores.0.verdicts"),
        ({"scores": [5]}, r"scores.0"),
        ({"usage": {"prompt_tokens": "many"}}, r"usage.prompt_tokens"),
        ({"trace": []}, None),
        ({"duration": "long"}, r"duration"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], named: str | None) -> None:
    data = {"record_id": "r", "scores": [], **change}
    if named is None:
        assert evaluation_from_dict(data).trace is None
        return
    with pytest.raises(InvalidRecord, match=named):
        evaluation_from_dict(data)


HOSTILE = Record(
    id="t1",
    question="<script>alert(1)</script>\x1b[2J",
    contexts=(Context(text="</dd><img src=x onerror=alert(1)>"),),
    answer="A. " * 2_000,
    notes=("doubtful",),
)


def test_a_turn_is_printed_with_what_it_says() -> None:
    record = Record(
        id="t1",
        question="When?",
        contexts=(Context(text="At nine."), Context(text="At ten.")),
        answer="At nine.",
    )
    assert (
        str(record)
        == "turn t1: ok\nquestion: When?\nanswer: At nine.\ncontext 0: At nine.\ncontext 1: At ten."
    )
    [evaluation] = evaluate([record])
    assert str(evaluation).startswith(str(record) + "\nfaithfulness ")
    assert len(str(evaluation).splitlines()) == 5 + len(evaluation.scores)


def test_a_repr_leaves_out_what_a_turn_says() -> None:
    [evaluation] = evaluate(
        [Record(question="Whenever?", contexts=(Context(text="At nine."),), answer="At nine.")]
    )
    assert "nine" not in repr(evaluation) and "Whenever" not in repr(evaluation)
    assert "'faithfulness', status='scored', value=1.0" in repr(evaluation)


def test_hostile_text_is_text_in_a_terminal_and_in_a_notebook() -> None:
    failed = Score.failed("faithfulness", cause="timeout", explanation="<b>late</b>\x07")
    evaluation = Evaluation(record_id="t1", scores=(failed,), record=HOSTILE)
    assert "\x1b" not in str(evaluation) and "\x07" not in str(evaluation)
    assert max(map(len, str(evaluation).splitlines())) < 260
    page = evaluation._repr_html_()
    assert "<script" not in page and "<img" not in page and "<b>" not in page
    assert "&lt;script&gt;" in page and "&lt;b&gt;late" in page
    assert len(page) < 4_000
    many = evaluation.replace(record=HOSTILE.replace(contexts=HOSTILE.contexts * 50))
    assert many._repr_html_().count("<dt>context") == 20


def test_without_stored_content_the_scores_are_shown() -> None:
    scored = Score(metric="faithfulness", status="scored", value=0.5, standard_error=0.1, label="pass")
    evaluation = Evaluation(record_id="t1", scores=(scored,))
    assert str(evaluation) == f"turn t1\n{'faithfulness':<24} 0.500 ± 0.100  pass"
    assert "<dl>" not in evaluation._repr_html_() and "0.500 ± 0.100" in evaluation._repr_html_()


def test_a_session_or_a_user_of_two_tenants_is_two_units() -> None:
    user = f"user-{'0' * 32}"
    named = [("s", None), ("s", "a"), ("s", "ab"), ("bs", "a"), (None, "a")]
    units = [Evaluation(record_id="r", scores=(), session=one, tenant=whose).unit for one, whose in named]
    assert units[0] == "s" and units[-1] is None and len({*units}) == len(units)
    of_users = {
        Evaluation(record_id="r", scores=(), session="s", user=user, tenant=whose).unit for whose in "ab"
    }
    assert len(of_users) == 2 and not of_users & {*units}
