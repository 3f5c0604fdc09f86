"""Which roots are turns of their own."""

from __future__ import annotations

import pytest

from steelyard.recording.provenance import ModelCall, classify_root

GRADER = "You are a grader assessing the relevance of a document. Give a binary score 'yes' or 'no'."


@pytest.mark.parametrize(
    ("prompt", "reply", "reason"),
    [
        (GRADER, "yes", "grading"),
        (GRADER, "Irrelevant", "grading"),
        (GRADER, '{"binary_score": "no"}', "grading"),
        ("Route the question to a datasource.", '{"datasource": "websearch"}', "routing"),
        ("Order the passages by how relevant they are.", "[2] > [1]", "grading"),
        ("Given the query 'x', is retrieval necessary? Output only 'Yes' or 'No'.", "Yes", "grading"),
        ("Classify the query as one of: Factual, Analytical, or Opinion.\nQuery: x", "Factual", "routing"),
        ("Rewrite this for the web: When does it leave?", "ferry Sunday news", "query_writing"),
        ("Generate 2 sub-questions for: x", "1. opening hours\n2. price of entry", "query_writing"),
        ("Rewrite the question for a vector store.", "What is a steelyard made of?", "query_writing"),
        ("Write three different versions of it.", "What is it?\nWhat for?\nHow old is it?", "query_writing"),
    ],
)
def test_helpers_calls_are_not_turns(prompt: str, reply: str, reason: str) -> None:
    verdict = classify_root([ModelCall(prompts=(prompt,), reply=reply)], answer=reply)
    assert (verdict.is_turn, verdict.reason) == (False, reason)
    assert classify_root([ModelCall(prompts=(prompt,), structured=reply)], answer="").is_turn is False


@pytest.mark.parametrize(
    ("prompt", "reply"),
    [
        ("Context: Rome is in Italy. Is Rome in Italy?", "Yes."),
        ("Context: ... What is the capital?", "Paris"),
        ("How many?", "42"),
        (GRADER, "The document speaks of steelyards, and the question asks about them."),
        ("What did the teacher grade?", "He graded the essays of his class, and found most of them good."),
        ("Classify the animal in the text: The wolf sleeps.", "A mammal"),
        ("Write an article on search. Keywords: scales.", "Scales have weighed goods for long."),
        ("Rewrite this letter.", "Dear Sir, your steelyard has arrived."),
        ("Ask me something.", "What would you like to know?"),
    ],
)
def test_answers_are_turns_however_short(prompt: str, reply: str) -> None:
    assert classify_root([ModelCall(prompts=(prompt,), reply=reply)], answer=reply).is_turn


def test_what_retrieved_is_a_turn_and_so_is_what_called_no_model() -> None:
    call = ModelCall(prompts=(GRADER,), reply="yes")
    assert classify_root([call], answer="yes", retrieved=True).reason == "retrieved"
    assert classify_root([], answer="yes").reason == "no_call_seen"


def test_a_known_query_is_not_a_turn_where_the_prompt_asked_for_one() -> None:
    call = ModelCall(prompts=("Decompose the question.",), reply="steelyard counterweight")
    assert classify_root([call], answer=call.reply, queries=["Steelyard counterweight"]).is_turn is False
    assert classify_root([call], answer=call.reply).is_turn


def test_a_form_with_a_route_is_not_a_turn_although_its_label_is_what_the_root_returned() -> None:
    ask = "Route the question to the data source that can answer it."
    routed = ModelCall(prompts=(ask,), arguments=('{"datasource": "harbour_pages"}',))
    assert classify_root([routed], answer="harbour_pages").reason == "routing"
    answered = ModelCall(prompts=(ask,), arguments=('{"answer": "From the pier.", "datasource": "pages"}',))
    assert classify_root([answered], answer="From the pier.").is_turn
