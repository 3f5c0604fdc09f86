"""The demo's own parts: what it finds, what it quotes, and what it invents."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.cli.demo._chain import (
    DONT_KNOW,
    QUESTIONS,
    UNANSWERABLE,
    PassageRetriever,
    alter,
    build_chain,
    inventing,
    passages,
    quote,
)

chain = build_chain()


def test_the_text_is_some_fifty_passages_with_titles() -> None:
    text = passages()
    assert len(text) >= 50
    assert len({passage.id for passage in text}) == len(text)
    assert all(len(passage.page_content.partition("\n")[2]) > 80 for passage in text)


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("In which year did Roberval show his balance in Paris?", "The Roberval balance"),
        ("How many milligrams is a carat?", "The carat"),
        ("Who invented the strain gauge?", "The strain gauge"),
    ],
)
def test_the_retriever_finds_the_passage(question: str, title: str) -> None:
    documents = PassageRetriever().invoke(question)
    assert documents[0].page_content.startswith(f"{title}\n")
    assert 1 <= len(documents) <= 4


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_quoted(question: str) -> None:
    answer = chain.invoke(question)
    assert answer != DONT_KNOW
    assert any(answer.split(". ")[0] in passage.page_content for passage in passages())


@pytest.mark.parametrize("question", UNANSWERABLE)
def test_what_the_text_does_not_say_is_not_answered(question: str) -> None:
    assert chain.invoke(question) == DONT_KNOW
    assert inventing(chain).invoke(question) == DONT_KNOW


def test_nothing_to_quote_from() -> None:
    assert quote("Who?", []) == DONT_KNOW
    assert quote("", ["Title\nA text."]) == DONT_KNOW


def test_every_answer_is_altered_and_stays_the_same_length_in_words() -> None:
    for question in QUESTIONS:
        told, invented = chain.invoke(question), inventing(chain).invoke(question)
        assert told != invented
        assert abs(len(told.split()) - len(invented.split())) <= 2


@pytest.mark.parametrize(
    ("answer", "possible"),
    [
        ("It weighed 1,500 kilograms.", r"It weighed ([2-9],500|1,[1-46-9]00) kilograms\."),
        ("It does not matter.", r"It does matter\."),
        ("It is no longer needed.", r"It is needed\."),
        ("The scale is level.", r"The scale is not level\."),
        ("Built by Hooke.", r"Built by (?!Hooke)[A-Z]\w+\."),
        ("It costs one penny.", r"It costs (?!one)\w+ penny\."),
        ("In Paris. It is heavy.", r"In (?!Paris)[A-Z]\w+\. It is not heavy\."),
        ("Nothing here.", r"Nothing here\."),
        ("", ""),
    ],
)
def test_what_altering_does(answer: str, possible: str) -> None:

    assert re.fullmatch(possible, alter(answer))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=80))
def test_altering_is_repeatable_and_takes_any_text(answer: str) -> None:
    assert alter(answer) == alter(answer)
