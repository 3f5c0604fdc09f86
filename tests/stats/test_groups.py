"""Differences, slices and clusters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.agreement import adjusted_rand
from steelyard.stats import (
    cluster,
    find_slices,
    holm,
    name_clusters,
    paired_difference,
    unpaired_difference,
)


def test_two_pairs_that_differ_alike_are_not_clear() -> None:
    found = paired_difference([1.0, 1.0], [0.5, 0.5])
    assert found is not None
    assert found.value == -0.5
    assert not found.clear


def test_many_pairs_that_differ_are_clear() -> None:
    found = paired_difference([0.9] * 20 + [1.0] * 20, [0.5] * 20 + [0.8] * 20)
    assert found is not None
    assert found.clear and found.high < 0


def test_two_of_fifty_that_fell_may_be_chance() -> None:
    """McNemar's exact test of 2 : 0, as mid-p, gives .25; of 6 : 0 it gives 2^-6."""
    for fallen, p_value in ((2, 0.25), (6, 2**-6)):
        found = paired_difference([1.0] * 50, [0.0] * fallen + [1.0] * (50 - fallen))
        assert found is not None and found.p_value == pytest.approx(p_value)
        assert found.clear == (found.high < 0) == (fallen == 6)


def test_small_graded_noise_has_a_narrow_interval_and_no_change_at_all_a_wide_one() -> None:
    draw = np.random.default_rng(3)
    first = draw.uniform(0.3, 0.7, 20)
    noisy = paired_difference(first.tolist(), (first + draw.normal(0, 0.02, 20)).tolist())
    alike = paired_difference(first.tolist(), first.tolist())
    assert noisy is not None and alike is not None
    assert noisy.high - noisy.low < 1.5 * 2 * 1.96 * 0.02 / math.sqrt(20)
    assert alike.p_value == 1 and alike.high > 0.05, "20 cases do not show that one in 20 never falls"


@given(
    changes=st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.25, 1.0]), min_size=1, max_size=10),
    chances=st.lists(st.sampled_from([0.1, 0.5, 1.0]), min_size=10, max_size=10),
)
def test_the_p_value_counts_all_signs_and_the_interval_agrees(
    changes: list[float], chances: list[float]
) -> None:
    inclusion = chances[: len(changes)]
    weighted = np.array(changes) / inclusion
    sums = np.array([0.0])
    for one in weighted:
        sums = np.concatenate([sums + one, sums - one])
    seen = abs(weighted.sum())
    above, equal = np.mean(sums > seen + 1e-9), np.mean(np.abs(sums - seen) <= 1e-9)
    first = [0.5 - one / 2 for one in changes]
    found = paired_difference(first, [1 - one for one in first], inclusion=inclusion)
    assert found is not None and found.low <= found.value <= found.high
    assert found.p_value == pytest.approx(2 * above + equal, abs=0.02)
    assert found.clear == (found.low > 0 or found.high < 0)


def test_holms_p_values() -> None:
    """Holm 1979: the smallest times their number, the next times one less; never below the one before."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.02, 0.02], [4, 1]) == pytest.approx([0.025, 0.025])
    assert holm([]) == []


@pytest.mark.parametrize("pairs", [2, 5, 10, 40])
def test_equal_variants_are_seldom_told_apart(pairs: int) -> None:
    draw = np.random.default_rng(pairs)
    clear = 0
    for _ in range(400):
        first, second = draw.random(pairs).tolist(), draw.random(pairs).tolist()
        for found in (paired_difference(first, second), unpaired_difference(first, second)):
            assert found is not None
            clear += found.clear
    assert clear / 800 <= 0.07


def test_the_slice_that_is_worse_is_found_and_few_others() -> None:
    draw = np.random.default_rng(1)
    found = false = 0
    for _ in range(60):
        model = draw.integers(0, 8, 800)
        route = draw.integers(0, 4, 800)
        slices = find_slices(
            (draw.random(800) < np.where(model == 3, 0.7, 0.9)).astype(float).tolist(),
            {"model": [f"m{number}" for number in model], "route": [f"/{number}" for number in route]},
        )
        found += any(one.name == "model" and one.value == "m3" for one in slices)
        false += sum(one.name == "route" for one in slices)
    assert found >= 45
    assert false <= 6


def test_in_equal_traffic_no_slice_stands_out() -> None:
    draw = np.random.default_rng(2)
    false = 0
    for _ in range(100):
        names = [f"t{number}" for number in draw.integers(0, 8, 400)]
        false += bool(find_slices((draw.random(400) < 0.95).astype(float).tolist(), {"tag": names}))
    assert false <= 12


def test_slices_are_weighed_by_inclusion() -> None:
    """Within the slice the bad turns were all picked and one in twenty of the good ones: it is not worse."""
    inclusion = [1.0] * 40 + [0.05] * 40 + [1.0] * 400
    values = [0.0] * 40 + [1.0] * 40 + [0.0] * 20 + [1.0] * 380
    names = ["odd"] * 80 + ["even"] * 400
    assert find_slices(values, {"tag": names})
    assert not find_slices(values, {"tag": names}, inclusion=inclusion)


def test_seeded_clusters_are_found_again_whatever_the_order() -> None:
    draw = np.random.default_rng(3)
    centres = draw.normal(size=(5, 32))
    truth = draw.integers(0, 5, 240)
    vectors = centres[truth] + draw.normal(size=(240, 32))
    labels = cluster(vectors)
    assert adjusted_rand(labels.tolist(), truth.tolist()) >= 0.7
    order = draw.permutation(240)
    assert (cluster(vectors[order]) == labels[order]).all()
    sizes = np.bincount(labels)
    assert sizes.tolist() == sorted(sizes.tolist(), reverse=True)


def test_few_or_equal_vectors_are_one_cluster() -> None:
    assert cluster(np.zeros((0, 4))).tolist() == []
    assert cluster(np.ones((6, 4))).tolist() == [0] * 6


def test_clusters_are_named_by_words_of_their_own() -> None:
    texts = [
        "How do I reset my password?",
        "password reset fails",
        "Where is my parcel?",
        "my parcel is late",
    ]
    assert name_clusters(texts, [0, 0, 1, 1], words=2) == ["password, reset", "parcel, late"]


def test_agreement_of_clusterings() -> None:
    """The example of Hubert & Arabie's index for (0, 0, 1, 1) and (0, 0, 1, 2): 4 / 7."""
    assert adjusted_rand([0, 0, 1, 1], [0, 0, 1, 2]) == pytest.approx(4 / 7)
    assert adjusted_rand([0, 1, 0, 1], [0, 0, 1, 1]) < 0.1
