"""Claims that differ in one thing from what a text says, drawn afresh: what the rules are worth."""

from __future__ import annotations

from collections import defaultdict

from local_worked import supported
from minimal_pairs import minimal_pairs


def test_claims_that_differ_in_one_thing_are_told_apart_by_kind() -> None:
    right: dict[str, list[bool]] = defaultdict(list)
    for pair in minimal_pairs(3):
        right[pair.kind] += [
            supported(pair.true, pair.text).value,
            not supported(pair.false, pair.text).value,
        ]
    every = [hit for hits in right.values() for hit in hits]
    assert sum(every) >= 0.8 * len(every)
    shares = {kind: sum(hits) / len(hits) for kind, hits in right.items()}
    # Who did it to whom, and the items of a list, are beyond it.
    beyond = {"role", "list"}
    assert {kind for kind, share in shares.items() if share < 0.7} <= beyond, shares


def test_numbers_units_and_negations_are_found_almost_always() -> None:
    of_these = ("number", "unit", "negation")
    pairs = [pair for pair in minimal_pairs(3, seed=2) if pair.kind in of_these]
    missed = [pair.false for pair in pairs if supported(pair.false, pair.text).value]
    alarms = [pair.true for pair in pairs if not supported(pair.true, pair.text).value]
    assert len(missed) <= 0.05 * len(pairs), missed
    assert len(alarms) <= 0.15 * len(pairs), alarms
