"""The demo's own parts: what it finds, what it quotes, what it invents, and how it tells variants apart."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.cli.demo._alter import alter
from steelyard.cli.demo._chain import ExtractiveChatModel, PassageRetriever, build_chain, inventing
from steelyard.cli.demo._compare import compare
from steelyard.cli.demo._extract import DONT_KNOW, best_sentences
from steelyard.cli.demo._text import QUESTIONS, UNANSWERABLE, passages
from steelyard.scores import Evaluation, Score

chain = build_chain(ExtractiveChatModel())


def test_the_text_is_some_fifty_passages_with_titles() -> None:
    text = passages()
    assert len(text) >= 50
    assert len({passage.id for passage in text}) == len(text)
    assert all(passage.title and len(passage.text) > 80 for passage in text)


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
    assert documents[0].metadata["title"] == title
    assert 1 <= len(documents) <= 4
    scores = [document.metadata["score"] for document in documents]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_quoted(question: str) -> None:
    answer = chain.invoke(question)
    assert answer != DONT_KNOW
    assert any(answer.split(". ")[0] in passage.text for passage in passages())


@pytest.mark.parametrize("question", UNANSWERABLE)
def test_what_the_text_does_not_say_is_not_answered(question: str) -> None:
    assert chain.invoke(question) == DONT_KNOW
    assert inventing(chain).invoke(question) == DONT_KNOW


def test_nothing_to_quote_from() -> None:
    assert best_sentences("Who?", []) == DONT_KNOW
    assert best_sentences("", ["Title\nA text."]) == DONT_KNOW


def test_every_answer_is_altered_and_stays_the_same_length_in_words() -> None:
    for question in QUESTIONS:
        told, invented = chain.invoke(question), inventing(chain).invoke(question)
        assert told != invented
        assert abs(len(told.split()) - len(invented.split())) <= 2


@pytest.mark.parametrize(
    ("answer", "possible"),
    [
        ("It weighed 1,500 kilograms.", r"It weighed (3,000|4,500|7,500) kilograms\."),
        ("It does not matter.", r"It matters\."),
        ("It did not fall.", r"It did fall\."),
        ("It is no longer needed.", r"It is still needed\."),
        ("The scale is level.", r"The scale is not level\."),
        ("Built by Hooke.", r"Built by (?!Hooke)[A-Z]\w+\."),
        ("It was built in 1900.", r"It was (not built in 1900|built in (18|19)\d\d)\."),
        ("It costs one penny.", r"It costs (?!one)\w+ penny\."),
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


def evaluation(**values: float | None) -> Evaluation:
    scores = [
        Score.not_applicable(name, cause="x", explanation="x")
        if value is None
        else Score(metric=name, status="scored", value=value)
        for name, value in values.items()
    ]
    return Evaluation(record_id="r", scores=tuple(scores))


def test_differences_are_paired_and_carry_an_interval() -> None:
    first = {str(n): evaluation(good=0.9, same=n / 10, gone=None) for n in range(10)}
    second = {str(n): evaluation(good=0.5, same=n / 10, gone=0.5) for n in range(10)}
    second["7"] = evaluation(good=None, same=0.7, gone=None)
    found, incomparable = compare(first, second)
    assert incomparable == ["gone"]
    good, same = found
    assert (good.metric, good.difference.n) == ("good", 9)
    assert good.difference.value == pytest.approx(-0.4)
    assert good.difference.low < -0.4 < good.difference.high < 0
    assert good.worse
    assert same.difference.value == pytest.approx(0)
    assert same.difference.low < 0 < same.difference.high
    assert not same.difference.clear


def test_two_equal_pairs_are_not_clear() -> None:
    first = {str(n): evaluation(good=1.0) for n in range(2)}
    second = {str(n): evaluation(good=0.5) for n in range(2)}
    ((found,), _) = compare(first, second)
    assert not found.difference.clear


def test_the_interval_covers_the_spread() -> None:
    first = {str(n): evaluation(m=0.5) for n in range(40)}
    second = {str(n): evaluation(m=0.4 if n % 2 else 0.6) for n in range(40)}
    ((difference,), _) = compare(first, second)
    # The standard error of a mean of 40 values of +-0.1 is 0.0158.
    found = difference.difference
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.0158, rel=0.1)
    assert not found.clear
