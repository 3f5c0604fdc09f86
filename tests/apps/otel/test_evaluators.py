"""What LlamaIndex's evaluators ask is not a turn; what users ask themselves is."""

from __future__ import annotations

import pytest

from apps.otel.attributes import oi, oi_model, oi_retriever
from apps.otel.shapes import ANSWER, QUESTION, Trace, joined
from steelyard_opentelemetry import Extraction, read_spans

_SUPPORTED = "Please tell if a given piece of information is supported by the context. Answer YES or NO."
_IN_LINE = "Your task is to evaluate if the response for the query is in line with the context. YES or NO?"
_RELEVANT = "Evaluate if the retrieved context from the sources are relevant to the query. End with [RESULT]."
_MAKES = "You are a teacher. Your task is to setup 2 questions for a quiz on the context."


def engine(asked: str, said: str, *, told: str = "", retriever: str = "SummaryIndexRetriever") -> Extraction:
    """An engine over an index of given passages, under OpenInference."""
    trace = Trace("openinference.instrumentation.llama_index")
    with trace.span("RetrieverQueryEngine.query", oi("CHAIN", asked, said)):
        trace.leaf(f"{retriever}.retrieve", oi_retriever(asked))
        prompt = f"{told}\n\nContext:\n{joined()}\n\nQuery: {asked}"
        trace.leaf("OpenAI.chat", oi_model([("user", prompt)], said))
    return read_spans(trace.spans)


@pytest.mark.parametrize(
    ("asked", "said", "told"),
    [
        (ANSWER, "YES", _SUPPORTED),
        (f"Question: {QUESTION}\nResponse: {ANSWER}", "NO", _IN_LINE),
        (f"{QUESTION}\nResponse: {ANSWER}", "The response follows from the context.", _IN_LINE),
        (QUESTION, "It fits well.\n\n[RESULT] 3.5", _RELEVANT),
        (_MAKES, "1. How often is a chain oiled?\n2. What follows a ride in the rain?", ""),
    ],
)
def test_what_is_asked_about_given_passages_is_not_a_turn(asked: str, said: str, told: str) -> None:
    reading = engine(asked, said, told=told)
    assert reading.records == []
    assert [diagnosis.cause for diagnosis in reading.diagnoses] == ["helper_call"]


@pytest.mark.parametrize(
    ("asked", "said", "told"),
    [
        ("Does the chain need oil every 200 km?", "Yes.", "Answer from the context."),
        ("Is the saddle too high when the heel reaches the pedal?", "No", ""),
        ("Which questions does the manual ask?", "None.", "Answer from the context."),
        ("Generate questions on chains for my class.", "I can do so. Which class is it?\nThey are for.", ""),
    ],
)
def test_a_users_short_question_about_everything_stays_a_turn(asked: str, said: str, told: str) -> None:
    (record,) = engine(asked, said, told=told).records
    assert (record.question, record.answer) == (asked, said)


def test_an_application_that_checks_claims_against_a_search_is_recorded() -> None:
    (record,) = engine(ANSWER, "YES", told=_SUPPORTED, retriever="VectorIndexRetriever").records
    assert (record.question, record.answer) == (ANSWER, "YES")
