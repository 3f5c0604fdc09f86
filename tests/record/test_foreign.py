"""Records from the objects of other evaluation libraries, by duck typing."""

from __future__ import annotations

from types import SimpleNamespace

from steelyard.record import Context, Record


def test_a_ragas_sample() -> None:
    sample = SimpleNamespace(
        user_input="q",
        retrieved_contexts=["a", "b"],
        response="r",
        reference="g",
        retrieved_context_ids=[1, "x"],
        reference_contexts=None,
    )
    record = Record.from_ragas(sample)
    assert (record.question, record.answer, record.reference) == ("q", "r", "g")
    assert record.contexts == (Context(text="a", id="1", rank=0), Context(text="b", id="x", rank=1))
    assert record.reference_contexts == ()
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
