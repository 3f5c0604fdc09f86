"""What a Monitor tells about itself, as OpenTelemetry metrics that are read when somebody collects them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from opentelemetry import metrics
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Meter, Observation

import steelyard.sinks._attributes as names
from steelyard import __version__ as VERSION
from steelyard.results import ObservedMonitor
from steelyard.scores import Evaluation, Score

_SCORES = [0.0, *[tenth / 10 for tenth in range(1, 11)]]
"""A bucket for exactly 0, ten between 0 and 1."""
_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]
"""The local judge takes some 10 ms, models take seconds; above a minute something is wrong."""
_DOLLARS = [0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
"""From a small model's single question to a large model's long record, in steps of about 3."""


_HISTOGRAMS: Final = {
    names.SCORE_HISTOGRAM: ("1", "Scores by metric.", _SCORES),
    names.DURATION_HISTOGRAM: (
        "s",
        "Time from the first question about a record to its last score.",
        _SECONDS,
    ),
    names.COST_HISTOGRAM: ("{USD}", "What judging one record cost, where prices are known.", _DOLLARS),
}
_COUNTERS: Final = {
    names.OUTCOMES: ("{score}", "Scores by metric, status and cause."),
    names.DIAGNOSES: ("{turn}", "Diagnosed turns by cause; `fine` if nothing is wrong."),
    names.WEIGHTED_SUM: ("1", "Sum of value / inclusion probability; divided by the weight: unbiased mean."),
    names.NEGATIVE_SUM: ("1", "The part of the weighted sum that comes from negative values, as magnitude."),
    names.WEIGHT: ("1", "Sum of 1 / inclusion probability."),
    names.MOMENTS: (
        "1",
        "Sum of weight^2 * value^k, k = 0, 1, 2: the variance of the unbiased mean. Of values from 0 on.",
    ),
    names.PASSED_WEIGHT: ("1", "Sum of 1 / inclusion probability, by whether the threshold is met."),
    names.TOKENS: ("{token}", "Tokens used for judging, by type."),
    names.REQUESTS: ("{request}", "Requests sent to judges."),
}


class Instruments:
    """The instruments of one meter."""

    def __init__(self, meter: Meter) -> None:
        self._histograms = {
            name: meter.create_histogram(name, unit, said, explicit_bucket_boundaries_advisory=bounds)
            for name, (unit, said, bounds) in _HISTOGRAMS.items()
        }
        self._counters = {
            name: meter.create_counter(name, unit, said) for name, (unit, said) in _COUNTERS.items()
        }

    def record(self, evaluation: Evaluation, context: Context) -> None:
        """Add one Evaluation; in the scored span's context, so that exemplars lead to it."""
        for score in evaluation.scores:
            self._record_score(score, context)
        if evaluation.diagnosis is not None:
            cause = evaluation.diagnosis.cause or "fine"
            self._counters[names.DIAGNOSES].add(1, {names.SUFFERS: cause}, context=context)
        usage = evaluation.usage
        self._histograms[names.DURATION_HISTOGRAM].record(evaluation.duration, context=context)
        if usage.cost is not None:
            self._histograms[names.COST_HISTOGRAM].record(usage.cost, context=context)
        self._counters[names.REQUESTS].add(usage.requests, context=context)
        # Cached tokens are a part of the input; apart from it, the types can be added up.
        for kind, count in (
            ("input", usage.prompt_tokens - usage.cached_tokens),
            ("cached_input", usage.cached_tokens),
            ("output", usage.completion_tokens),
        ):
            if count > 0:
                self._counters[names.TOKENS].add(count, {names.TOKEN_TYPE: kind}, context=context)

    def _record_score(self, score: Score, context: Context) -> None:
        labels = {names.NAME: score.metric, names.JUDGE: score.provenance.judge if score.provenance else ""}
        outcome = {**labels, names.STATUS: score.status, names.CAUSE: score.cause or ""}
        self._counters[names.OUTCOMES].add(1, outcome, context=context)
        if score.value is None:
            return
        result = {**labels, names.LABEL: score.label} if score.label else labels
        self._histograms[names.SCORE_HISTOGRAM].record(score.value, result, context=context)
        weight = 1 / score.inclusion_probability
        self._counters[names.WEIGHT].add(weight, labels, context=context)
        if score.passed is not None:
            self._counters[names.PASSED_WEIGHT].add(
                weight, {**labels, names.PASSED: score.passed}, context=context
            )
        if score.value >= 0:
            self._counters[names.WEIGHTED_SUM].add(score.value * weight, labels, context=context)
            for power in range(3):
                moment = weight * weight * score.value**power
                self._counters[names.MOMENTS].add(
                    moment, {**labels, names.MOMENT: str(power)}, context=context
                )
        else:
            self._counters[names.NEGATIVE_SUM].add(-score.value * weight, labels, context=context)


