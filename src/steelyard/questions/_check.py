"""Holding every answer against its question: what does not fit is named, never repaired or averaged in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TypeVar

from steelyard.questions._answer import Answer, ChosenOption, Level, Texts, Unanswered, Vector, YesNo
from steelyard.questions._question import Choose, Question, Rating
from steelyard.record import text_of
from steelyard.scores import clean_evidence

_Key = TypeVar("_Key", str, float)


def check(question: Question, answer: Answer | None) -> Answer:
    """The answer if it fits the question, else an `Unanswered` that says what is wrong with it."""
    if answer is None:
        return Unanswered(cause="missing_answer", detail="the judge left the question out")
    if isinstance(answer, Unanswered):
        return answer
    if not isinstance(answer, question.form):
        return _malformed(f"a {type(answer).__name__} where a {question.form.__name__} was asked for")
    try:
        fault = _fault(question, answer)
        return _malformed(fault) if fault else _plain(answer)
    except Exception as error:  # noqa: BLE001 - the values are of a user's own making and may do anything
        return _malformed(f"{type(error).__name__} in a {question.form.__name__}")


def _plain(answer: Answer) -> Answer:
    """The answer with its numbers and texts as Python's own."""
    match answer:
        case YesNo(probability=probability, reason=reason, evidence=evidence):
            return replace(
                answer,
                probability=None if probability is None else float(probability),
                reason=text_of(reason),
                evidence=tuple(clean_evidence(piece) for piece in evidence),
            )
        case Level(value=value, probabilities=weights, reason=reason):
            own = {float(level): float(weight) for level, weight in weights.items()}
            return replace(answer, value=float(value), probabilities=own, reason=text_of(reason))
        case ChosenOption(probabilities=chances, reason=reason):
            kept = {option: float(chance) for option, chance in chances.items()}
            return replace(answer, probabilities=kept, reason=text_of(reason))
        case Texts(items=items):
            return Texts(items=tuple(map(text_of, items)))
        case _:
            return answer


def _malformed(fault: str) -> Unanswered:
    return Unanswered(cause="malformed_answer", detail=fault)


def _fault(question: Question, answer: Answer) -> str | None:
    match answer:
        case YesNo(value=value) if not isinstance(value, bool):
            return f"{value!r} is neither yes nor no"
        case YesNo(probability=p) if p is not None and not _in_unit(p):
            return f"probability {p!r} outside 0..1"
        case Level():
            return _level_fault(question, answer)
        case ChosenOption():
            return _choice_fault(question, answer)
        case Texts(items=items):
            return _texts_fault(items)
        case Vector(values=values) if not values or not all(map(math.isfinite, values)):
            return "a vector that is empty or not finite"
        case _:
            return None


def _in_unit(probability: object) -> bool:
    # `Real`, since judges of users hand over numpy's numbers; NaN fails both comparisons.
    return isinstance(probability, Real) and 0 <= float(probability) <= 1


def _texts_fault(items: Sequence[object]) -> str | None:
    # A text is a sequence of texts too, and each of its letters would become a claim.
    if isinstance(items, str) or not all(isinstance(item, str) and item.strip() for item in items):
        return "an item that is empty or no text"
    return None


def _level_fault(question: Question, answer: Level) -> str | None:
    assert isinstance(question, Rating)
    scale = {value for value, _ in question.levels}
    if not isinstance(answer.value, Real) or answer.value not in scale:
        return f"level {answer.value!r} is not on the scale {sorted(scale)!r}"
    return _weights_fault(answer.probabilities, scale)


def _choice_fault(question: Question, answer: ChosenOption) -> str | None:
    assert isinstance(question, Choose)
    if answer.value not in question.options:
        return f"option {answer.value!r} is not among {list(question.options)!r}"
    return _weights_fault(answer.probabilities, set(question.options))


def _weights_fault(weights: object, known: set[_Key]) -> str | None:
    if not isinstance(weights, Mapping) or not set(weights) <= known:
        return "probabilities for something that was not offered"
    if not all(map(_in_unit, weights.values())):
        return "a probability outside 0..1"
    return None
