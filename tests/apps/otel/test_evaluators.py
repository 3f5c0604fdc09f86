"""What LlamaIndex's evaluators ask, and have asked again, is not a turn; what users ask themselves is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.otel.attributes import oi, oi_model, oi_retriever
from apps.otel.shapes import ANSWER, QUESTION, Trace, joined
from steelyard_opentelemetry import Extraction, Span, read_spans

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


_WANTING = "Oil is a matter of taste for many riders."
_BAD = f"Here is a previous bad answer.\n{_WANTING}"
_WITH_VERDICT = f"{QUESTION}\n----------------\n{_BAD}"
_WITH_FEEDBACK = (
    f"{_BAD}\nHere is some feedback from the evaluator about the response given.\nName the interval.\n"
    f"Now answer the question.\n{QUESTION}"
)
_TWICE = _WITH_FEEDBACK.replace(_WANTING, "Seldom, I should think.").replace(QUESTION, _WITH_FEEDBACK)


def client_call(asked: str, said: str, *, begun: int = 0) -> list[Span]:
    """An engine's call of the model as the client's instrumentor alone tells it."""
    trace = Trace("openinference.instrumentation.openai")
    prompt = f"Context information is below.\n-----\n{joined()}\n-----\nQuery: {asked}\nAnswer: "
    trace.leaf("ChatCompletion", oi_model([("user", prompt)], said))
    seconds = begun * 10**9
    return [replace(span, start=span.start + seconds, end=span.end + seconds) for span in trace.spans]


@pytest.mark.parametrize("again", [_WITH_VERDICT, _WITH_FEEDBACK])
def test_a_question_asked_again_with_a_bad_answer_is_one_turn(again: str) -> None:
    spans = [*client_call(QUESTION, _WANTING), *client_call(again, ANSWER, begun=2)]
    (record,) = read_spans(spans).records
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert any("joined" in note for note in record.notes)


@pytest.mark.parametrize("again", [_WITH_VERDICT, _WITH_FEEDBACK, _TWICE])
def test_a_try_whose_first_one_was_not_seen_says_so(again: str) -> None:
    (record,) = read_spans(client_call(again, ANSWER)).records
    assert (record.question, record.answer) == (QUESTION, ANSWER)
    assert any("asked again" in note for note in record.notes)


def test_the_same_answer_given_to_another_user_stays_a_turn() -> None:
    first = [*client_call(QUESTION, _WANTING), *client_call(QUESTION, _WANTING, begun=1)]
    records = read_spans([*first, *client_call(_WITH_FEEDBACK, ANSWER, begun=3)]).records
    assert sorted(record.answer for record in records) == sorted([ANSWER, _WANTING])
