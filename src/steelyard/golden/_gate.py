"""A gate: a promise about the mean of a metric, and how surely it is checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from steelyard.errors import ConfigurationError
from steelyard.golden._results import GateResult, Run
from steelyard.golden._set import GoldenSet
from steelyard.metrics import Metric
from steelyard.stats import GateTest


@dataclass(frozen=True, kw_only=True)
class EarlierScores:
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
    def of_runs(cls, runs: Sequence[Run]) -> EarlierScores:
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
    def of_production(cls, golden: GoldenSet, judge: str) -> tuple[EarlierScores, str]:
        """What production scored on the cases of a mined set, and why there is nothing, if so."""
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
        why = ""
        if unknown:
            why = f"the set does not say which judge gave {unknown} of its cases their scores; mine it again"
        elif others and not scores:
            why = f"production was judged by {', '.join(sorted(others))}, this run by {judge}"
        return cls(source="production", scores=scores), why


Outcome = Literal["pass", "fail", "undecided"]
Repeated = Literal["app", "judge", "nothing"]
"""What is measured again: answers of the application, their judging, or nothing."""

_ENOUGH = 0.9
"""The share of cases that must have a score for a gate to decide."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """Fails if the mean of a metric over the set's cases has fallen below a bar.

    The bar is the number given, or what earlier runs or production measured on the same cases. Because
    applications and judges waver, cases are measured again until it is decided, or held against how they
    wavered before; see `steelyard.stats.GateTest`.
    """

    metric: str
    """The metric's name."""
    least: float | None = None
    """The bar: the least mean, or the most where lower is better; None: the baseline's."""
    fall: float = 0.05
    """A fall of this size below the bar is found with the probability `power`."""
    false_failures: float = 0.05
    """The largest probability of a failure while the mean reaches the bar."""
    power: float = 0.9
    """See `fall`."""
    passes: int = 5
    """Every case is judged at most so often."""

    def __post_init__(self) -> None:
        if self.least is not None and not math.isfinite(self.least):
            raise ConfigurationError(
                f"gate {self.metric!r}: least={self.least!r} is not a number; write 0.8, for example"
            )
        if not self.fall > 0:
            raise ConfigurationError(f"gate {self.metric!r}: fall must be above 0, not {self.fall!r}")
        if not (0 < self.false_failures < 0.5 and 0.5 <= self.power < 1):
            raise ConfigurationError(
                f"gate {self.metric!r}: false_failures must be in (0, 0.5) and power in [0.5, 1)"
            )
        if self.passes < 1:
            raise ConfigurationError(f"gate {self.metric!r}: passes must be at least 1, not {self.passes!r}")


def gates_from(given: Iterable[Gate | str], **options: float | int) -> tuple[Gate, ...]:
    """Gates out of texts such as `faithfulness=0.8`, or `faithfulness` to hold it against a baseline."""
    made = []
    for text in given:
        if isinstance(text, Gate):
            made.append(text)
            continue
        name, sign, number = text.partition("=")
        try:
            least = float(number) if sign else None
        except ValueError:
            raise ConfigurationError(f"gate {text!r} is not of the form faithfulness=0.8") from None
        gate = Gate(metric=name.strip().lower().replace("-", "_"), least=least)
        made.append(replace(gate, **options))  # type: ignore[arg-type]  # checked by the gate itself
    return tuple(made)


class GateCheck:
    """One gate while its scores come in."""

    def __init__(
        self,
        gate: Gate,
        metric: Metric,
        *,
        weights: Mapping[str, float],
        repeat: Repeated,
        earlier: EarlierScores,
    ) -> None:
        self.gate = gate
        # The test knows falls only: where lower is better, the negative is tested.
        self._sign = 1.0 if metric.direction == "higher" else -1.0
        known = {case: values for case in weights if (values := earlier.values(case, gate.metric))}
        if gate.least is None and not known:
            raise ConfigurationError(
                f"gate {gate.metric!r} has no number, and no earlier run has scores of it for cases of this "
                f"set; write {gate.metric}=0.8, or name a baseline"
            )
        self._cases = frozenset(known if gate.least is None else weights)
        self._repeat: Repeated = "nothing" if repeat == "judge" and known else repeat
        self._source = earlier.source
        self._knows_app = repeat == "app" or bool(known)
        self._is_share = True
        self.test = GateTest(
            least=None if gate.least is None else self._sign * gate.least,
            fall=gate.fall,
            false_failures=gate.false_failures,
            power=gate.power,
            earlier={case: (self._sign * np.array(values)).tolist() for case, values in known.items()},
            weights=weights,
            once=self._repeat == "nothing",
            exact=self._repeat == "nothing" and not known,
        )

    def add(self, case: str, value: float) -> None:
        """Take a score into account; one of a case that the baseline does not have is passed over."""
        if case in self._cases:
            self.test.add(case, self._sign * value)
            self._is_share &= 0 <= value <= 1

    @property
    def _has_enough(self) -> bool:
        return 0 < self.test.cases >= _ENOUGH * len(self._cases)

    @property
    def is_open(self) -> bool:
        return self._repeat != "nothing" and self.test.decision is None and self._has_enough

    def result(self, *, same_answers: bool = False) -> GateResult:
        """With `same_answers`, each answer is word for word an earlier one, so that nothing has changed."""
        test, sign = self.test, self._sign
        low = high = None
        if (interval := test.interval()) is not None and self._chance != "unknown":
            # The sign may have swapped the ends.
            low, high = sorted(sign * end for end in interval)
            if self._is_share:
                low, high = max(low, 0.0), min(high, 1.0)
        same = same_answers and self.gate.least is None
        decision: Outcome = "pass" if same else test.decision or "undecided"
        return GateResult(
            gate=f"{self.gate.metric} {'>=' if sign > 0 else '<='} {self._bar_words()}",
            metric=self.gate.metric,
            outcome=decision if self._has_enough else "undecided",
            mean=None if test.mean is None else sign * test.mean,
            low=low,
            high=high,
            calls=test.calls,
            cases=test.cases,
            why=self._why(same),
            chance=self._chance,
        )

    @property
    def _chance(self) -> Literal["app", "judge", "unknown"]:
        return "app" if self._knows_app else "judge" if self._repeat == "judge" else "unknown"

    def _bar_words(self) -> str:
        if self.gate.least is not None:
            return f"{self.gate.least:g}"
        bar = self.test.bar
        return f"{self._source}'s" if bar is None else f"{self._sign * bar:.4g} ({self._source})"

    def _why(self, same: bool) -> str:
        gate, test = self.gate, self.test
        if not self._has_enough:
            return f"only {test.cases} of {len(self._cases)} cases have a score"
        if same:
            return f"{test.cases} answers, each word for word one of the {self._source}'s"
        if self._chance == "unknown":
            return (
                f"{test.calls} scores, one for each case, compared as they are; whether another run would "
                "come out alike is not known: --repeat app asks again, --baseline RUN.json knows earlier runs"
            )
        if self._repeat == "nothing" and test.cases < test.fewest:
            return (
                f"{test.calls} scores, one for each case, cannot tell a fall from chance: it takes "
                f"{test.fewest} cases, or --repeat app"
            )
        rates = f"false failures at most {gate.false_failures:.0%}, "
        rates += f"a fall of {gate.fall:g} passes in at most {1 - gate.power:.0%}"
        of = "" if self._knows_app else "; of these answers: how the application wavers is not in it"
        if test.decision is not None:
            return f"{test.calls} scores of {test.cases} cases: {rates}{of}"
        return f"undecided after {test.calls} scores: {rates}{of}; `steelyard test --plan` says what decides"
