"""What was measured of the same cases before: by earlier runs that were kept, or in production."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard.golden._results import Run
from steelyard.golden._set import GoldenSet


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """Earlier scores by case and metric, one for each answer of the application."""

    source: str = "baseline"
    """Where they come from, in a word: `baseline` or `production`."""
    scores: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict, repr=False)
    """By case, then by metric."""
    answers: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    """What was answered then, by case."""

    def values(self, case: str, metric: str) -> Sequence[float]:
        """The scores of a case; none where it has none."""
        return self.scores.get(case, {}).get(metric, ())

    def noise(self, metric: str, cases: Iterable[str]) -> float | None:
        """The standard deviation of a case's score from one answer to the next; None without repeats."""
        found = [np.asarray(self.values(case, metric)) for case in cases]
        repeats = sum(len(values) - 1 for values in found if len(values) > 1)
        if not repeats:
            return None
        return math.sqrt(sum(float(values.var()) * len(values) for values in found) / repeats)

    @classmethod
    def of_runs(cls, runs: Sequence[Run]) -> Earlier:
        """Those of earlier runs together.

        Scores of one answer that was judged several times are one score. A run that does not say what it
        repeated (of version 0.1) counts as such.
        """
        scores: dict[str, dict[str, list[float]]] = {}
        answers: dict[str, set[str]] = {}
        for run in runs:
            for case in run:
                answers.setdefault(case.id, set()).add(case.answer)
                for name, result in case.metrics.items():
                    if (value := result.value) is not None:
                        found = result.values if run.repeated == "app" else [value]
                        scores.setdefault(case.id, {}).setdefault(name, []).extend(found)
        return cls(scores=scores, answers={case: frozenset(texts) for case, texts in answers.items()})

    @classmethod
    def of_production(cls, golden: GoldenSet, judge: str) -> tuple[Earlier, str]:
        """What production scored on the cases of a mined set, and why there is nothing, if so.

        Args:
            golden: The set.
            judge: The judge of this run: scores of another one are no bar for it.
        """
        scores: dict[str, dict[str, list[float]]] = {}
        others: set[str] = set()
        unknown = 0
        for case in golden:
            known = case.metadata.get("scores")
            judges = case.metadata.get("judges")
            if not isinstance(known, Mapping) or not known:
                continue
            if not isinstance(judges, Mapping):
                unknown += 1
                continue
            for name, value in known.items():
                if judges.get(name) != judge:
                    others.add(str(judges.get(name)))
                elif isinstance(value, int | float):
                    scores.setdefault(case.id, {})[str(name)] = [float(value)]
        found = cls(source="production", scores=scores)
        if unknown:
            return (
                found,
                f"the set does not say which judge gave {unknown} of its cases their scores; mine it again",
            )
        if others and not scores:
            return found, f"production was judged by {', '.join(sorted(others))}, this run by {judge}"
        return found, ""
