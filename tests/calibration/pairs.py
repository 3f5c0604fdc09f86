"""Judged and labelled turns drawn at random, for tests."""

from __future__ import annotations

import numpy as np

from steelyard.calibration import Judged, Labelled
from steelyard.scores import Evaluation, Evidence, Provenance, Score, Verdict


def drawn(
    count: int, *, share: float = 0.5, shift: float = 1.19, seed: int = 0, binary: bool = False
) -> tuple[list[Judged], dict[str, bool]]:
    """Turns with a judge whose AUROC is .8, and what is true of them."""
    generator = np.random.default_rng(seed)
    good = generator.random(count) < share
    if binary:
        values = np.where(generator.random(count) < 0.8, good, ~good).astype(float)
    else:
        values = np.clip(0.4 + 0.15 * (generator.normal(size=count) + shift * good), 0, 1)
    judged = [
        Judged(record_id=f"{seed}-{place}", value=float(value), worst=None, inclusion=1.0, claims=0)
        for place, value in enumerate(values)
    ]
    return judged, {one.record_id: bool(truth) for one, truth in zip(judged, good, strict=True)}


def labelled(count: int, *, share: float = 0.5, shift: float = 1.19, seed: int = 0) -> list[Labelled]:
    judged, truth = drawn(count, share=share, shift=shift, seed=seed)
    return [Labelled(one, truth[one.record_id]) for one in judged]


def evaluation(
    record_id: str = "r1",
    value: float = 0.5,
    *,
    chances: tuple[float, ...] = (0.9, 0.2),
    judge: str = "local-lexical",
    prompt_version: str = "1",
    metric: str = "faithfulness",
) -> Evaluation:
    verdicts = tuple(
        Verdict(
            about=f"claim {place}",
            kind="supported",
            value=chance >= 0.5,
            probability=chance,
            evidence=(Evidence(),),
        )
        for place, chance in enumerate(chances)
    )
    score = Score(
        metric=metric,
        status="scored",
        value=value,
        verdicts=verdicts,
        provenance=Provenance(judge=judge, prompt_version=prompt_version),
    )
    return Evaluation(record_id=record_id, scores=(score,), evaluated_at=1.0)
