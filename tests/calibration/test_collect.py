"""Labels and scores put together, and what people say of single claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calibration.pairs import evaluation
from steelyard.calibration import Material, PersonLabel, collect, read_annotations
from steelyard.results.labels import Label, LabelValue
from steelyard.scores import Evaluation


def label(
    value: LabelValue,
    who: str = "ada",
    *,
    record: str = "r1",
    claim: int | None = None,
    metric: str = "faithfulness",
) -> Label:
    about = metric if claim is not None else None
    return Label(record_id=record, value=value, who=who, labelled_at=1.0, metric=about, claim=claim)


def one(*labels: Label, evaluations: tuple[Evaluation, ...] = (evaluation(),)) -> Material:
    (found,) = collect(evaluations, labels)
    return found


def test_a_label_of_the_whole_turn_counts_for_its_metrics() -> None:
    found = one(label("bad"))
    assert [pair.good for pair in found.labelled] == [False]
    assert found.of_turns == 1


def test_one_claim_that_is_not_supported_makes_a_turn_bad_whatever_is_said_of_the_whole() -> None:
    found = one(label("not_supported", claim=1), label("good"))
    assert [pair.good for pair in found.labelled] == [False]
    assert found.of_turns == 0


def test_supported_claims_make_a_turn_good_only_when_all_were_labelled() -> None:
    assert not one(label("supported", claim=0)).labelled
    both = one(label("supported", claim=0), label("supported", claim=1))
    assert [pair.good for pair in both.labelled] == [True]


def test_labels_of_another_metrics_claims_and_of_claims_that_are_not_there_do_not_count() -> None:
    assert not one(label("not_supported", claim=0, metric="hallucination")).labelled
    assert not one(label("not_supported", claim=7)).labelled


def test_labels_that_contradict_each_other_leave_the_turn_out_by_name() -> None:
    found = one(label("good", "ada"), label("bad", "bo"))
    assert not found.labelled
    assert found.answers.contradictory == ["r1"]
    assert found.answers.pairs == [(True, False, found.judged[0].record_id)]


def test_the_later_word_of_a_person_counts() -> None:
    assert [pair.good for pair in one(label("bad"), label("good")).labelled] == [True]
    assert [pair.good for pair in one(label("good"), label("bad")).labelled] == [False]


def test_of_a_metric_where_lower_is_better_the_good_end_is_1() -> None:
    found = evaluation(value=0.2)
    lower = replace(found, scores=tuple(replace(score, direction="lower") for score in found.scores))
    assert [judged.value for judged in one(evaluations=(lower,)).judged] == [0.8]


def test_of_three_people_two_win() -> None:
    found = one(label("good", "ada"), label("bad", "bo"), label("good", "cy"))
    assert [pair.good for pair in found.labelled] == [True]
    assert len(found.answers.pairs) == 3


def test_judges_and_prompt_versions_are_kept_apart() -> None:
    turns = (evaluation("r1"), evaluation("r2", judge="chat:m"), evaluation("r3", prompt_version="2"))
    found = collect(turns, [label("good"), label("bad", record="r2")])
    assert [(one.key.judge, one.key.prompt_version, len(one.labelled)) for one in found] == [
        ("chat:m", "1", 1),
        ("local-lexical", "1", 1),
        ("local-lexical", "2", 0),
    ]


def test_the_worst_verdict_is_the_lowest_probability() -> None:
    (pair,) = one(label("good")).labelled
    assert pair.judged.worst == 0.2


RECORDS = {"a1" * 16: "r1", "b2" * 8: "r2"}


def phoenix(**changes: Any) -> dict[str, Any]:
    """A row of `GET /v1/projects/{project}/span_annotations`."""
    return {
        "id": "U3BhbkFubm90YXRpb246MQ==",
        "span_id": "b2" * 8,
        "name": "faithfulness",
        "annotator_kind": "HUMAN",
        "result": {"label": "correct", "score": 1.0, "explanation": None},
        "metadata": {},
        "identifier": "",
        "source": "APP",
        "user_id": "VXNlcjox",
        "created_at": "2026-11-01T10:00:00+00:00",
        "updated_at": "2026-11-01T10:00:00+00:00",
        **changes,
    }


def langfuse(**changes: Any) -> dict[str, Any]:
    """A row of `GET /api/public/v2/scores`."""
    return {
        "id": "s1",
        "traceId": "a1" * 16,
        "observationId": None,
        "name": "quality",
        "value": 0,
        "stringValue": "False",
        "dataType": "BOOLEAN",
        "source": "ANNOTATION",
        "authorUserId": "user-1",
        "comment": None,
        "timestamp": "2026-11-01T10:00:00.000Z",
        **changes,
    }


def read(*rows: Any, problems: list[str] | None = None) -> list[PersonLabel]:
    told: list[str] = [] if problems is None else problems
    found = read_annotations({"data": list(rows)}, records=RECORDS, metrics=["faithfulness"], problems=told)
    assert problems is not None or not told, told
    return found


def test_a_person_in_phoenix_labels_the_metric_of_that_name() -> None:
    assert read(phoenix()) == [
        PersonLabel(record_id="r2", value="good", who="VXNlcjox", metric="faithfulness")
    ]


def test_a_person_in_langfuse_labels_the_whole_turn() -> None:
    assert read(langfuse()) == [PersonLabel(record_id="r1", value="bad", who="user-1")]


def test_what_judges_wrote_there_is_not_a_label() -> None:
    assert read(phoenix(annotator_kind="LLM"), langfuse(source="API"), phoenix(annotator_kind="CODE")) == []


def test_without_a_label_the_score_says_it() -> None:
    bare = phoenix(result={"label": None, "score": 0.2})
    numeric = langfuse(dataType="NUMERIC", stringValue=None, value=0.8)
    assert [label.value for label in read(bare, numeric)] == ["bad", "good"]


def test_the_last_word_of_a_person_counts() -> None:
    assert [label.value for label in read(langfuse(), langfuse(stringValue="True", value=1))] == ["good"]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (phoenix(span_id="c3" * 8), "no evaluated turn has its trace or span"),
        (phoenix(result={"label": "blue", "score": None}), "neither its label nor its score"),
        (langfuse(dataType="NUMERIC", stringValue=None, value=7), "neither its label nor its score"),
        ({"a": 1}, "neither of Phoenix nor of Langfuse"),
        (3, "not an object"),
    ],
)
def test_what_cannot_be_used_is_named(row: Any, why: str) -> None:
    problems: list[str] = []
    assert read(langfuse(), row, problems=problems) == read(langfuse())
    assert len(problems) == 1 and why in problems[0] and "annotation 2" in problems[0]


def test_what_is_not_a_list_is_named() -> None:
    problems: list[str] = []
    assert read_annotations({"errors": 1}, records=RECORDS, problems=problems) == []
    assert "not a list" in problems[0]
