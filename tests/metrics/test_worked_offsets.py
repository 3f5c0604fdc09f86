"""Every claim of the worked examples points at its sentence of the answer and at the one that decides it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from local_worked import (
    BRIDGE,
    EINSTEIN,
    FRANCE,
    HARBOUR,
    SHOES,
    SUPER_BOWL,
    SUPPORTED,
    TEA,
    UNSUPPORTED,
    supported,
)
from steelyard.metrics import Faithfulness, Hallucination, Metric
from steelyard.questions import Answer, Claims, Contradicted, Question, Request, Supported, Texts, YesNo
from steelyard.record import Context, Record
from steelyard.scores import Evidence, Score
from steelyard.testing import ScriptedJudge

PASSAGES = (EINSTEIN, FRANCE, SUPER_BOWL, SHOES, BRIDGE, TEA, HARBOUR)


@dataclass(frozen=True)
class Place:
    """Where a claim comes from and what decides it, as a reader finds them."""

    said: str
    """Words of its sentence of the answer."""
    decided: str = ""
    """Words of the sentence of the passage that is about it; empty where none is."""


ANSWERS = {
    EINSTEIN: (
        "Einstein, a theoretical physicist, was born in Germany on 14 March 1879. Others have "
        "Einstein born in Spain, or on 20th March. In 1921 he was awarded the Nobel Prize."
    ),
    FRANCE: (
        "France lies in the west of Europe. Its capital is Paris, where the Louvre and the Eiffel Tower "
        "stand; the tower is 330 metres tall. Some call Lyon the capital. It is Germany, though, that is "
        "known for its wines and cuisine."
    ),
    SUPER_BOWL: (
        "The first AFL-NFL World Championship Game was on January 15, 1967, in Los Angeles. It is often "
        "called the first Super Bowl, and was held on January 22 by other accounts. Miami is named as the "
        "place, too, where the game was played."
    ),
    SHOES: "We offer a full refund for 30 days, at no extra cost. Customers with a card even have 60 days.",
    BRIDGE: (
        "Built in 6 years, or nine by another source, the Lindow Bridge was opened in May 1911 and not in "
        "1921. Its engineer was Martha Keene, who is also called Stone. Steel from Sheffield, or from "
        "Glasgow, was used at a price of 240 thousand pounds. A storm that damaged the northern pier (the "
        "southern pier, some say) closed it for eight months in 1953. Each day roughly 12,000 vehicles use "
        "its two or four lanes. For heavy lorries it is closed, or open. Crossing the river costs a toll."
    ),
    TEA: (
        "Its leaves are not oxidised. Compared with black tea it has less caffeine, or more. Take "
        "water of 75 degrees, or of 95. Most studies found that it has no effect on weight, though it is "
        "said to help people to lose some quickly. It lowers the risk of heart disease. Leaves picked in "
        "spring cost more, being softer and sweeter, or are cheaper than those of summer."
    ),
    HARBOUR: (
        "The harbour master Tomas Reyes did not let the ferry leave. So 300 passengers, or five hundred, "
        "slept in a school, or a hotel. Hot meals were offered by the ferry company, which refused to pay "
        "for taxis. No one was injured, or several were. The ferry sailed to Port Ellis on Tuesday at noon, "
        "or on Friday evening."
    ),
}
PLACES = {
    "Einstein was born in Germany.": Place("born in Germany", "German-born"),
    "Albert Einstein was born on 14 March 1879.": Place("14 March 1879", "14 March 1879"),
    "Albert Einstein was a theoretical physicist.": Place("theoretical physicist", "theoretical physicist"),
    "Einstein was born on 20th March 1879.": Place("20th March", "14 March 1879"),
    "Albert Einstein was born in Spain.": Place("Spain", "German-born"),
    "Einstein was awarded the Nobel Prize in 1921.": Place("Nobel Prize"),
    "France is in Western Europe.": Place("west of Europe", "Western Europe"),
    "Paris is the capital of France.": Place("capital is Paris", "Paris, its capital"),
    "The Louvre and the Eiffel Tower are in Paris.": Place("Louvre", "the Louvre"),
    "The capital of France is Lyon.": Place("Lyon", "Paris, its capital"),
    "Germany is renowned for its wines and sophisticated cuisine.": Place("Germany", "its wines"),
    "The Eiffel Tower is 330 metres tall.": Place("330 metres", "Eiffel Tower"),
    "The first AFL-NFL World Championship Game was played on January 15, 1967.": Place("AFL", "January 15"),
    "The game took place in Los Angeles.": Place("Los Angeles", "Los Angeles"),
    "The first Super Bowl was held on January 22, 1967.": Place("January 22", "January 15"),
    "The game was played in Miami.": Place("Miami", "Los Angeles"),
    "We offer a 30 day full refund at no extra cost.": Place("30 days", "30 day"),
    "Customers have 60 days for a full refund.": Place("60 days", "30 day"),
    "The bridge opened in May 1911.": Place("May 1911", "May 1911"),
    "Building the Lindow Bridge took 6 years.": Place("6 years", "six years of building"),
    "Martha Keene was the engineer of the Lindow Bridge.": Place("Martha Keene", "Martha Keene"),
    "The steel was made in Sheffield and cost 240 thousand pounds.": Place("Sheffield", "Sheffield"),
    "A storm damaged the northern pier, so the bridge was closed for eight months in 1953.": Place(
        "storm", "northern pier"
    ),
    "Every day roughly 12,000 vehicles use the bridge.": Place("12,000", "12,000"),
    "Heavy lorries aren't allowed on the bridge.": Place("heavy lorries", "Heavy lorries"),
    "The Lindow Bridge was opened in May 1921.": Place("1921", "May 1911"),
    "Building the bridge took nine years.": Place("nine", "six years of building"),
    "The bridge carries four lanes of traffic.": Place("four lanes", "two lanes"),
    "Its engineer was Martha Stone.": Place("Stone", "Martha Keene"),
    "The steel came from a works in Glasgow.": Place("Glasgow", "Sheffield"),
    "A storm had damaged the southern pier.": Place("southern pier", "northern pier"),
    "A toll is charged for crossing the river.": Place("toll"),
    "Heavy lorries are allowed on the bridge.": Place("heavy lorries", "Heavy lorries"),
    "Green tea has less caffeine than black tea.": Place("less caffeine", "caffeine"),
    "The leaves used for green tea aren't oxidised.": Place("oxidised", "oxidised"),
    "Use water of about 75 degrees for green tea.": Place("75 degrees", "75 degrees"),
    "Most studies found no effect of green tea on weight.": Place("effect on weight", "effect on weight"),
    "Spring leaves cost more because they are softer and sweeter.": Place("softer", "softer"),
    "Green tea contains more caffeine than black tea.": Place("caffeine", "caffeine"),
    "Green tea lowers the risk of heart disease.": Place("heart disease"),
    "Water for green tea should be about 95 degrees.": Place("95", "75 degrees"),
    "Drinking green tea helps people to lose weight quickly.": Place("lose some quickly", "effect on weight"),
    "Leaves picked in spring are cheaper than those picked in summer.": Place("cheaper", "picked in summer"),
    "Tomas Reyes, the harbour master, did not let the ferry leave.": Place("Tomas Reyes", "Tomas Reyes"),
    "About 300 passengers spent the night in a school.": Place("300 passengers", "three hundred"),
    "The passengers were offered hot meals by the ferry company.": Place("Hot meals", "hot meals"),
    "No one was injured.": Place("No one was injured", "Nobody was injured"),
    "On Tuesday at noon the ferry sailed to Port Ellis.": Place("Port Ellis", "Port Ellis"),
    "Around five hundred passengers slept in a hotel.": Place("hotel", "three hundred"),
    "Several people were injured in the storm.": Place("injured", "Nobody was injured"),
    "The ferry company refused to pay for taxis.": Place("refused to pay", "paid for taxis"),
    "The ferry sailed to Port Ellis on Friday evening.": Place("Friday evening", "Port Ellis"),
}


CASES = [
    pytest.param(passage, claim, id=claim.rstrip("."))
    for table in (SUPPORTED, UNSUPPORTED)
    for passage, claim in table
]
HELD = {claim for _, claim in SUPPORTED}


def judged(passage: str, metric: Metric) -> tuple[Record, Score]:
    """What a metric makes of a judge that names the deciding context by its number alone."""
    claims = tuple(claim for table in (SUPPORTED, UNSUPPORTED) for text, claim in table if text == passage)

    def think(question: Question, request: Request) -> Answer:
        if isinstance(question, Claims):
            return Texts(items=claims)
        assert isinstance(question, Supported | Contradicted)
        named = (Evidence(context=PASSAGES.index(passage)),) if PLACES[question.claim].decided else ()
        return YesNo(value=question.claim in HELD, evidence=named)

    record = Record(
        question="What do you know of it?",
        contexts=tuple(Context(text=text) for text in PASSAGES),
        answer=ANSWERS[passage],
    )
    return record, asyncio.run(metric.score(record, judge=ScriptedJudge(think)))


@pytest.mark.parametrize("metric", [Faithfulness(), Hallucination()], ids=lambda metric: metric.key)
@pytest.mark.parametrize(("passage", "claim"), CASES)
def test_offsets_point_at_the_sentence_that_says_it_and_at_the_one_that_decides_it(
    passage: str, claim: str, metric: Metric
) -> None:
    record, made = judged(passage, metric)
    (verdict,) = (one for one in made.verdicts if one.about == claim)
    place = PLACES[claim]
    assert verdict.span is not None
    assert place.said in record.answer[slice(*verdict.span)]
    assert [piece.context for piece in verdict.evidence] == [PASSAGES.index(passage)] * bool(place.decided)
    for piece in verdict.evidence:
        assert place.decided in passage[piece.start : piece.end] == piece.text
        assert piece.located, "the judge named no sentence"


@pytest.mark.parametrize(("passage", "claim"), CASES)
def test_the_local_judge_points_at_the_sentence_that_decides_it(passage: str, claim: str) -> None:
    verdict = supported(claim, *PASSAGES)
    place = PLACES[claim]
    for piece in verdict.evidence[:1]:
        assert piece.context is not None
        text = PASSAGES[piece.context]
        assert text[piece.start : piece.end] == piece.text
        if place.decided:
            assert (text, place.decided in piece.text) == (passage, True), piece.text
    assert verdict.evidence or not verdict.value
