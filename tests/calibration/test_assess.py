from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from calibration.pairs import drawn, evaluation
from steelyard.calibration import (
    Fit,
    Judged,
    Labelled,
    Refusal,
    assess,
    chances_by,
    collect,
    corrected,
    drawn_to_label,
)
from steelyard.results.labels import Label
from steelyard.stats import corrected_mean


def next_to_label(judged: list[Judged], known: Iterable[str] = (), **options: Any) -> list[Judged]:
    return [one for one, _ in drawn_to_label(judged, known, **options)]


def pick(judged: list[Judged], how: str, seed: int) -> list[Judged]:
    """50 turns to label: at random, by usefulness, or low scores much more often than high ones."""
    if how == "next":
        return next_to_label(judged, limit=50)
    generator = np.random.default_rng(10_000 + seed)
    weights = np.array([1.0 if how == "random" else 0.15 + 1 - one.value for one in judged])
    return [judged[place] for place in np.argsort(generator.random(len(judged)) / weights)[:50]]


@pytest.mark.parametrize("how", ["random", "next", "low_first"])
@pytest.mark.parametrize("share", [0.5, 0.8])
def test_the_corrected_mean_covers_the_truth_however_turns_were_picked(how: str, share: float) -> None:
    covered, runs = 0, 120
    for seed in range(runs):
        judged, truth = drawn(500, share=share, seed=seed, binary=seed % 2 == 0)
        pairs = [Labelled(one, truth[one.record_id]) for one in pick(judged, how, seed)]
        found = corrected(judged, pairs)
        assert found is not None
        covered += found.low <= share <= found.high
    # 95 % of 120 runs, give or take three standard errors.
    assert covered / runs >= 0.89


@pytest.mark.parametrize("wanted", ["worst scores", "bad turns", "complaints"])
def test_labels_of_picked_turns_do_no_harm_to_the_corrected_mean(wanted: str) -> None:
    """People label 100 turns of a list, of which they were drawn none, and 50 drawn ones."""
    covered, runs = 0, 120
    for seed in range(runs):
        judged, truth = drawn(500, share=0.8, seed=seed, binary=seed % 2 == 0)
        places = np.random.default_rng(seed).random(len(judged))
        rank = {
            "worst scores": [one.value for one in judged],
            "bad turns": [
                float(truth[one.record_id]) + place for one, place in zip(judged, places, strict=True)
            ],
            "complaints": [
                truth[one.record_id] + 2 * place for one, place in zip(judged, places, strict=True)
            ],
        }[wanted]
        listed = [judged[place] for place in np.argsort(rank)[:100]]
        pairs = [Labelled(one, truth[one.record_id], drawn=False) for one in listed]
        assert corrected(judged, pairs) is None
        pairs += [Labelled(one, truth[one.record_id]) for one in next_to_label(judged, limit=50)]
        found = corrected(judged, pairs)
        assert found is not None
        covered += found.low <= 0.8 <= found.high
    # 95 % of 120 runs, give or take three standard errors.
    assert covered / runs >= 0.89


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("count", [30, 100])
def test_labels_of_the_lowest_scores_alone_give_no_corrected_mean(count: int, binary: bool) -> None:
    judged, truth = drawn(2000, share=0.85, seed=3, binary=binary)
    lowest = sorted(judged, key=lambda one: one.value)[:count]
    pairs = [Labelled(one, truth[one.record_id]) for one in lowest]
    assert corrected(judged, pairs) is None
    others = [Labelled(one, truth[one.record_id]) for one in pick(judged, "random", 1)]
    assert corrected(judged, pairs[:30] + others) is not None


def in_sittings(judged: list[Judged], truth: dict[str, bool], count: int) -> list[Labelled]:
    """Labels in sittings of 20, each chosen by the labels so far, as `steelyard label` does it."""
    pairs: list[Labelled] = []
    while len(pairs) < count:
        known = [pair.judged.record_id for pair in pairs]
        more = next_to_label(judged, known, chance=chances_by(pairs), limit=min(count - len(pairs), 20))
        pairs += [Labelled(one, truth[one.record_id]) for one in more]
    return pairs


@pytest.mark.parametrize(
    ("binary", "share", "most"), [(True, 0.5, 0.85), (False, 0.5, 0.89), (False, 0.9, 0.9)]
)
def test_the_interval_is_narrower_than_that_of_the_labels_alone(
    binary: bool, share: float, most: float
) -> None:
    labels = [1.0] * round(50 * share) + [0.0] * round(50 * (1 - share))
    alone = corrected_mean([0.5] * 2000, [0.5] * 50, labels).margin
    widths = []
    for seed in range(30):
        judged, truth = drawn(2000, share=share, seed=seed, binary=binary)
        found = corrected(judged, in_sittings(judged, truth, 50))
        assert found is not None
        widths.append(found.margin)
    assert sum(widths) / len(widths) / alone <= most


