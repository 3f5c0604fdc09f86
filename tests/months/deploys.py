"""Made-up deploys: one version makes answers worse, others come into use as well; or it is none of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from months.traffic import DAY, MONDAY, Array
from steelyard.stats import Sample

COMPONENTS = ("prompt", "model", "index", "code")


@dataclass(frozen=True)
class Deployed:
    """Judged turns of a fortnight in which a metric falls."""

    sample: Sample
    times: Array
    versions: dict[str, list[str | None]]
    guilty: str | None
    """The component whose version did it; None if something that no version tells did."""


def deployed(seed: int, *, turns: int = 500) -> Deployed:
    """Draw a fortnight: up to four components change on days of their own, at once or slowly."""
    draw = np.random.default_rng(seed)
    sessions = np.repeat(np.arange(turns), draw.geometric(0.5, turns))[:turns]
    times = np.sort(draw.uniform(0, 14, int(sessions[-1]) + 1))[sessions]
    guilty = COMPONENTS[draw.integers(4)] if draw.random() < 0.8 else None
    worse = times >= draw.uniform(2, 12)
    versions: dict[str, list[str | None]] = {}
    for component in COMPONENTS:
        if component != guilty and draw.random() < 0.4:
            versions[component] = ["1"] * turns
            continue
        start, takes = draw.uniform(2, 12), draw.choice([0.0, 0.0, 1.0, 3.0])
        done = np.clip((times - start) / takes, 0, 1) if takes else (times >= start).astype(float)
        new = draw.random(int(sessions[-1]) + 1)[sessions] < done
        versions[component] = np.where(new, "2", "1").tolist()
        if component == guilty:
            worse = new
    rates = draw.beta(0.9 * 9, 0.1 * 9, int(sessions[-1]) + 1)[sessions]
    rates = np.clip(rates - draw.uniform(0.2, 0.5) * worse, 0, 1)
    values = (draw.random(turns) < rates).astype(float)
    order = np.argsort(times, kind="stable")
    return Deployed(
        sample=Sample(values=values[order], weights=np.ones(turns), units=sessions[order].astype(np.int64)),
        times=MONDAY + DAY * times[order],
        versions={name: [column[at] for at in order] for name, column in versions.items()},
        guilty=guilty,
    )
