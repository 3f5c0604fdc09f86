"""What a screen learns from its judge, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.calibration import Lesson, findings_of, fit_screen
from steelyard.scores import Evidence, Score, Verdict


def turn_of(probabilities: Sequence[float], notes: Mapping[str, Any] | None = None) -> dict[str, float]:
    """What a screen found of a turn whose claims hold with these probabilities."""
    evidence = () if notes is None else (Evidence(notes=dict(notes)),)
    verdicts = [
        Verdict(about="a claim", kind="supported", value=p >= 0.5, probability=p, evidence=evidence)
        for p in probabilities
    ]
    mean = sum(probabilities) / len(probabilities)
    return findings_of(Score(metric="faithfulness", status="scored", value=mean, verdicts=tuple(verdicts)))


def learnt(turns: Sequence[tuple[dict[str, float], float]]) -> Any:
    return fit_screen([Lesson(found=found, judged=judged, inclusion=0.5) for found, judged in turns])


def test_of_equal_values_the_answer_with_more_doubtful_claims_is_worse() -> None:
    """The mean of claims says the same of two doubtful claims and of eight."""
    few, many = turn_of([0.75] * 2), turn_of([0.75] * 8)
    assert few["value"] == many["value"] and few["probability.doubt"] < many["probability.doubt"]
    known = learnt([(few, float(n % 5 != 0)) if n % 2 else (many, float(n % 5 == 0)) for n in range(240)])
    assert known is not None and known.expected(few) > known.expected(many) + 0.2


def test_that_nothing_is_missing_is_a_finding_too() -> None:
    """Names that are missing are noted of few claims; of the others it is known that none is."""
    whole, lacking = (turn_of([0.7], {"missing_names": names}) for names in ([], ["Ada", "Quist"]))
    known = learnt([(lacking, 0.0) if n % 3 == 0 else (whole, 1.0) for n in range(240)])
    assert known is not None and known.expected(whole) > known.expected(lacking) + 0.2


def test_fewer_than_two_hundred_verdicts_teach_nothing() -> None:
    turns = [(turn_of([0.9]), 1.0) if n % 2 else (turn_of([0.8]), 0.0) for n in range(199)]
    assert learnt(turns) is None