_Read = Callable[[Any], Iterable[Observation]]


def observe_monitor(monitor: ObservedMonitor, *, meter_provider: metrics.MeterProvider | None = None) -> None:
    """Report a Monitor's queue, decisions, outcomes, sinks and judges as metrics, for as long as it lives.

    A Monitor with an `OpenTelemetrySink` does this by itself; doing it again changes nothing. What several
    Monitors report to one provider is added up. None is kept alive by it. A closed one goes on reporting its
    last counts, so that what was judged at the very end is exported too.

    Args:
        monitor: The Monitor.
        meter_provider: Where to report to; the global one by default, also where it is set later.
    """
    _gauges(meter_provider or metrics.get_meter_provider()).add(monitor)


class Alarming(Protocol):
    """Something that knows which alarms have gone off."""

    @property
    def fallen(self) -> Mapping[tuple[str, str], bool]:
        """By the alarm's name and its metric: whether scores have fallen."""


def observe_alarms(alarms: Alarming, *, meter_provider: metrics.MeterProvider | None = None) -> None:
    """Report which alarms have gone off as a metric, for as long as `alarms` lives.

    Args:
        alarms: What knows it.
        meter_provider: Where to report to; the global one by default, also where it is set later.
    """
    _gauges(meter_provider or metrics.get_meter_provider()).alarms.add(alarms)


