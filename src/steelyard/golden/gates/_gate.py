"""A gate: a promise about the mean of a metric, and how surely it is checked."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from steelyard.errors import ConfigurationError
from steelyard.golden._results import CaseResult, GateResult, Run
from steelyard.metrics import Metric
from steelyard.stats import GateTest

_ENOUGH = 0.9
"""The share of cases that must have a score for a gate to decide."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """Fails where the mean of a metric over the set's cases has fallen below a bar.

    The bar is the number given, or what a baseline run measured on the same cases. Because a judge wavers,
    cases are judged again until it is decided; see `steelyard.stats.GateTest`.
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
        """Refuse options that cannot mean anything.

        Raises:
            ConfigurationError: Naming the option.
        """
        if self.least is not None and not math.isfinite(self.least):
            raise ConfigurationError(f"gate {self.metric!r}: least={self.least!r} is not a number")
        if not self.fall > 0:
            raise ConfigurationError(f"gate {self.metric!r}: fall must be above 0, not {self.fall!r}")
        if not (0 < self.false_failures < 0.5 and 0.5 <= self.power < 1):
            raise ConfigurationError(
                f"gate {self.metric!r}: false_failures must be in (0, 0.5) and power in [0.5, 1)"
            )
        if self.passes < 1:
            raise ConfigurationError(f"gate {self.metric!r}: passes must be at least 1, not {self.passes!r}")


def gates_from(given: Iterable[Gate | str], **options: float | int) -> tuple[Gate, ...]:
    """Gates out of texts such as `faithfulness=0.8`, or `faithfulness` to hold it against a baseline.

    Raises:
        ConfigurationError: If one cannot be read.
    """
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
        self, gate: Gate, metric: Metric, *, cases: Collection[str], exact: bool, baseline: Run | None
    ) -> None:
        """Start before the first score.

        Args:
            gate: What is promised.
            metric: The metric, for its direction.
            cases: The ids of the cases that the metric applies to.
            exact: The judge is known to give the same scores again.
            baseline: The earlier run, for a gate without a number.

        Raises:
            ConfigurationError: If the gate needs a baseline and there is none with this metric.
        """
        self.gate = gate
        # The test knows falls only: where lower is better, the negative is tested.
        self._sign = 1.0 if metric.direction == "higher" else -1.0
        self._cases = frozenset(cases)
        self._bar = gate.least
        known = 0.0
        if self._bar is None:
            self._bar, known, self._cases = _measured(baseline, gate.metric, self._cases)
            # A bar that was measured by a judge that wavers is itself uncertain.
            exact = exact and known == 0
        self.test = GateTest(
            least=self._sign * self._bar,
            fall=gate.fall,
            false_failures=gate.false_failures,
            power=gate.power,
            known_variance=known,
            exact=exact,
        )

    def add(self, case: str, value: float) -> None:
        """Take a score into account; one of a case that the baseline does not have is passed over."""
        if case in self._cases:
            self.test.add(case, self._sign * value)

    @property
    def expected(self) -> int:
        """How many cases should have a score."""
        return len(self._cases)

    @property
    def is_open(self) -> bool:
        """Whether more scores may decide it."""
        return self.test.decision is None and 0 < self.test.cases >= _ENOUGH * self.expected

    def result(self) -> GateResult:
        """What was decided."""
        test, sign = self.test, self._sign
        enough = 0 < test.cases >= _ENOUGH * self.expected
        interval = test.interval()
        # The sign may have swapped the ends.
        ends = sorted(sign * end for end in interval) if interval else [None, None]
        assert self._bar is not None
        relation = ">=" if sign > 0 else "<="
        bar = f"{self._bar:g}" if self.gate.least is not None else f"{self._bar:.4g} (baseline)"
        return GateResult(
            gate=f"{self.gate.metric} {relation} {bar}",
            metric=self.gate.metric,
            outcome=(test.decision or "undecided") if enough else "undecided",
            mean=None if test.mean is None else sign * test.mean,
            low=ends[0],
            high=ends[1],
            calls=test.calls,
            cases=test.cases,
            why=self._why(enough),
        )

    def _why(self, enough: bool) -> str:
        gate, test = self.gate, self.test
        if enough and test.standard_error == 0 and test.decision is not None:
            return f"{test.calls} scores that do not waver, compared exactly"
        rates = (
            f"false failures at most {gate.false_failures:.0%}, a fall of {gate.fall:g} found with "
            f"{gate.power:.0%}"
        )
        if not enough:
            return f"only {test.cases} of {self.expected} cases have a score"
        if test.decision is None:
            return f"undecided after {test.calls} scores: {rates}"
        return f"{test.calls} scores of {test.cases} cases: {rates}"


def _measured(
    baseline: Run | None, metric: str, cases: frozenset[str]
) -> tuple[float, float, frozenset[str]]:
    """The baseline's mean, the variance that its judge's wavering leaves, and its cases."""
    if baseline is None:
        raise ConfigurationError(f"gate {metric!r} has no number and no baseline; write {metric}=0.8")
    scored = [case for case in baseline if case.id in cases and _values(case, metric)]
    if not scored:
        raise ConfigurationError(f"the baseline has no scores of {metric!r} for the cases of this set")
    test = GateTest(least=0.0)
    for case in scored:
        for value in _values(case, metric):
            test.add(case.id, value)
    assert test.mean is not None
    variance = 0.0 if baseline.exact else test.standard_error**2
    return test.mean, variance, frozenset(case.id for case in scored)


def _values(case: CaseResult, metric: str) -> tuple[float, ...]:
    result = case.metrics.get(metric)
    return result.values if result else ()
