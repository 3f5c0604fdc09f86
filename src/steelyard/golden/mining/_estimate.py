"""From a reviewed set back to production: what people would find there on average."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path

from steelyard.errors import ConfigurationError
from steelyard.golden._set import GoldenSet
from steelyard.golden.mining._population import Stratum, read_turns
from steelyard.stats import Estimate, corrected_mean, weighted_mean

_GRADES: Mapping[Stratum, float] = {"failing": 0.0, "uncertain": 0.5, "rest": 1.0}
"""What the judge's finding is worth as a guess at a person's; how far it is one is found from the labels."""


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

    With a database and a metric, it is used too which of all stored turns the judge found failing, uncertain
    or neither, corrected by the labels (`steelyard.stats.corrected_mean`): the interval is the narrower, the
    better the judge knows.

    Args:
        golden: A set of `mine`.
        labels: By case id, in 0..1; what reviewers said (`metadata["label"]`) where None.
        db: The file that the set was drawn from.
        metric: The metric that comes nearest to what people say; it needs a threshold.
        since: As it was given to `mine`.
        level: Nominal coverage.

    Raises:
        ConfigurationError: If there are fewer than two labels of cases that were drawn, or only one of `db`
            and `metric` is given.
    """
    if (db is None) != (metric is None):
        raise ConfigurationError("production_mean needs db and metric together")
    said = labels if labels is not None else labels_of(golden)
    inclusion = _inclusion(golden, said)
    if len(inclusion) < 2:
        raise ConfigurationError("production_mean needs the labels of at least two cases that were drawn")
    values = [float(said[name]) for name in inclusion]
    if db is None or metric is None:
        found = weighted_mean(values, list(inclusion.values()), level=level)
        assert found is not None
        return found
    turns = {turn.record_id: turn for turn in read_turns(db, metric=metric, since=since).turns}
    if gone := inclusion.keys() - turns.keys():
        raise ConfigurationError(
            f"{len(gone)} labelled cases have no score of {metric!r} in {str(db)!r}; "
            "name the results that the set was mined from"
        )
    return corrected_mean(
        [_GRADES[turn.stratum] for turn in turns.values()],
        [_GRADES[turns[name].stratum] for name in inclusion],
        values,
        judged_inclusion=[turn.inclusion for turn in turns.values()],
        labelled_inclusion=list(inclusion.values()),
        level=level,
    )


def _inclusion(golden: GoldenSet, said: Container[str]) -> dict[str, float]:
    """With what chance each labelled case was drawn, beside the likeliest one.

    A weighted mean depends on the ratios of the chances only; the share of all turns drawn cancels out.
    """
    drawn = {case.id: case.inclusion_probability for case in golden if case.id in said}
    chances = {name: chance for name, chance in drawn.items() if chance is not None}
    largest = max(chances.values(), default=1.0)
    return {name: chance / largest for name, chance in chances.items()}


def labels_of(golden: GoldenSet) -> dict[str, float]:
    """What reviewers said of the answers from production: 1 for good, 0 for bad."""
    values = {"good": 1.0, "bad": 0.0}
    said = {case.id: case.metadata.get("label") for case in golden}
    return {name: values[label] for name, label in said.items() if isinstance(label, str) and label in values}