class _Gauges:
    """The instruments of one provider: a second set of the same names would never be read."""

    def __init__(self, meter: metrics.Meter) -> None:
        # Weak: reporting must not keep a Monitor alive that nobody uses any more.
        self._monitors: WeakValueDictionary[int, ObservedMonitor] = WeakValueDictionary()
        self.alarms: WeakSet[Alarming] = WeakSet()
        gauge, counter, read = meter.create_observable_gauge, meter.create_observable_counter, self._reading
        gauge(names.QUEUE_SIZE, [read(_number("queued"))], "{turn}", "Turns waiting in memory.")
        gauge(names.PENDING, [read(_number("pending"))], "{turn}", "Turns accepted and not finished.")
        counter(names.DECISIONS, [read(_decisions)], "{turn}", "Turns by the decision to judge or skip them.")
        counter(names.TURNS, [read(_outcomes)], "{turn}", "Accepted turns by what became of them.")
        counter(names.SINK_RESULTS, [read(_sinks)], "{evaluation}", "Evaluations by sink, written or lost.")
        hits = [read(_number("cache_hits"))]
        counter(names.CACHE_HITS, hits, "{reply}", "Replies that came from the judge cache.")
        gauge(names.BUDGET_LIMIT, [self._limits], "{limit}", "What judging may use up, by limit.")
        gauge(names.ALARM_FALLEN, [self._fallen], "{alarm}", "1 while an alarm says that scores have fallen.")
        gauge(names.BREAKER, [read(_breakers)], "{breaker}", "Breakers that keep questions from the judge.")

    def add(self, monitor: ObservedMonitor) -> None:
        self._monitors[id(monitor)] = monitor

    def _fallen(self, _: CallbackOptions) -> Iterable[Observation]:
        """Each alarm of this process; of two that share a file and a name, the one that has gone off."""
        found: dict[tuple[str, str], bool] = {}
        for alarms in list(self.alarms):
            for key, fallen in alarms.fallen.items():
                found[key] = fallen or found.get(key, False)
        return [
            Observation(int(fallen), {names.ALARM: alarm, names.NAME: metric})
            for (alarm, metric), fallen in found.items()
        ]

    def _limits(self, _: CallbackOptions) -> Iterable[Observation]:
        """Each limit, of the Monitor with the highest: limits of several do not add up."""
        limits: dict[str, float] = {}
        for alive in self._monitors.valuerefs():
            budget = getattr(getattr(alive(), "options", None), "budget", None)
            if is_dataclass(budget):
                for item in fields(budget):
                    limit = getattr(budget, item.name)
                    if isinstance(limit, int | float):
                        limits[item.name] = max(limits.get(item.name, 0.0), float(limit))
        return [Observation(limit, {names.BUDGET: name}) for name, limit in limits.items()]

    def _reading(self, read: _Read) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def callback(_: CallbackOptions) -> Iterable[Observation]:
            sums: Counter[tuple[tuple[str, Any], ...]] = Counter()
            for alive in self._monitors.valuerefs():
                try:
                    found = None if (monitor := alive()) is None else list(read(monitor.stats()))
                except Exception:  # noqa: BLE001 - collecting the host's own metrics must go on
                    continue
                # Added up over Monitors, since two observations of equal labels would replace each other.
                for one in found or ():
                    sums[tuple((one.attributes or {}).items())] += one.value  # type: ignore[assignment]
            return [Observation(total, dict(labels)) for labels, total in sums.items()]

        return callback


# Weak keys: a test makes many providers, and each takes its instruments along.
_known: WeakKeyDictionary[metrics.MeterProvider, _Gauges] = WeakKeyDictionary()


def _gauges(provider: metrics.MeterProvider) -> _Gauges:
    found = _known.get(provider)
    if found is None and provider is metrics.get_meter_provider():
        # What was made before a provider was set, the API has passed on to the one that is set now.
        found = next((made for known, made in _known.items() if _is_placeholder(known)), None)
    _known[provider] = found = found or _Gauges(provider.get_meter(names.SCOPE, VERSION))
    return found


def _is_placeholder(provider: metrics.MeterProvider) -> bool:
    return type(provider).__module__.startswith("opentelemetry.metrics")


def _number(name: str) -> _Read:
    return lambda stats: [Observation(getattr(stats, name))]


def _decisions(stats: Any) -> Iterable[Observation]:
    yield Observation(stats.accepted, {names.DECISION: "accepted", names.CAUSE: ""})
    for reason, count in stats.skipped.items():
        yield Observation(count, {names.DECISION: "skipped", names.CAUSE: reason})


def _outcomes(stats: Any) -> Iterable[Observation]:
    for outcome in ("evaluated", "abandoned", "spooled"):
        if (count := getattr(stats, outcome)) or outcome != "spooled":
            yield Observation(count, {names.OUTCOME: outcome, names.CAUSE: ""})
    for cause, count in stats.dead.items():
        yield Observation(count, {names.OUTCOME: "dead", names.CAUSE: cause})


def _sinks(stats: Any) -> Iterable[Observation]:
    for sink, counts in stats.sinks.items():
        yield Observation(counts.written, {names.SINK: sink, names.OUTCOME: "written"})
        yield Observation(counts.lost, {names.SINK: sink, names.OUTCOME: "lost"})


def _breakers(stats: Any) -> Iterable[Observation]:
    states: Mapping[str, str] = stats.breakers
    for judge, state in states.items():
        yield Observation(int(state in ("open", "rejected")), {names.JUDGE: judge})
