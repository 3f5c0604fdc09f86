"""Making a Record as people write it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard import Monitor
from steelyard.errors import ConfigurationError
from steelyard.record import (
    Context,
    Record,
    Timings,
    TraceRef,
    clean,
    record_from_json,
    record_to_json,
    with_hashed_user,
)
from steelyard.scores import Evaluation, evaluation_from_json, evaluation_to_json


@pytest.mark.parametrize(
    "contexts", [["Built in 1811."], ("Built in 1811.",), [Context(text="Built in 1811.")], "Built in 1811."]
)
def test_lists_and_strings_are_taken_for_contexts(contexts: Any) -> None:
    record = Record(question="When?", contexts=contexts, answer="In 1811.", tags=["a"])  # type: ignore[arg-type]
    assert record.contexts == (Context(text="Built in 1811."),)
    assert record.tags == ("a",)
    monitor = Monitor(metrics=[], sinks=[])
    monitor.submit(record)
    assert monitor.flush(60) == 0
    assert monitor.stats().evaluated == 1
    monitor.close()


class Found:
    """A document of a store."""

    page_content, id, score = "Built in 1811.", "d1", 0.5


class Closed:
    """An object that lets nobody look into it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("closed")

    def __str__(self) -> str:
        raise RuntimeError("closed")


@pytest.mark.parametrize(
    ("given", "id", "score"),
    [
        ({"text": "Built in 1811.", "id": "d1", "score": 0.5}, "d1", 0.5),
        ({"content": "Built in 1811."}, None, None),
        (Found(), "d1", 0.5),
        ((Found(), 0.7), "d1", 0.7),
        (("Built in 1811.", 0.7), None, 0.7),
        (["Built in 1811."], None, None),
    ],
    ids=["mapping", "content", "document", "document and score", "text and score", "one list a query"],
)
def test_what_stores_return_is_taken_for_contexts(given: Any, id: str | None, score: float | None) -> None:
    record = Record(contexts=[given])  # type: ignore[arg-type]
    assert record.contexts == (Context(text="Built in 1811.", id=id, score=score),)


def test_what_has_no_text_costs_no_record() -> None:
    record = Record(question="q", contexts=[None, Closed(), 7], answer="a")  # type: ignore[arg-type]
    assert [one.text for one in record.contexts] == ["<Closed that cannot be shown>", "7"]


def test_no_contexts_are_no_contexts() -> None:
    assert Record(contexts=None).contexts == ()  # type: ignore[arg-type]


def test_what_json_has_no_form_for_is_written_out_within_its_list() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    found = clean(Record(question="q", metadata={"list": ["a", Odd(), {"b": [1.5, Odd()]}]})).metadata
    assert found == {"list": ["a", "odd", {"b": [1.5, "odd"]}]}


def _nested(depth: int) -> list[Any]:
    return [_nested(depth - 1)] if depth else []


@pytest.mark.parametrize(
    ("metadata", "is_cut"),
    [
        ({"a": [[1]]}, False),
        # Deeper than six, more than 200 entries, and brackets without anything between them.
        ({"a": _nested(10)}, True),
        ({"a": list(range(300))}, True),
        ({"a": [[[] for _ in range(150)] for _ in range(150)]}, True),
        ({"a": ["x" * 900] * 150}, True),
    ],
    ids=["whole", "deep", "many", "empty", "long"],
)
def test_metadata_that_does_not_come_whole_is_named(metadata: dict[str, Any], is_cut: bool) -> None:
    made = clean(Record(question="q", answer="a", metadata=metadata))
    assert ("metadata" in made.truncated) == is_cut
    # Two brackets, a comma and a blank count as one.
    assert len(str(made.metadata)) < 4 * 16_000
    assert clean(Record(timings="noon")).truncated == ("timings",)  # type: ignore[arg-type]


def test_a_ragas_sample() -> None:
    sample = SimpleNamespace(
        user_input="q",
        retrieved_contexts=["a", "b"],
        response="r",
        reference="g",
        retrieved_context_ids=[1, "x"],
        reference_contexts=["c", "d"],
        reference_context_ids=["y", 2],
    )
    record = Record.from_ragas(sample)
    assert (record.question, record.answer, record.reference) == ("q", "r", "g")
    assert record.contexts == (Context(text="a", id="1", rank=0), Context(text="b", id="x", rank=1))
    assert [(one.text, one.id) for one in record.reference_contexts] == [("c", "y"), ("d", "2")]
    short = Record.from_ragas(SimpleNamespace(retrieved_contexts=["a", "b"], retrieved_context_ids=["1"]))
    assert [context.id for context in short.contexts] == [None, None]


