"""From a reviewed set back to production: what people would find there on average."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from steelyard.errors import ConfigurationError
from steelyard.golden._set import GoldenSet
from steelyard.golden.mining._turns import read_turns
from steelyard.stats import Estimate, corrected_mean, weighted_mean


def production_mean(
    golden: GoldenSet,
    labels: Mapping[str, float] | None = None,
    *,
    db: str | Path | None = None,
    metric: str | None = None,
    since: float | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean of people's labels over all of production, from a mined set.

    With a database and a metric, the judge's scores of all stored turns are used too, corrected by the labels
    (`steelyard.stats.corrected_mean`): the interval is the narrower, the better the judge knows.

    Args:
        golden: A set of `mine`.
        labels: By case id, in 0..1; what reviewers said (`metadata["label"]`) where None.
        db: The file that the set was drawn from.
        metric: The metric whose scores come nearest to what people say; values in 0..1.
        since: As it was given to `mine`.
        level: Nominal coverage.

    Raises:
        ConfigurationError: If there are fewer than two labels of cases that were drawn, or only one of `db`
            and `metric` is given.
    """
    if (db is None) != (metric is None):
        raise ConfigurationError("production_mean needs db and metric together")
    said = labels if labels is not None else labels_of(golden)
    cases = [case for case in golden if case.id in said and case.inclusion_probability is not None]
    if len(cases) < 2:
        raise ConfigurationError("production_mean needs the labels of at least two cases that were drawn")
    most = max(case.inclusion_probability or 1.0 for case in cases)
    inclusion = [(case.inclusion_probability or 1.0) / most for case in cases]
    values = [float(said[case.id]) for case in cases]
    if db is None or metric is None:
        found = weighted_mean(values, inclusion, level=level)
        assert found is not None
        return found
    known = [case.metadata.get("scores", {}).get(metric) for case in cases]
    if None in known:
        raise ConfigurationError(f"a labelled case has no score of {metric!r}")
    turns = [turn for turn in read_turns(db, metric=metric, since=since).turns if metric in turn.scores]
    return corrected_mean(
        [turn.scores[metric] for turn in turns],
        [float(score) for score in known],
        values,
        judged_inclusion=[turn.inclusion for turn in turns],
        labelled_inclusion=inclusion,
        level=level,
    )


def labels_of(golden: GoldenSet) -> dict[str, float]:
    """What reviewers said of the answers from production: 1 for good, 0 for bad."""
    values = {"good": 1.0, "bad": 0.0}
    said = {case.id: case.metadata.get("label") for case in golden}
    return {name: values[label] for name, label in said.items() if isinstance(label, str) and label in values}
