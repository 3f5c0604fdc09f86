"""A claim behind a hedge is a claim; a sentence that only says that nothing is known is not one."""

import pytest

from steelyard.text import asserted, evades, states

INVENTED = {
    "While the context does not give the date, the tower was built in 1920.": "the tower was built in 1920.",
    "The context does not say when, but the tower was built in 1920.": "the tower was built in 1920.",
    "Although the documents do not mention it, Ann Lee designed it.": "Ann Lee designed it.",
    "I don't know the exact date, but the tower was built in 1920.": "the tower was built in 1920.",
    "The tower was built in 1920, although the context does not mention it.": "The tower was built in 1920",
    "The tower was built in 1920 (the text does not give the day).": "The tower was built in 1920",
    "The provided context does not specify the date; it was 1920.": "it was 1920.",
    "The context does not provide the year - it is 1920.": "it is 1920.",
    "Not mentioned in the context, the tower was built in 1920.": "the tower was built in 1920.",
    "Even if the passages don't say so, the warranty lasts three years.": "the warranty lasts three years.",
    "It is not stated in the documents, but the fee is waived.": "the fee is waived.",
    "The context does not mention the architect, who was Ann Lee.": "who was Ann Lee.",
    "The text does not say so; nevertheless, it was finished in 1920.": "it was finished in 1920.",
    "I am not sure, maybe 1920.": "maybe 1920.",
    "Ich weiß nicht genau, aber der Turm wurde 1920 gebaut.": "der Turm wurde 1920 gebaut.",
    "Je ne sais pas, mais la tour a été construite en 1920.": "la tour a été construite en 1920.",
    "No lo sé, pero la torre fue construida en 1920.": "la torre fue construida en 1920.",
    "不知道，但是塔建于1920年。": "塔建于1920年。",
}

EVASIVE = [
    "I don't know.",
    "The context does not mention the tower, its height or its architect.",
    "I'm sorry, but I cannot answer that from the provided context, as it does not mention the date.",
    "I do not have enough information to answer this, but you may find it on the website.",
    "The documents do not contain this; please contact support.",
    "There is no information about the 2019 report, the 2020 report or the merger.",
    "I cannot determine who built it, because the passages only discuss its location.",
    "Not mentioned in the documents: the tower's height.",
    "The context does not say that the tower was built in 1920.",
    "It is not possible to answer, since the document does not include the figures.",
    "The information is not available in the context, and I cannot speculate.",
    "The context does not provide details about the warranty, returns, or shipping costs abroad.",
    "Ich weiß es nicht, tut mir leid.",
    "不知道，没有相关信息。",
]


@pytest.mark.parametrize(("sentence", "left"), INVENTED.items())
def test_what_is_said_behind_a_hedge_is_judged(sentence: str, left: str) -> None:
    assert states(sentence)
    assert asserted(sentence) == left


@pytest.mark.parametrize("sentence", EVASIVE)
def test_a_sentence_without_a_statement_evades(sentence: str) -> None:
    assert evades(sentence)
    assert not states(sentence)
