"""A dear judge's mean with the help of a cheap screen: right whatever the screen is worth, never wider."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from steelyard.stats import AssistedSample, assisted_sample, find_changes, find_slices, sample_difference

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