def test_a_deepeval_case() -> None:
    case = SimpleNamespace(
        input="q", actual_output="r", expected_output=None, retrieval_context=["a"], context=["b"]
    )
    record = Record.from_deepeval(case)
    assert (record.question, record.answer, record.reference) == ("q", "r", None)
    assert record.contexts == (Context(text="a", rank=0),)
    assert record.reference_contexts == (Context(text="b", rank=0),)


def test_a_deepeval_case_with_sources() -> None:
    found = SimpleNamespace(context="a", source="handbook")
    record = Record.from_deepeval(SimpleNamespace(retrieval_context=[found, "b"]))
    assert record.contexts == (Context(text="a", id="handbook", rank=0), Context(text="b", rank=1))


def test_an_object_of_another_kind_is_an_empty_record() -> None:
    assert Record.from_ragas(object()).question == ""


KEY = "a key of more than sixteen"


def test_sessions_and_tenants_are_kept_in_json() -> None:
    record = Record(session="chat-7", tenant="acme")
    assert record_from_json(record_to_json(record)) == record
    assert clean(record) is record


@pytest.mark.parametrize("name", ["session", "tenant"])
@pytest.mark.parametrize(
    ("given", "kept"),
    [("", None), ("  ", None), (" a ", "a"), (7, "7"), ("a\0b", "a\N{REPLACEMENT CHARACTER}b")],
)
def test_odd_ids_become_text_or_nothing(name: str, given: Any, kept: str | None) -> None:
    assert getattr(clean(Record(**{name: given})), name) == kept


def test_an_id_that_cannot_be_shown_is_made_anew() -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError

    odd: Any = Odd()
    assert len(Record(id=odd).id) == 32 and TraceRef(trace_id=odd).trace_id == ""


def test_ids_of_a_million_characters_stay_apart() -> None:
    begun = "x" * 1_000_000
    one, other = (clean(Record(session=begun + end)) for end in "ab")
    assert one.session != other.session and one.truncated == ("session",)
    assert one.session is not None and len(one.session) == 200
    assert clean(one) is one


def test_a_user_is_told_apart_and_never_written_as_it_is() -> None:
    record = Record(user="ann@example.com")
    assert "ann" not in record_to_json(record) and clean(record).user is None
    assert with_hashed_user(record, "").user is None
    hashed = with_hashed_user(record, KEY)
    assert hashed.user is not None and "ann" not in hashed.user and clean(hashed) is hashed
    assert with_hashed_user(hashed, KEY) is hashed
    assert with_hashed_user(hashed, "").user is None
    assert with_hashed_user(record, KEY[::-1]).user != hashed.user
    assert with_hashed_user(Record(user="bob@example.com"), KEY).user != hashed.user
    assert record_from_json(record_to_json(hashed)).user == hashed.user
    assert "ann" not in repr(record)


def test_an_evaluation_keeps_what_its_record_said_when_that_is_taken_off() -> None:
    record = with_hashed_user(Record(session="s", tenant="t", user="u", timings=Timings(started_at=5.0)), KEY)
    bare = Evaluation(record_id=record.id, scores=(), record=record, evaluated_at=9.0).replace(record=None)
    assert (bare.session, bare.tenant, bare.user, bare.at) == ("s", "t", record.user, 5.0)
    assert evaluation_from_json(evaluation_to_json(bare)) == bare


@pytest.mark.parametrize("started_at", [None, math.nan, math.inf, "noon"])
def test_a_time_that_is_not_one_leaves_the_time_of_judging(started_at: Any) -> None:
    record = Record(timings=Timings(started_at=started_at))
    written = evaluation_to_json(Evaluation(record_id="r", scores=(), record=record, evaluated_at=9.0))
    assert evaluation_from_json(written).at == 9.0


def test_an_evaluation_written_before_there_was_a_time_has_the_one_of_its_record() -> None:
    record = '{"timings": {"started_at": 5}}'
    line = f'{{"schema": 2, "record_id": "r", "scores": [], "evaluated_at": 9, "record": {record}}}'
    assert evaluation_from_json(line).at == 5.0


@pytest.mark.parametrize("key", ["short", 7])
def test_keys_that_can_be_guessed_are_refused(key: Any) -> None:
    from steelyard import Monitor

    with pytest.raises(ConfigurationError, match="user_key must be a text of at least 16") as refused:
        Monitor(sinks=[], metrics=[], user_key=key)
    assert str(key) not in str(refused.value).replace("16", "")


@pytest.mark.parametrize(("name", "digits"), [("trace_id", 32), ("span_id", 16)])
def test_numbers_that_are_no_ids_of_w3c_are_none(name: str, digits: int) -> None:
    for number in (0, -1, 16**digits):
        assert getattr(TraceRef(**{name: number}), name) is None  # type: ignore[arg-type]
    for number in (1, 16**digits - 1):
        assert getattr(TraceRef(**{name: number}), name) == f"{number:0{digits}x}"  # type: ignore[arg-type]
