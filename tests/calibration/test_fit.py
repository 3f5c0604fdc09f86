from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from calibration.pairs import labelled
from steelyard.calibration import (
    Fit,
    IdentityMap,
    IsotonicMap,
    Judged,
    Labelled,
    Lesson,
    PlattMap,
    Refusal,
    findings_of,
    fit,
    fit_screen,
    spread_error,
)
from steelyard.calibration._screens import ScreenMap
from steelyard.scores import Evidence, Score, Verdict


def made(pairs: list[Labelled]) -> Fit:
    found = fit(pairs)
    assert isinstance(found, Fit), found
    return found


def refused(pairs: list[Labelled]) -> Refusal:
    found = fit(pairs)
    assert isinstance(found, Refusal)
    return found


def test_five_labels_are_refused_with_how_many_there_must_be() -> None:
    refusal = refused(labelled(5))
    assert refusal.cause == "too_few_labels"
    assert "5" in refusal.explanation and "30" in refusal.explanation


@pytest.mark.parametrize("good", [True, False])
def test_labels_of_one_class_are_refused(good: bool) -> None:
    refusal = refused([pair._replace(good=good) for pair in labelled(80)])
    assert refusal.cause == "one_class"
    assert ("all 80 labels say good" if good else "all 80 labels say bad") in refusal.explanation


def test_few_labels_of_one_class_are_refused() -> None:
    pairs = [pair._replace(good=place >= 3) for place, pair in enumerate(labelled(80))]
    assert refused(pairs).cause == "few_of_one_class"


def test_a_judge_that_tells_nothing_is_refused() -> None:
    assert refused(labelled(200, shift=0.0)).cause == "no_relation"


def test_a_judge_that_is_wrong_throughout_is_refused() -> None:
    assert refused([pair._replace(good=not pair.good) for pair in labelled(200)]).cause == "no_relation"


def test_few_labels_get_a_curve_and_the_error_falls_on_turns_it_has_not_seen() -> None:
    found = made(labelled(150, seed=1))
    assert isinstance(found.map, PlattMap)
    unseen = labelled(5000, seed=2)
    truth = [pair.good for pair in unseen]
    raw = spread_error([pair.judged.value for pair in unseen], truth)
    after = spread_error([found.map(pair.judged.value) for pair in unseen], truth)
    assert after < 0.07 < raw
    assert found.error_after < found.error_before
    assert 0.7 < found.area.low < found.area.value < found.area.high < 0.9


def test_many_labels_of_a_judge_with_two_levels_get_steps() -> None:
    """Good turns lie in the middle of the bad half: no logistic curve can say so, steps can."""
    generator = np.random.default_rng(0)
    values = generator.random(800)
    good = generator.random(800) < np.where(values < 0.8, 0.3, 0.95)
    pairs = [
        Labelled(Judged(record_id=str(place), value=float(value), worst=None, inclusion=1.0, claims=0), truth)
        for place, (value, truth) in enumerate(zip(values, good.tolist(), strict=True))
    ]
    found = made(pairs)
    assert isinstance(found.map, IsotonicMap)
    assert found.map(0.1) == pytest.approx(0.3, abs=0.1)
    assert found.map(0.5) == pytest.approx(0.3, abs=0.1)
    assert found.map(0.95) == pytest.approx(0.95, abs=0.05)
    assert isinstance(made(pairs[:150]).map, PlattMap), "150 labels are too few for steps"


def test_a_judge_whose_scores_are_probabilities_is_left_as_it_is() -> None:
    generator = np.random.default_rng(3)
    values = generator.random(300)
    pairs = [
        Labelled(
            Judged(record_id=str(place), value=float(value), worst=None, inclusion=1.0, claims=0),
            bool(generator.random() < value),
        )
        for place, value in enumerate(values)
    ]
    assert isinstance(made(pairs).map, IdentityMap)


def test_the_worst_verdict_is_taken_where_it_tells_more_than_the_score() -> None:
    generator = np.random.default_rng(4)
    pairs = []
    for place in range(200):
        worst = float(generator.random())
        judged = Judged(
            record_id=str(place), value=float(generator.random() < 0.5), worst=worst, inclusion=1.0, claims=1
        )
        pairs.append(Labelled(judged, bool(generator.random() < worst**2)))
    assert made(pairs).signal == "worst_verdict"
    without = [*pairs[1:], pairs[0]._replace(judged=labelled(1)[0].judged)]
    found = fit(without)
    assert isinstance(found, Refusal) or found.signal == "value", "one turn has no verdicts"


@pytest.mark.parametrize("seed", range(6))
def test_steps_are_the_rising_ones_with_the_least_error_kept_off_the_ends(seed: int) -> None:
    """Against the formula by largest and smallest means (Robertson, Wright & Dykstra 1988, section 1.4)."""
    generator = np.random.default_rng(seed)
    values = generator.integers(0, 12, 60) / 11
    good = generator.random(60) < generator.choice([values, 1 - values, np.ones(60)])
    groups = [good[values == level] for level in np.unique(values)]

    def mean(first: int, last: int) -> float:
        return float(np.concatenate(groups[first : last + 1]).mean())

    number = range(len(groups))
    best = [max(min(mean(a, b) for b in number if b >= at) for a in number if a <= at) for at in number]
    labels = [sum(len(groups[one]) for one in number if abs(best[one] - best[at]) < 1e-9) for at in number]
    kept = [min(max(one, 1 / (many + 2)), 1 - 1 / (many + 2)) for one, many in zip(best, labels, strict=True)]
    found = IsotonicMap.fit(values, good)
    at_levels = [found(level) for level in np.unique(values)]
    assert at_levels == pytest.approx(np.maximum.accumulate(kept).tolist())


def test_the_calibration_error_of_a_worked_example() -> None:
    # Two in the tenth of .95, one of them good: |.95 - .5|; two in that of .15, none good: .15.
    assert spread_error([0.95, 0.95, 0.15, 0.15], [True, False, False, False]) == pytest.approx(0.3)


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


def test_no_value_is_expected_beyond_the_range() -> None:
    steep = ScreenMap(
        names=("value",), centre=(0.5,), slopes=(9.0,), level=0.5, turns=200, left=0.0, left_by_value=0.0
    )
    assert [steep.expected({"value": value}) for value in (0.0, 0.5, 1.0)] == [0.0, 0.5, 1.0]
    assert steep.expected({}) == 0.5


def test_fewer_than_two_hundred_verdicts_teach_nothing() -> None:
    turns = [(turn_of([0.9]), 1.0) if n % 2 else (turn_of([0.8]), 0.0) for n in range(199)]
    assert learnt(turns) is None


def test_findings_that_tell_nothing_seldom_make_a_map() -> None:
    """However well a map over twenty of them fits the turns that it was drawn through."""
    generator, helped = np.random.default_rng(0), 0
    for _ in range(8):
        turns = [
            (turn_of([value]) | {f"noise {name}": generator.normal() for name in range(20)}, judged)
            for value, judged in zip(generator.random(220), generator.random(220), strict=True)
        ]
        helped += learnt(turns) is not None
    assert helped <= 3
