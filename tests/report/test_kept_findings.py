"""What is said to have changed in scores made at random, held against what was said before."""

from __future__ import annotations

import json
from dataclasses import asdict
from random import Random
from types import SimpleNamespace
from typing import Any

from kept import check, rounded
from report.parts import DAY, NOON
from steelyard.report import look_closer
from steelyard.results.queries import SampledScore, Scope

QUESTIONS = [
    f"{what} {where}?" for what in ("How long may I stay", "What does a room cost") for where in "abcdef"
]


def scores(draw: Random, *, lower: bool) -> list[SampledScore]:
    """Four weeks of one metric: of three tenants and two languages, with a fall, a drift, or neither."""
    count, day, bad = draw.choice([60, 900, 900]), draw.uniform(8, 20), draw.choice([None, "t0", "t1"])
    what, size, slow = (
        draw.choice(["none", "fall", "drift", "rise"]),
        draw.choice([0.3, 0.6]),
        draw.random() < 0.3,
    )
    asks, knows = draw.random() < 0.3, draw.random() < 0.6
    found = []
    for number in range(count):
        at = 28 * number / count
        tenant, language = f"t{draw.randrange(3)}", draw.choice(["en", "de"])
        inside = bad in (None, tenant)
        part = {"fall": at >= day, "rise": at >= day, "drift": max(0.0, at - 7) / 21}.get(what, 0) * inside
        good = 0.9 - (0.2 if slow and language == "de" else 0) - size * part * (-0.2 if what == "rise" else 1)
        value = float((draw.random() < good) != lower)
        attributes = {"tenant": (tenant,), "language": (language,), "version": ("2" if at >= day else "1",)}
        wrong = part and draw.random() < 0.6
        one = SampledScore(
            value=value,
            inclusion=draw.choice([1.0, 0.5]),
            happened_at=NOON + DAY * at,
            question=draw.choice(QUESTIONS) if asks else "",
            attributes=attributes,
            unit=f"s{number // 3}" if knows else None,
            record_id=f"r{number}",
            diagnosis=draw.choice(["passage_lost", "invented"]) if wrong else "fine",
        )
        found.append(one)
    return found


def looked(draw: Random) -> str:
    """What changed and what stands out, in three metrics."""
    kinds = (("faithfulness", "higher"), ("context_recall", "higher"), ("hallucination", "lower"))
    event = draw.random()  # often the same has happened to several
    of = {
        metric: scores(Random(event) if draw.random() < 0.5 else draw, lower=direction == "lower")
        for metric, direction in kinds
    }
    judge: Any = SimpleNamespace(
        judge=draw.choice(["local-lexical", "chat:m"]), calibrated=draw.random() < 0.5
    )
    reader: Any = SimpleNamespace(
        sample=lambda _, metric, **__: of[metric], made=lambda _: [judge], screened=lambda *_, **__: {}
    )
    metrics: Any = [
        SimpleNamespace(
            metric=metric, direction=direction, screen=None, estimate=SimpleNamespace(n=len(of[metric]))
        )
        for metric, direction in kinds
    ]
    found: Any = look_closer(reader, Scope(), metrics)
    return "\n".join(json.dumps(rounded(asdict(one)), default=str) for some in found for one in some)


def test_what_changed_is_what_had_changed() -> None:
    check("any_looks", "\n".join(f"{seed}\n{looked(Random(seed))}" for seed in range(20)))