def test_of_turns_that_are_alike_unsure_one_of_each_tenth_comes_first() -> None:
    judged = [
        Judged(
            record_id=str(place),
            value=place / 20,
            worst=None,
            inclusion=0.25 + (place / 20 * (1 - place / 20)) ** 0.5,  # so that all weigh the same
            claims=0,
        )
        for place in range(20)
    ]
    assert sorted(int(one.record_id) // 2 for one in next_to_label(judged, limit=10)) == list(range(10))


def test_labels_so_far_decide_which_turns_are_unsure() -> None:
    """The judge says .5 where people always say good, and 1 where they are divided."""
    judged = [
        Judged(record_id=str(place), value=0.5 if place % 2 else 1.0, worst=None, inclusion=1.0, claims=0)
        for place in range(400)
    ]
    assert chances_by([Labelled(one, True) for one in judged[:9]])(judged[0]) is None
    assert chances_by([Labelled(one, True) for one in judged[:50]])(judged[0]) is None, "one class only"
    said = [Labelled(one, one.value == 1.0 or place % 4 == 1) for place, one in enumerate(judged[:40])]
    chance = chances_by(said)
    fewest = [Labelled(one, place > 1) for place, one in enumerate(judged[:10])]
    assert chances_by(fewest)(judged[0]) is not None
    assert chances_by(fewest[1:])(judged[0]) is chances_by([*fewest[1:], fewest[9]])(judged[0]) is None
    low, high = chance(judged[1]), chance(judged[0])
    assert low is not None and high is not None and low < 0.6 < 0.9 < high
    known = [pair.judged.record_id for pair in said]
    found = next_to_label(judged, known, chance=chance, limit=40)
    assert sum(one.value == 0.5 for one in found) >= 25


def test_turns_picked_more_often_do_not_weigh_more() -> None:
    generator = np.random.default_rng(0)
    judged, pairs = [], []
    for place in range(4000):
        suspicious = place % 10 == 0
        good = bool(generator.random() < (0.2 if suspicious else 0.9))
        chance = 1.0 if suspicious else 0.1
        if generator.random() < chance:
            one = Judged(record_id=str(place), value=0.5, worst=None, inclusion=chance, claims=0)
            judged.append(one)
            pairs.append(Labelled(one, good))
    found = corrected(judged, pairs)
    assert found is not None
    assert found.low < 0.83 < found.high, "the share over all turns, judged or not"
    assert sum(pair.good for pair in pairs) / len(pairs) < 0.65


def test_a_few_labels_give_no_mean() -> None:
    judged, truth = drawn(100)
    assert corrected(judged, [Labelled(one, truth[one.record_id]) for one in judged[:9]]) is None


def test_an_assessment_says_what_labels_are_worth_and_what_more_would_bring() -> None:
    judged, truth = drawn(600, seed=3)
    turns = [evaluation(one.record_id, one.value, chances=()) for one in judged]
    labels = [
        Label(record_id=one, value="good" if truth[one] else "bad", who="ada", labelled_at=1.0, drawn=0.2)
        for one in list(truth)[:100]
    ]
    found = assess(collect(turns, labels)[0])
    assert found.turns == 600 and found.agreement.n == 100
    assert isinstance(found.fit, Fit) and found.fit.n == 100
    assert found.agreement.kappa is not None and found.agreement.kappa.low > 0
    assert found.corrected_mean is not None and found.to_halve is not None
    assert found.corrected_mean.low < sum(truth.values()) / 600 < found.corrected_mean.high
    many = [
        Label(record_id=one, value="good" if truth[one] else "bad", who="ada", labelled_at=1.0, drawn=0.2)
        for one in list(truth)[: 100 + found.to_halve]
    ]
    later = assess(collect(turns, many)[0])
    assert later.corrected_mean is not None
    assert later.corrected_mean.margin == pytest.approx(found.corrected_mean.margin / 2, rel=0.2)


def test_without_labels_nothing_is_claimed() -> None:
    found = assess(collect([evaluation(f"r{place}") for place in range(20)], [])[0])
    assert isinstance(found.fit, Refusal)
    assert found.corrected_mean is None and found.agreement.kappa is None and found.agreement.area is None


def test_the_next_turns_are_the_unsure_ones_and_labelled_ones_drop_out() -> None:
    judged = [
        Judged(record_id=str(place), value=0.5 if place % 2 else 0.0, worst=None, inclusion=1.0, claims=0)
        for place in range(1000)
    ]
    first = next_to_label(judged, limit=100)
    unsure = sum(one.value == 0.5 for one in first)
    assert 65 <= unsure <= 95, "the sure ones come too, but less often"
    again = next_to_label(judged, {first[0].record_id}, limit=99)
    assert again == first[1:]


def test_the_next_turns_go_by_the_calibrated_value_where_there_is_one() -> None:
    judged = [
        Judged(record_id=str(place), value=0.5 if place % 2 else 1.0, worst=None, inclusion=1.0, claims=0)
        for place in range(1000)
    ]
    found = next_to_label(judged, limit=100, chance=lambda one: 1.0 if one.value == 0.5 else 0.5)
    assert sum(one.value == 1.0 for one in found) >= 65
