"""Worked examples: what a careful reader says about a claim and a passage.

The first group are the examples of the field's literature and documentation (Ragas, DeepEval), the rest
were written for this table: paraphrases that keep the meaning, and sentences in which one thing was changed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from steelyard.judge import LocalJudge
from steelyard.questions import Answer, Question, Request, Supported, View, YesNo
from steelyard.record import Context

JUDGE = LocalJudge()


def ask(
    question: Question, /, *, judge: LocalJudge = JUDGE, contexts: tuple[str, ...] = (), **parts: Any
) -> Answer:
    """The judge's answer to one question about some material."""
    view = View(contexts=tuple(Context(text=text) for text in contexts) or None, **parts)
    reply = asyncio.run(judge.answer(Request(view=view, questions={"q1": question})))
    return reply.answers["q1"]


def supported(claim: str, *contexts: str) -> YesNo:
    """Its verdict on one claim."""
    answer = ask(Supported(claim=claim), contexts=contexts)
    assert isinstance(answer, YesNo)
    return answer


def check_twins(true: str, false: str, text: str) -> None:
    """A claim that follows from a text is supported, its twin with one thing changed is not."""
    for claim, follows in ((true, True), (false, False)):
        answer = supported(claim, text)
        assert answer.probability is not None
        assert answer.value == (answer.probability >= 0.5) == follows, (claim, answer)


EINSTEIN = (
    "Albert Einstein (born 14 March 1879) was a German-born theoretical physicist, widely held to be one "
    "of the greatest and most influential scientists of all time."
)
FRANCE = (
    "France, in Western Europe, encompasses medieval cities, alpine villages and Mediterranean beaches. "
    "Paris, its capital, is famed for its fashion houses, classical art museums including the Louvre and "
    "monuments like the Eiffel Tower. The country is also renowned for its wines and sophisticated "
    "cuisine."
)
SUPER_BOWL = (
    "The First AFL-NFL World Championship Game was an American football game played on January 15, 1967, "
    "at the Los Angeles Memorial Coliseum in Los Angeles."
)
SHOES = "All customers are eligible for a 30 day full refund at no extra cost."
BRIDGE = (
    "The Lindow Bridge was opened on 4 May 1911 after six years of building. It carries two lanes of "
    "traffic and a footpath over the river Orle. Its engineer, Martha Keene, had designed eleven bridges "
    "before. The steel came from a works in Sheffield and cost £240,000. In 1953 the bridge was closed "
    "for eight months, because a storm had damaged the northern pier. About 12,000 vehicles cross it "
    "every day. Heavy lorries are not allowed."
)
TEA = (
    "Green tea is made from leaves that were not oxidised. It contains less caffeine than black tea. "
    "Water for it should be cooler than boiling, about 75 degrees. In most studies drinking it had no "
    "effect on weight. Leaves picked in spring are more expensive, because they are softer and sweeter "
    "than those picked in summer."
)
HARBOUR = (
    "The harbour master, Tomas Reyes, refused to let the ferry leave because the wind had reached 90 "
    "km/h. Around three hundred passengers spent the night in a school. The ferry company offered them "
    "hot meals and paid for taxis the next morning. Nobody was injured. The ferry finally sailed to Port "
    "Ellis at noon on Tuesday."
)

SUPPORTED = [
    (EINSTEIN, "Einstein was born in Germany."),
    (EINSTEIN, "Albert Einstein was born on 14 March 1879."),
    (EINSTEIN, "Albert Einstein was a theoretical physicist."),
    (FRANCE, "France is in Western Europe."),
    (FRANCE, "Paris is the capital of France."),
    (FRANCE, "The Louvre and the Eiffel Tower are in Paris."),
    (SUPER_BOWL, "The first AFL-NFL World Championship Game was played on January 15, 1967."),
    (SUPER_BOWL, "The game took place in Los Angeles."),
    (SHOES, "We offer a 30 day full refund at no extra cost."),
    (BRIDGE, "The bridge opened in May 1911."),
    (BRIDGE, "Building the Lindow Bridge took 6 years."),
    (BRIDGE, "Martha Keene was the engineer of the Lindow Bridge."),
    (BRIDGE, "The steel was made in Sheffield and cost 240 thousand pounds."),
    (BRIDGE, "A storm damaged the northern pier, so the bridge was closed for eight months in 1953."),
    (BRIDGE, "Every day roughly 12,000 vehicles use the bridge."),
    (BRIDGE, "Heavy lorries aren't allowed on the bridge."),
    (TEA, "Green tea has less caffeine than black tea."),
    (TEA, "The leaves used for green tea aren't oxidised."),
    (TEA, "Use water of about 75 degrees for green tea."),
    (TEA, "Most studies found no effect of green tea on weight."),
    (TEA, "Spring leaves cost more because they are softer and sweeter."),
    (HARBOUR, "Tomas Reyes, the harbour master, did not let the ferry leave."),
    (HARBOUR, "About 300 passengers spent the night in a school."),
    (HARBOUR, "The passengers were offered hot meals by the ferry company."),
    (HARBOUR, "No one was injured."),
    (HARBOUR, "On Tuesday at noon the ferry sailed to Port Ellis."),
]

UNSUPPORTED = [
    (EINSTEIN, "Einstein was born on 20th March 1879."),
    (EINSTEIN, "Albert Einstein was born in Spain."),
    (EINSTEIN, "Einstein was awarded the Nobel Prize in 1921."),
    (FRANCE, "The capital of France is Lyon."),
    (FRANCE, "Germany is renowned for its wines and sophisticated cuisine."),
    (FRANCE, "The Eiffel Tower is 330 metres tall."),
    (SUPER_BOWL, "The first Super Bowl was held on January 22, 1967."),
    (SUPER_BOWL, "The game was played in Miami."),
    (SHOES, "Customers have 60 days for a full refund."),
    (BRIDGE, "The Lindow Bridge was opened in May 1921."),
    (BRIDGE, "Building the bridge took nine years."),
    (BRIDGE, "The bridge carries four lanes of traffic."),
    (BRIDGE, "Its engineer was Martha Stone."),
    (BRIDGE, "The steel came from a works in Glasgow."),
    (BRIDGE, "A storm had damaged the southern pier."),
    (BRIDGE, "A toll is charged for crossing the river."),
    (BRIDGE, "Heavy lorries are allowed on the bridge."),
    (TEA, "Green tea contains more caffeine than black tea."),
    (TEA, "Green tea lowers the risk of heart disease."),
    (TEA, "Water for green tea should be about 95 degrees."),
    (TEA, "Drinking green tea helps people to lose weight quickly."),
    (TEA, "Leaves picked in spring are cheaper than those picked in summer."),
    (HARBOUR, "Around five hundred passengers slept in a hotel."),
    (HARBOUR, "Several people were injured in the storm."),
    (HARBOUR, "The ferry company refused to pay for taxis."),
    (HARBOUR, "The ferry sailed to Port Ellis on Friday evening."),
]
