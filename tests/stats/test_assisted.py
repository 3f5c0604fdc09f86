"""A dear judge's mean with the help of a cheap screen: right whatever the screen is worth, never wider."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stats.session_parts import Traffic
from steelyard.stats import (
    AssistedSample,
    assisted_sample,
    auroc,
    cohen_kappa,
    corrected_mean,
    find_changes,
    find_slices,
    pass_rate,
    sample_difference,
)

_Array = npt.NDArray[np.float64]


def traffic(
    kind: str,
    seed: int,
    *,
    turns: int = 1500,
    judged: float = 0.06,
    by_doubt: bool = False,
    sessions: int = 0,
) -> tuple[AssistedSample, _Array]:
    """Turns of which a few were judged, and what the judge would have said of all of them."""
    draw = np.random.default_rng(seed)
    good = draw.beta(2, 0.6, turns)
    if sessions:
        good = np.repeat(draw.beta(2, 0.6, turns // sessions), sessions)
    truth = (draw.random(turns) < good).astype(float)
    said = {
        "good": np.clip(good + 0.1 * draw.normal(size=turns), 0, 1),
        "useless": draw.random(turns),
        "adverse": 1 - good,
        "constant": np.full(turns, 0.7),
        "silent": np.full(turns, np.nan),
    }[kind]
    share = np.full(turns, judged)
    if by_doubt:
        doubt = np.sqrt(said * (1 - said) + 0.02)
        share = np.clip(judged * (0.3 + 0.7 * doubt / doubt.mean()), 0, 1)
    seen = draw.random(turns) < share
    sample = assisted_sample(
        said,
        np.ones(turns),
        np.where(seen, truth, np.nan),
        np.where(seen, share, np.nan),
        sessions=np.repeat(np.arange(turns // sessions), sessions).tolist() if sessions else None,
    )
    return sample, truth


MEAN = 2 / 2.6


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("good", {}),
        ("good", {"by_doubt": True}),
        ("good", {"sessions": 5}),
        ("useless", {"by_doubt": True}),
        ("adverse", {}),
        ("constant", {}),
        ("silent", {}),
    ],
)
def test_the_interval_covers_and_is_never_wider_than_without_the_screen(
    kind: str, options: dict[str, Any]
) -> None:
    runs = 150
    covered, wider, gains = 0, 0, []
    for seed in range(runs):
        sample, _ = traffic(kind, seed, **options)
        found, alone = sample.estimate(), sample.alone.estimate()
        assert found is not None and alone is not None and found.n == alone.n
        covered += found.low <= MEAN <= found.high
        wider += found.margin > 1.0001 * alone.margin
        gains.append((found.margin / alone.margin) ** 2)
    assert wider == 0
    # .93 of the 150, less three standard errors.
    assert covered >= 0.93 * runs - 3 * np.sqrt(0.93 * 0.07 * runs)
    assert (np.mean(gains) < 0.9) == (kind in ("good", "adverse"))


def test_what_the_screen_is_worth_is_told_in_turns() -> None:
    sample, _ = traffic("good", 1, turns=20_000)
    alone = len(sample.alone)
    assert 1.2 * alone < sample.worth < 2.2 * alone
    useless, _ = traffic("useless", 1, turns=20_000)
    assert useless.worth == pytest.approx(len(useless.alone), rel=0.05)


def test_turns_before_there_was_a_screen_and_those_to_which_nothing_applies_have_their_weight() -> None:
    """Half of the time there was no screen; to a fifth of turns, all liked by the screen, nothing applies."""
    errors, widths = [], []
    for seed in range(60):
        draw = np.random.default_rng(seed)
        count = 3000
        good = draw.beta(2, 1, count)
        truth = (draw.random(count) < good).astype(float)
        applies = draw.random(count) > 0.4 * (good > 0.6)
        said = np.where(np.arange(count) < count / 2, np.nan, good)
        seen = draw.random(count) < 0.1
        sample = assisted_sample(
            said, np.ones(count), np.where(seen & applies, truth, np.nan), np.where(seen, 0.1, np.nan)
        )
        found = sample.estimate()
        assert found is not None
        errors.append(found.value - truth[applies].mean())
        widths.append(found.margin / 1.96)
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))
    assert np.std(errors) < 1.3 * np.mean(widths)


def test_a_screen_that_changes_midway_has_a_curve_of_its_own() -> None:
    draw = np.random.default_rng(7)
    count = 6000
    good = draw.beta(2, 0.6, count)
    truth = (draw.random(count) < good).astype(float)
    late = np.arange(count) >= count / 2
    said = np.where(late, 1 - good, good)
    seen = draw.random(count) < 0.1

    def margin(makes: list[str] | None) -> float:
        sample = assisted_sample(
            said, np.ones(count), np.where(seen, truth, np.nan), np.where(seen, 0.1, np.nan), makes=makes
        )
        found = sample.estimate()
        assert found is not None and found.low < truth.mean() < found.high
        return found.margin

    assert margin(["new" if one else "old" for one in late]) < 0.93 * margin(None)


def test_nothing_is_said_of_turns_that_the_judge_never_saw() -> None:
    sample, _ = traffic("good", 3, judged=0.05)
    unseen = sample.part(sample.counted == 0)
    assert unseen.estimate() is None and unseen.counted.sum() == 0
    nobody = assisted_sample([0.5] * 10, [1.0] * 10, [np.nan] * 10, [np.nan] * 10)
    assert nobody.estimate() is None
    # The screen alone makes no slice: it needs turns that the judge saw.
    names: list[str | None] = ["only screened" if one == 0 else "other" for one in sample.counted]
    assert find_slices(sample, {"tag": names}, level=0.5) == []


def test_slices_and_differences_are_narrower_too() -> None:
    sample, truth = traffic("good", 2, turns=8000, judged=0.05)
    parts = [sample.part(np.arange(len(truth)) % 20 == number) for number in range(20)]
    pairs = [(part.estimate(), part.alone.estimate()) for part in parts]
    assert all(one and other and one.margin <= other.margin for one, other in pairs)
    assert sum(one is not None and one.low <= MEAN <= one.high for one, _ in pairs) >= 17
    rare = np.arange(len(truth)) % 4 == 0
    first, second = sample.part(~rare), sample.part(rare)
    moved = sample_difference(first, second)
    bare = sample_difference(first.alone, second.alone)
    assert moved is not None and bare is not None and not moved.clear
    assert moved.high - moved.low < bare.high - bare.low


def test_a_fall_of_the_judge_is_found_and_one_of_the_screen_alone_is_not() -> None:
    draw = np.random.default_rng(6)
    count = 8000
    times = np.linspace(0.0, 1200.0 * (count - 1), count)
    late = times > times[-1] / 2
    good = np.where(late, draw.beta(2, 1.2, count), draw.beta(2, 0.4, count))
    truth = (draw.random(count) < good).astype(float)
    seen = draw.random(count) < 0.1
    columns = np.ones(count), np.where(seen, truth, np.nan), np.where(seen, 0.1, np.nan)
    (change,) = find_changes(assisted_sample(good, *columns), times)
    assert change.difference.clear and abs(change.since - times[-1] / 2) < 10 * 86400
    steady = (draw.random(count) < 0.8).astype(float)
    columns = np.ones(count), np.where(seen, steady, np.nan), np.where(seen, 0.1, np.nan)
    makes = ["new" if one else "old" for one in late]
    for sample in (assisted_sample(good, *columns), assisted_sample(good, *columns, makes=makes)):
        assert not any(one.difference.clear for one in find_changes(sample, times))


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        assisted_sample([0.5], [1.0, 1.0], [np.nan], [np.nan])


def test_labels_correct_a_judge_that_is_too_kind() -> None:
    draw = np.random.default_rng(1)
    covered = narrower = 0
    for _ in range(200):
        truth = (draw.random(1_500) < 0.7).astype(float)
        judged = np.where(draw.random(1_500) < 0.9, truth, 1.0) * 0.9 + 0.05
        found = corrected_mean(judged[120:].tolist(), judged[:120].tolist(), truth[:120].tolist())
        alone = pass_rate((truth[:120] > 0.5).tolist())
        assert alone is not None
        covered += found.low <= 0.7 <= found.high
        narrower += found.margin < alone.margin
    assert 0.92 <= covered / 200 <= 0.99
    assert narrower > 150


def test_labels_of_turns_in_sessions_cover_the_truth() -> None:
    draw = np.random.default_rng(2)
    traffic = Traffic(size=20, alike=0.3, mean=0.85)
    covered = {"sessions": 0, "turns": 0}
    for _ in range(200):
        turns = traffic.judged(draw, 1_000)
        judged = np.clip(0.5 + 0.3 * turns.values + draw.normal(0, 0.25, 1_000), 0, 1)
        drawn = draw.choice(1_000, 100, replace=False)
        for known in covered:
            sessions = turns.sessions.tolist() if known == "sessions" else [None] * 1_000
            found = corrected_mean(
                judged.tolist(),
                judged[drawn].tolist(),
                turns.values[drawn].tolist(),
                judged_sessions=sessions,
                labelled_sessions=[sessions[place] for place in drawn],
            )
            covered[known] += found.low <= 0.85 <= found.high
    assert covered["sessions"] / 200 >= 0.91  # 95 %, less three standard errors
    assert covered["turns"] / 200 <= 0.88


def test_a_judge_that_tells_nothing_leaves_the_labels_alone() -> None:
    found = corrected_mean([0.5] * 100, [0.5] * 4, [1.0, 0.0, 1.0, 1.0])
    assert found.value == pytest.approx(0.75)
    assert found.low > 0.15, "no degree of freedom goes into a judge that is not used"


def test_correction_weighs_by_inclusion() -> None:
    """Bad turns were labelled for certain, good ones one in ten."""
    labels = [0.0] * 10 + [1.0] * 10
    inclusion = [1.0] * 10 + [0.1] * 10
    found = corrected_mean([0.5, 0.5], [0.5] * 20, labels, labelled_inclusion=inclusion)
    assert found.value == pytest.approx(100 / 110)


def test_too_few_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="two labelled pairs"):
        corrected_mean([0.5, 0.6], [0.5], [1.0])


def test_kappa_is_cohens() -> None:
    """20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: agreement .7, by chance .5, kappa .4."""
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    found = cohen_kappa(first, second)
    assert found.value == pytest.approx(0.4)
    assert 0.1 < found.low < 0.2 and 0.58 < found.high < 0.65
    perfect = cohen_kappa([0, 1] * 10, [0, 1] * 10)
    assert perfect.value == perfect.high == 1 and perfect.low < 0.95
    with pytest.raises(ValueError, match="two different"):
        cohen_kappa(["yes"], ["yes"])


def test_kappa_and_auroc_cover_the_truth() -> None:
    draw = np.random.default_rng(4)
    kappa = area = 0
    for _ in range(300):
        truth = draw.random(40) < 0.7
        truth[:2] = True, False
        seen = np.where(draw.random(40) < 0.85, truth, ~truth)
        yes = 0.7 * 0.85 + 0.3 * 0.15
        chance = 0.7 * yes + 0.3 * (1 - yes)
        agreement = cohen_kappa(truth.tolist(), seen.tolist())
        kappa += agreement.low <= (0.85 - chance) / (1 - chance) <= agreement.high
        ranked = auroc((draw.normal(size=40) + 1.5 * truth).tolist(), truth.tolist())
        area += ranked.low <= 0.5 * (1 + math.erf(0.75)) <= ranked.high
    assert 0.91 <= kappa / 300 <= 0.99
    assert 0.91 <= area / 300 <= 0.99


def test_auroc_counts_pairs_and_half_the_ties() -> None:
    assert auroc([0.9, 0.5, 0.5, 0.1], [True, True, False, False]).value == 3.5 / 4
    perfect = auroc([0.9] * 10 + [0.1] * 10, [True] * 10 + [False] * 10)
    assert perfect.value == perfect.high == 1 and 0.7 < perfect.low < 0.95
    with pytest.raises(ValueError, match="one good and one bad"):
        auroc([0.1], [True])
    with pytest.raises(ValueError, match="one bad"):
        auroc([0.1], [False])


def test_a_second_opinion_agrees() -> None:
    truescore = pytest.importorskip("truescore", reason="truescore is not installed")
    draw = np.random.default_rng(9)
    mine = pass_rate([True] * 20)
    theirs = truescore.wilson_interval(20, 20)
    assert mine is not None
    assert (mine.low, mine.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    first, second = draw.integers(0, 3, 60).tolist(), draw.integers(0, 3, 60).tolist()
    assert cohen_kappa(first, second).value == pytest.approx(truescore.cohen_kappa(first, second))
    truth = (draw.random(2_000) < 0.7).astype(float)
    judged = np.where(draw.random(2_000) < 0.85, truth, 1 - truth)
    ours = corrected_mean(judged[200:].tolist(), judged[:200].tolist(), truth[:200].tolist())
    other = truescore.ppi_estimate(judged, truth[:200], np.arange(200))
    assert ours.value == pytest.approx(other.point, abs=0.01)
    assert ours.margin == pytest.approx((other.high - other.low) / 2, rel=0.1)


def test_another_library_corrects_the_mean_alike() -> None:
    estimators = pytest.importorskip(
        "glide.estimators", reason="glide-py is not installed (Python 3.12 and later)"
    )
    draw = np.random.default_rng(9)
    truth = (draw.random(2_000) < 0.7).astype(float)
    judged = np.where(draw.random(2_000) < 0.85, truth, 1 - truth)
    ours = corrected_mean(judged[200:].tolist(), judged[:200].tolist(), truth[:200].tolist())
    labels = np.where(np.arange(2_000) < 200, truth, np.nan)
    theirs = estimators.PPIMeanEstimator().estimate(labels, judged)
    assert ours.value == pytest.approx(theirs.mean, abs=0.01)
    assert ours.margin == pytest.approx(theirs.width / 2, rel=0.1)


def test_agreement_counts_sessions() -> None:
    """A judge that is right or wrong for whole sessions: turn by turn, intervals would be too narrow."""
    draw = np.random.default_rng(6)
    covered = {(name, known): 0 for name in ("kappa", "area") for known in (False, True)}
    for _ in range(300):
        sessions = np.repeat(np.arange(40), 5)
        good = draw.random(200) < draw.beta(1.0, 1.0, 40)[sessions]
        right = draw.random(200) < draw.beta(2.0, 0.5, 40)[sessions]
        said = np.where(right, good, ~good)
        values = said * 0.4 + draw.random(200) * 0.6
        for known in (False, True):
            units = sessions.tolist() if known else None
            kappa = cohen_kappa(said.tolist(), good.tolist(), sessions=units)
            covered["kappa", known] += kappa.low <= 0.6 <= kappa.high
            area = auroc(values.tolist(), good.tolist(), sessions=units)
            covered["area", known] += area.low <= AREA <= area.high
    assert all(covered[name, True] >= 0.92 * 300 for name in ("kappa", "area")), covered
    assert all(covered[name, False] <= 0.9 * 300 for name in ("kappa", "area")), covered


# Of the judge above: right in four of five; good and bad differ by how often .4 is added to 0..0.6.
_AHEAD = 1 - (1 / 3) ** 2 / 2
AREA = 0.8**2 * _AHEAD + 2 * 0.8 * 0.2 * 0.5 + 0.2**2 * (1 - _AHEAD)
