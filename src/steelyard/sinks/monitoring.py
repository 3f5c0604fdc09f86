"""What a Monitor tells about itself, as OpenTelemetry metrics that are read when somebody collects them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Observation

from steelyard.sinks import _attributes as names

__all__ = ["Monitored", "observe_monitor"]

_Read = Callable[[Any], Iterable[Observation]]


class Monitored(Protocol):
    """Something with the statistics of a `steelyard.Monitor`."""

    def stats(self) -> Any:
        """Its counts at this moment, as a `steelyard.online.Stats`."""
        ...


def observe_monitor(monitor: Monitored, *, meter_provider: metrics.MeterProvider | None = None) -> None:
    """Report a Monitor's queue, decisions, outcomes and sinks as metrics, for as long as it lives.

    Call it once for each Monitor. The Monitor is not kept alive by it.

    Args:
        monitor: The Monitor.
        meter_provider: Where to report to; the global one by default.
    """
    meter = (meter_provider or metrics.get_meter_provider()).get_meter(names.SCOPE)
    alive = weakref.ref(monitor)

    def reading(read: _Read) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def callback(_: CallbackOptions) -> Iterable[Observation]:
            found = alive()
            try:
                return [] if found is None else list(read(found.stats()))
            except Exception:  # noqa: BLE001 - collecting the host's own metrics must go on
                return []

        return callback

    gauge, counter = meter.create_observable_gauge, meter.create_observable_counter
    gauge(names.QUEUE_SIZE, [reading(_queued)], "{turn}", "Turns waiting in memory.")
    gauge(names.PENDING, [reading(_pending)], "{turn}", "Turns accepted and not finished.")
    counter(names.DECISIONS, [reading(_decisions)], "{turn}", "Turns by the decision to judge or skip them.")
    counter(names.TURNS, [reading(_outcomes)], "{turn}", "Accepted turns by what became of them.")
    counter(names.SINK_RESULTS, [reading(_sinks)], "{evaluation}", "Evaluations by sink, written or lost.")
    counter(names.CACHE_HITS, [reading(_cache_hits)], "{answer}", "Answers that came from the judge cache.")
    gauge(names.BREAKER, [reading(_breaker)], "1", "Whether the breaker keeps questions from the judge.")


def _queued(stats: Any) -> Iterable[Observation]:
    yield Observation(stats.queued)


def _pending(stats: Any) -> Iterable[Observation]:
    yield Observation(stats.pending)


def _decisions(stats: Any) -> Iterable[Observation]:
    yield Observation(stats.accepted, {names.DECISION: "accepted", names.CAUSE: ""})
    for reason, count in stats.skipped.items():
        yield Observation(count, {names.DECISION: "skipped", names.CAUSE: reason})


def _outcomes(stats: Any) -> Iterable[Observation]:
    yield Observation(stats.evaluated, {names.OUTCOME: "evaluated", names.CAUSE: ""})
    yield Observation(stats.abandoned, {names.OUTCOME: "abandoned", names.CAUSE: ""})
    if (spooled := getattr(stats, "spooled", 0)) > 0:
        yield Observation(spooled, {names.OUTCOME: "spooled", names.CAUSE: ""})
    for cause, count in stats.dead.items():
        yield Observation(count, {names.OUTCOME: "dead", names.CAUSE: cause})


def _sinks(stats: Any) -> Iterable[Observation]:
    for sink, counts in stats.sinks.items():
        yield Observation(counts.written, {names.SINK: sink, names.OUTCOME: "written"})
        yield Observation(counts.lost, {names.SINK: sink, names.OUTCOME: "lost"})


def _cache_hits(stats: Any) -> Iterable[Observation]:
    hits: Mapping[str, int] | int | None = getattr(stats, "cache_hits", None)
    if isinstance(hits, Mapping):
        for judge, count in hits.items():
            yield Observation(count, {names.JUDGE: judge})
    elif hits is not None:
        yield Observation(hits)


def _breaker(stats: Any) -> Iterable[Observation]:
    states: Mapping[str, str] = getattr(stats, "breakers", {})
    for judge, state in states.items():
        yield Observation(int(state == "open"), {names.JUDGE: judge})
