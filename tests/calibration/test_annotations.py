from __future__ import annotations

from typing import Any

import pytest

from steelyard.calibration import PersonLabel, read_annotations

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
